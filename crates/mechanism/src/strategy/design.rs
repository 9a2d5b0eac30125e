//! The design of the best strategy of a class.

use super::spec::StrategySpec;
use crate::optimize::Solution;
use crate::{Problem, Result};

/// A class that designs its best strategy for a problem.
pub(super) trait Design: Sized {
    /// Designs the best strategy of the class for `problem`, with the options of `spec`.
    fn design(spec: &StrategySpec, problem: &Problem) -> Result<Solution<Self>>;
}
