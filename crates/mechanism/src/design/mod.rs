//! The design of C: the request for a class of strategies, the rules for Toeplitz coefficients, and the
//! solvers of each class, whose results are [`Solution`]s.

mod banded;
mod best;
mod blt;
mod blt_quadrature;
mod class;
mod coefficient_rule;
mod column_normalized;
mod dense;
mod from_spec;
mod rational;
mod spec;
mod toeplitz;
mod varying_blt;
mod weighted_tree;

pub use coefficient_rule::CoefficientRule;
pub use spec::StrategySpec;

pub use crate::problem::{Objective, Problem};
pub use crate::solution::{Solution, Status};
