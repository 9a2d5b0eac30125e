//! Errors of banded Toeplitz strategies for prefix sums in long runs, of which only the first steps are
//! computed.
//!
//! 1. The first column w = C^-1 1 of B tends to 1 / sum_t c_t. So w is computed exactly up to a horizon and
//!    replaced by its limit beyond.
//! 2. The w of the optimal C has a lower limit for larger n and takes more steps, about sqrt(n), to reach it.
//!    So the horizon of solvers grows with n.
//! 3. The convergence of w at the horizon is checked on the numbers.

use crate::decoder::ErrorNorms;
use crate::problem::Objective;
use crate::toeplitz::divide;
use crate::{Error, Result, Workload};

/// Runs of up to `MAX_EXACT_STEPS` steps are computed in full; of longer runs, at most `MAX_COMPUTED` steps
/// are.
pub(crate) const MAX_EXACT_STEPS: usize = 1 << 18;
const MAX_COMPUTED: usize = 10_000_000;
/// The horizon is the larger of two numbers: `MARGIN` times the number of steps in which w converges for the
/// first coefficients of sqrt(A), and `ROOTS` times sqrt(n).
const MARGIN: usize = 8;
const ROOTS: f64 = 50.0;
/// The w of a run counts as converged if its last `bands` terms are within this relative distance of the
/// limit.
const SETTLED: f64 = 1e-6;

/// Returns the number of steps that solvers compute one by one, out of `steps`.
pub(crate) fn horizon(steps: usize, bands: usize, workload: &Workload) -> usize {
    if *workload != Workload::Prefix || steps <= MAX_EXACT_STEPS {
        return steps;
    }
    let most = steps.min(MAX_COMPUTED);
    if bands > most / MARGIN {
        return most;
    }
    let root: Vec<f64> = (1..bands)
        .scan(1.0, |c, t| {
            *c *= (2 * t - 1) as f64 / (2 * t) as f64;
            Some(*c)
        })
        .collect();
    let settles = settling([&[1.0], &root[..]].concat().as_slice(), most).map_or(most, |w| w.len());
    settles.saturating_mul(MARGIN).max((ROOTS * (steps as f64).sqrt()) as usize).min(most)
}

/// Returns w = C^-1 1 up to the step at which it has converged, or `None` if that takes more than `most`
/// steps.
fn settling(c: &[f64], most: usize) -> Option<Vec<f64>> {
    let limit = 1.0 / c.iter().sum::<f64>();
    let settled = |w: &[f64]| {
        let last = &w[w.len().saturating_sub(c.len())..];
        last.iter().all(|w| (w - limit).abs() <= SETTLED * limit.abs())
    };
    let mut length = most.min(4096.max(8 * c.len()));
    loop {
        let w = divide(&vec![1.0; length], c, length);
        if settled(&w) {
            return Some(w);
        }
        if length == most {
            return None;
        }
        length = most.min(4 * length);
    }
}

/// Returns the weights by which ||B||_row^2 or ||B||_F^2 over `steps` steps is a sum of squares: one for each
/// w_t^2, t < `horizon`, and one for the squared limit, which stands for all later steps.
pub(crate) fn weights(steps: usize, horizon: usize, objective: Objective) -> (Vec<f64>, f64) {
    let rest = (steps - horizon) as f64;
    match objective {
        Objective::Max => (vec![1.0; horizon], rest),
        Objective::Rms => ((0..horizon).map(|t| (steps - t) as f64).collect(), 0.5 * rest * (rest + 1.0)),
    }
}

/// Returns the norms of B for prefix sums and the banded Toeplitz C with first column `c`.
///
/// # Errors
/// When w has not converged at the horizon, or a norm is outside the range of double precision.
pub(crate) fn error(c: &[f64], steps: usize) -> Result<ErrorNorms> {
    let most = steps.min(MAX_COMPUTED);
    let limit = 1.0 / c.iter().sum::<f64>();
    let w = match settling(c, most) {
        Some(w) => w,
        None if most == steps => divide(&vec![1.0; steps], c, steps),
        None => {
            return Err(Error::Numerical(format!(
                "the weights of prefix sums have not converged to {limit} within {most} steps, so the error over \
                 {steps} steps cannot be computed"
            )));
        }
    };
    let horizon = w.len();
    let squared = |objective| -> f64 {
        let (weights, rest) = weights(steps, horizon, objective);
        weights.iter().zip(&w).map(|(weight, w)| weight * w * w).sum::<f64>() + rest * limit * limit
    };
    let rms = (squared(Objective::Rms) / steps as f64).sqrt();
    ErrorNorms::new(squared(Objective::Max).sqrt(), rms)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums with an early horizon equal the whole sums once w has converged.
    #[test]
    fn folded_sums_are_the_whole_sums_once_settled() {
        let (c, steps) = ([1.0, 0.5, 0.375, 0.3125], 5000);
        let w = divide(&vec![1.0; steps], &c, steps);
        for objective in [Objective::Max, Objective::Rms] {
            let limit = 1.0 / c.iter().sum::<f64>();
            let sum = |horizon: usize| -> f64 {
                let (weights, rest) = weights(steps, horizon, objective);
                weights.iter().zip(&w).map(|(weight, w)| weight * w * w).sum::<f64>() + rest * limit * limit
            };
            for horizon in [1000, 4999, 5000] {
                assert!((sum(horizon) / sum(steps) - 1.0).abs() < 1e-12, "{objective} {horizon}");
            }
        }
    }

    #[test]
    fn norms_grow_as_they_must_beyond_what_is_written_out() {
        let c = [1.0, 0.5, 0.375, 0.3125];
        let limit = 1.0 / c.iter().sum::<f64>();
        let norms = error(&c, 1_000_000_000_000).unwrap();
        assert!((norms.max / (limit * 1e6) - 1.0).abs() < 1e-9);
        assert!((norms.rms / (limit * 1e6 / 2f64.sqrt()) - 1.0).abs() < 1e-9);
        assert!(error(&[1.0, -1.0 + 1e-7], 1_000_000_000).is_err(), "w has not converged");
    }
}
