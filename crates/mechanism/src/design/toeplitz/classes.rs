//! The designs of the classes Toeplitz (n coefficients) and banded Toeplitz (few coefficients).

use super::coefficients::coefficients;
use super::start::bands_of;
use crate::design::class::Design;
use crate::design::spec::StrategySpec;
use crate::numeric::limits::check_materializable;
use crate::solution::Solution;
use crate::strategy::{BandedToeplitz, Toeplitz};
use crate::{Problem, Result};

impl Design for Toeplitz {
    fn design(spec: &StrategySpec, problem: &Problem) -> Result<Solution<Self>> {
        spec.refuse_bands()?;
        spec.refuse_order()?;
        spec.refuse_separations()?;
        check_materializable(problem.steps)?;
        coefficients(problem, problem.steps, spec.rule)?.try_map(|c| Self::new(problem.steps, c))
    }
}

impl Design for BandedToeplitz {
    fn design(spec: &StrategySpec, problem: &Problem) -> Result<Solution<Self>> {
        spec.refuse_order()?;
        let bands = bands_of(spec, problem)?;
        coefficients(problem, bands, spec.rule)?.try_map(|c| Self::new(problem.steps, c))
    }
}
