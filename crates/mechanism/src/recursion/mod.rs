//! The recursion that computes the noise C^-1 Z step by step, its matrix, and recursions derived from it.

pub(crate) mod columns;
pub(crate) mod one_seed;
mod row_norms;
mod rule;
mod single_precision;
pub(crate) mod varying;

pub use row_norms::RowNorms;
pub use rule::Recursion;
