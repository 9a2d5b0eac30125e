//! Choosing C: one file a problem, each returning a [`Solution`].

pub mod banded;
pub(crate) mod best;
pub mod blt;
pub(crate) mod column_normalized;
pub mod dense;
pub mod lbfgs;
pub(crate) mod softmax;
mod solution;
pub mod toeplitz;
pub(crate) mod tree_weights;

pub use solution::{Solution, Status};

pub use crate::problem::Objective;
