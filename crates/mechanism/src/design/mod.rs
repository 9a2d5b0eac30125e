//! The design of C: the request, the choices of coefficients, and a solver for each family of classes; each
//! returns a [`Solution`].

mod banded;
mod best;
mod blt;
mod class;
mod coefficient_rule;
mod column_normalized;
mod dense;
mod from_spec;
mod spec;
mod toeplitz;
mod weighted_tree;

pub use coefficient_rule::CoefficientRule;
pub use spec::StrategySpec;

pub use crate::problem::{Objective, Problem};
pub use crate::solution::{Solution, Status};
