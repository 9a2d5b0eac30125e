//! The solvers that choose C, one file per problem; each returns a [`Solution`].

pub(crate) mod banded;
pub(crate) mod best;
pub(crate) mod blt;
pub(crate) mod column_normalized;
pub(crate) mod dense;
pub(crate) mod lbfgs;
pub(crate) mod softmax;
mod solution;
pub(crate) mod toeplitz;
pub(crate) mod tree_weights;

pub use solution::{Solution, Status};

pub use crate::problem::Objective;
