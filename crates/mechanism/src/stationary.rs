//! Banded Toeplitz strategies for prefix sums over more steps than are worth writing out.
//!
//! The first column w = C^-1 1 of B tends to 1 / sum_t c_t. So w is made exactly up to a horizon and taken as its
//! limit from there. The longer the run, the more a lower limit is worth a longer way to it (about sqrt(n) steps at
//! the optimum), and the horizon grows with it. Whether w has settled is checked on the numbers.

use crate::decoder::ErrorNorms;
use crate::optimize::Objective;
use crate::toeplitz::divide;
use crate::{Error, Result, Workload};

/// Up to here every step is made.
pub(crate) const WRITTEN_OUT: usize = 10_000_000;
/// The horizon, in multiples of the squared number of bands and of the square root of the steps.
const SQUARES: usize = 64;
const ROOTS: f64 = 50.0;
/// How far the last w may be from its limit, relative to it.
const SETTLED: f64 = 1e-6;

/// How many of `steps` steps are made one by one.
pub(crate) fn horizon(steps: usize, bands: usize, workload: &Workload) -> usize {
    if *workload != Workload::Prefix || steps <= WRITTEN_OUT {
        return steps;
    }
    let by_bands = bands.saturating_mul(bands).saturating_mul(SQUARES);
    by_bands.max((ROOTS * (steps as f64).sqrt()) as usize).min(WRITTEN_OUT)
}

/// The weight of w_t^2 in ||B||_row^2 or ||B||_F^2 over `steps` steps for each t below `horizon`, and that of the
/// squared limit for all that follow.
pub(crate) fn weights(steps: usize, horizon: usize, objective: Objective) -> (Vec<f64>, f64) {
    let rest = (steps - horizon) as f64;
    match objective {
        Objective::Max => (vec![1.0; horizon], rest),
        Objective::Rms => ((0..horizon).map(|t| (steps - t) as f64).collect(), 0.5 * rest * (rest + 1.0)),
    }
}

/// Norms of B for prefix sums and the banded Toeplitz C with first column `c`.
///
/// # Errors
/// When w has not settled at the horizon, or the norms are no numbers.
pub(crate) fn error(c: &[f64], steps: usize) -> Result<ErrorNorms> {
    let horizon = horizon(steps, c.len(), &Workload::Prefix);
    let w = divide(&vec![1.0; horizon], c, horizon);
    let (last, limit) = (w[horizon - 1], 1.0 / c.iter().sum::<f64>());
    let settled = (last - limit).abs() <= SETTLED * limit.abs();
    if horizon < steps && !settled {
        return Err(Error::Numerical(format!(
            "the prefix sums' weights have not settled after {horizon} steps ({last} against {limit}), so that their \
             error over {steps} steps cannot be told"
        )));
    }
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

    /// The same weights, folded early on few steps: what is left out is how far w is from its limit.
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
        assert!(error(&[1.0, -1.0 + 1e-7], 1_000_000_000).is_err(), "w has not settled");
    }
}
