//! How a class finds its best strategy.

use super::contract::Strategy;
use super::spec::StrategySpec;
use crate::optimize::Solution;
use crate::{Problem, Result};

/// How a class finds its best strategy for a problem.
pub(super) trait Design: Sized {
    /// The best strategy of the class for `problem`, with the options of `spec`.
    fn design(spec: &StrategySpec, problem: &Problem) -> Result<Solution<Self>>;
}

/// The one strategy of a class that has no size beside its steps.
pub(super) fn without_size<M: Strategy>(spec: &StrategySpec, strategy: M) -> Result<Solution<M>> {
    spec.refuse_bands()?;
    spec.refuse_order()?;
    strategy.check()?;
    Ok(Solution::closed_form(strategy))
}
