//! How a class finds its best strategy.

use super::spec::StrategySpec;
use crate::optimize::Solution;
use crate::{Problem, Result};

/// How a class finds its best strategy for a problem.
pub(super) trait Design: Sized {
    /// The best strategy of the class for `problem`, with the options of `spec`.
    fn design(spec: &StrategySpec, problem: &Problem) -> Result<Solution<Self>>;
}
