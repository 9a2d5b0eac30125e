//! The design of banded Toeplitz C^-1. For many steps, the solver begins at the solution for fewer steps.

use super::search::minimize_banded_inverse;
use super::start::{bands_of, square_root_of};
use crate::design::class::Design;
use crate::design::coefficient_rule::CoefficientRule;
use crate::design::spec::StrategySpec;
use crate::numeric::limits::check_materializable;
use crate::solution::Solution;
use crate::strategy::BandedInverse;
use crate::toeplitz::divide;
use crate::{Participation, Problem, Result};

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
            // Other starts: the identity, and the inverse of the workload, which may have few coefficients.
            let mut others = vec![vec![1.0]];
            if let Some(a) = problem.workload.coefficients(problem.steps)? {
                others.push(divide(&[1.0], &a, bands));
            }
            let shorter = shorter(problem).map(|shorter| Self::design(spec, &shorter)).transpose()?;
            let shorter = shorter.as_ref().map(|found| found.value.inverse_coefficients());
            minimize_banded_inverse(&start, &others, shorter, problem)?
        };
        found.try_map(|inverse_coefficients| Self::new(problem.steps, inverse_coefficients))
    }
}

/// Minimum number of steps for which the solver begins at the solution for an eighth of the steps.
const MIN_STEPS_TO_SHORTEN: usize = 1 << 17;
const SHORTENING: usize = 8;

/// Returns a problem with fewer steps that has nearly the same solution as `problem`, if there is one.
fn shorter(problem: &Problem) -> Option<Problem> {
    if matches!(problem.participation, Participation::Patterns { .. }) {
        return None;
    }
    let few = |count: usize| count.div_ceil(SHORTENING);
    // A large separation is reduced in proportion to the number of steps; with a small one, the number of
    // participations is.
    let apart =
        |b: usize, k: usize| if b >= SHORTENING * SHORTENING { (b / SHORTENING, k) } else { (b, few(k)) };
    let participation = problem.participation.map_separation(apart);
    let long = problem.steps > MIN_STEPS_TO_SHORTEN && problem.workload.is_toeplitz();
    long.then(|| Problem { steps: few(problem.steps), participation, ..problem.clone() })
}
