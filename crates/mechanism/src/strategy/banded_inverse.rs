//! Banded Toeplitz C^-1: the square root of A^-1 truncated, or optimised. Noise: a moving average of `bands`
//! seed vectors, which can be regenerated, so that no state is needed.

use serde::{Deserialize, Serialize};

use super::coefficient_rule::CoefficientRule;
use super::column::square_root_of;
use super::column::{self, bands_of};
use super::contract::Strategy;
use super::design::Design;
use super::spec::StrategySpec;
use crate::Problem;
use crate::numeric::limits::check_materializable;
use crate::optimize::{Solution, toeplitz::minimize_banded_inverse};
use crate::toeplitz::divide;
use crate::{Encoder, Participation, Recursion, Result, Workload, decoder};

/// A lower-triangular Toeplitz C given by the first column of its inverse.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BandedInverse {
    steps: usize,
    /// The non-zero part of the first column of C^-1.
    inverse_coefficients: Vec<f64>,
}

impl Strategy for BandedInverse {
    fn steps(&self) -> usize {
        self.steps
    }

    fn check(&self) -> Result<()> {
        column::check(self.steps, &self.inverse_coefficients)
    }

    fn encoder(&self) -> Result<Encoder> {
        check_materializable(self.steps)?;
        let coefficients = divide(&[1.0], &self.inverse_coefficients, self.steps);
        Ok(Encoder::Toeplitz { steps: self.steps, coefficients })
    }

    fn row_errors_squared(&self, workload: &Workload) -> Result<Vec<f64>> {
        check_materializable(self.steps)?;
        decoder::rows_of_inverse(&self.inverse_coefficients, self.steps, workload)
    }

    fn recursion(&self) -> Result<Recursion> {
        Ok(Recursion::MovingAverage { taps: self.inverse_coefficients.clone() })
    }
}

impl Design for BandedInverse {
    fn design(spec: &StrategySpec, problem: &Problem) -> Result<Solution<Self>> {
        spec.refuse_order()?;
        check_materializable(problem.steps)?;
        let bands = bands_of(spec, problem)?;
        let root = square_root_of(&problem.workload, problem.steps, bands)?;
        let start = divide(&[1.0], &root, bands);
        let found = if spec.rule == CoefficientRule::SquareRoot {
            Solution::closed_form(start)
        } else {
            // The identity, and the workload, whose inverse may be short.
            let mut others = vec![vec![1.0]];
            if let Some(a) = problem.workload.coefficients(problem.steps)? {
                others.push(divide(&[1.0], &a, bands));
            }
            let shorter = shorter(problem).map(|shorter| Self::design(spec, &shorter)).transpose()?;
            let shorter = shorter.map(|found| found.value.inverse_coefficients);
            minimize_banded_inverse(&start, &others, shorter.as_deref(), problem)?
        };
        Ok(found.map(|inverse_coefficients| Self { steps: problem.steps, inverse_coefficients }))
    }
}

/// Minimum number of steps for which the solution for an eighth of the steps is the start.
const MIN_STEPS_TO_SHORTEN: usize = 1 << 17;
const SHORTENING: usize = 8;

/// Returns a problem with fewer steps whose solution is nearly the solution of `problem`.
fn shorter(problem: &Problem) -> Option<Problem> {
    if matches!(problem.participation, Participation::Patterns { .. }) {
        return None;
    }
    let few = |count: usize| count.div_ceil(SHORTENING);
    // Participations that are far apart keep their distance relative to the number of steps.
    let apart =
        |b: usize, k: usize| if b >= SHORTENING * SHORTENING { (b / SHORTENING, k) } else { (b, few(k)) };
    let participation = problem.participation.map_separation(apart);
    let long = problem.steps > MIN_STEPS_TO_SHORTEN && problem.workload.is_toeplitz();
    long.then(|| Problem { steps: few(problem.steps), participation, ..problem.clone() })
}
