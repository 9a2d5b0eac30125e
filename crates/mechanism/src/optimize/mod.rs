//! The solvers that choose C, one file per problem; each returns a [`Solution`].

pub(crate) mod banded;
pub(crate) mod best;
pub(crate) mod blt;
pub(crate) mod column_normalized;
pub(crate) mod dense;
pub(crate) mod toeplitz;
pub(crate) mod tree_weights;

pub use crate::problem::Objective;
pub use crate::solution::{Solution, Status};
