//! The recursion that computes C^-1 Z step by step: the rule, its columns, and its transformations.

pub(crate) mod columns;
pub(crate) mod one_seed;
mod row_norms;
mod rule;
mod single_precision;

pub use row_norms::RowNorms;
pub use rule::Recursion;
