//! Minimise ||A C^-1|| over banded Toeplitz matrices whose columns are scaled to norm 1.
//!
//! C = T D^-1, where T is Toeplitz and D is the diagonal matrix of T's column norms, is a banded C as in
//! `banded`, whose Theta has the same coefficients in all columns. So the gradient is that of `banded`,
//! summed along the diagonals. O(n^2 bands) time an evaluation, O(n bands^2) for workloads with a short
//! recursion.
//!
//! # Source
//! BandMF, Appendix K.

use super::banded::{BandedLoss, exponents};
use super::best::Best;
use crate::numeric::lbfgs;
use crate::numeric::limits::check_held;
use crate::solution::Solution;
use crate::{Problem, Result};

/// A design may take 1 / 12 of the time of a design of `banded`: about ten seconds.
const SHARE_OF_TIME: usize = 12;
/// Minimum number of iterations. If they would take too long, there is no solve: the loss of the start is
/// already within 1/400 of the optimum.
const MIN_ITERATIONS: usize = 20;

/// Returns the `start.len()` Toeplitz coefficients that minimise ||A C^-1|| once the columns are scaled to
/// norm 1, or `None` if a solve would take too long.
///
/// # Errors
/// When the workload is not valid for the problem's steps.
pub(crate) fn minimize(start: &[f64], problem: &Problem) -> Result<Option<Solution<Vec<f64>>>> {
    let (steps, bands) = (problem.steps, start.len());
    if check_held("steps times bands", steps.saturating_mul(bands)).is_err() {
        return Ok(None);
    }
    let exponents = exponents(problem.objective);
    let loss = |exponent| BandedLoss::new(problem, bands, exponent);
    let plain = loss(1.0)?;
    let iterations = plain.iterations(1, SHARE_OF_TIME);
    if iterations < MIN_ITERATIONS {
        return Ok(None);
    }
    let along_columns = |c: &[f64]| c.repeat(steps);
    let cost = |c: &[f64]| plain.cost(&along_columns(c), problem.objective);
    let mut best = Best::new(start.to_vec(), cost(start));
    let max_iterations = (iterations / exponents.len()).min(lbfgs::Settings::default().max_iterations);
    let settings = lbfgs::Settings { max_iterations, ..lbfgs::Settings::default() };
    for &exponent in exponents {
        let loss = loss(exponent)?;
        // The scale of the coefficients does not matter, so the first is held fixed.
        let first = start[0];
        let f = |rest: &[f64]| {
            let c = [&[first], rest].concat();
            let (value, by_entry) = loss.value_and_gradient(&along_columns(&c));
            let mut gradient = vec![0.0; bands];
            for row in by_entry.chunks_exact(bands) {
                gradient.iter_mut().zip(row).for_each(|(sum, d)| *sum += d);
            }
            (value, gradient.split_off(1))
        };
        let found = lbfgs::minimize(f, best.value()[1..].to_vec(), &settings);
        let found = found.map(|rest| [&[first], &rest[..]].concat());
        let cost = cost(&found.value);
        best.offer(found, cost);
    }
    Ok(Some(best.finished()))
}
