//! The first `bands` Toeplitz coefficients: square-root coefficients truncated, or optimised. Noise:
//! O(bands m) time a step with bands - 1 vectors of state. With no more bands than the separation of
//! participations, columns are orthogonal and the sensitivity is sqrt(k) ||c||.

use antinoise_input::between;
use serde::{Deserialize, Serialize};

use super::toeplitz::{check_coefficients, coefficients};
use super::{Design, ErrorNorms, Problem, Strategy, StrategySpec};
use crate::optimize::Solution;
use crate::{Encoder, Recursion, Result, Workload, stationary};

/// Bands when none are asked for.
const DEFAULT_BANDS: usize = 16;

/// A banded lower-triangular Toeplitz matrix given by its first column's non-zero part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BandedToeplitz {
    steps: usize,
    coefficients: Vec<f64>,
}

impl BandedToeplitz {
    pub(super) fn new(steps: usize, coefficients: Vec<f64>) -> Result<Self> {
        let strategy = Self { steps, coefficients };
        strategy.check()?;
        Ok(strategy)
    }
}

impl Strategy for BandedToeplitz {
    fn steps(&self) -> usize {
        self.steps
    }

    fn check(&self) -> Result<()> {
        check_coefficients(self.steps, &self.coefficients)
    }

    fn error(&self, workload: &Workload) -> Result<ErrorNorms> {
        if *workload == Workload::Prefix && self.steps > stationary::WRITTEN_OUT {
            return stationary::error(&self.coefficients, self.steps);
        }
        ErrorNorms::of_rows(&self.row_errors_squared(workload)?)
    }

    fn encoder(&self) -> Result<Encoder> {
        Ok(Encoder::Toeplitz { steps: self.steps, coefficients: self.coefficients.clone() })
    }

    fn recursion(&self) -> Result<Recursion> {
        Ok(Recursion::AutoRegressive { taps: self.coefficients.clone() })
    }
}

impl Design for BandedToeplitz {
    fn design(spec: &StrategySpec, problem: &Problem) -> Result<Solution<Self>> {
        spec.refuse_order()?;
        let bands = bands_of(spec, problem)?;
        let found = coefficients(problem, bands, spec.form)?;
        let strategy = Self { steps: problem.steps, coefficients: found.value.clone() };
        Ok(found.map(|_| strategy))
    }
}

/// The number of bands that is asked for, or the default: no more than the steps, nor than the separation of
/// several participations.
pub(super) fn bands_of(spec: &StrategySpec, problem: &Problem) -> Result<usize> {
    let (b, k) = problem.participation.separation(problem.steps);
    let default = if k > 1 { DEFAULT_BANDS.min(b) } else { DEFAULT_BANDS.min(problem.steps) };
    Ok(between("bands", spec.bands.unwrap_or(default), 1, problem.steps, "steps")?)
}
