//! Minimise ||A C^-1|| over banded Toeplitz matrices whose columns are scaled to norm 1.
//!
//! C = T D^-1 with D = diag of T's column norms: the loss of a general banded C with columns of norm 1, whose columns all
//! have the same coefficients. So its gradient is the general one, summed along the diagonals. O(n^2 bands) an
//! evaluation.
//!
//! # Source
//! BandMF, Appendix K.

use super::banded::{BandedLoss, MAX_LOSS_EXPONENTS, normalize_columns};
use super::best::Best;
use super::lbfgs::{self, Settings};
use super::{Objective, Solution};
use crate::workload::Operator;
use crate::{Problem, Result};

/// n^2 bands times iterations: about ten seconds.
const MOST_WORK: usize = 30_000_000_000;
/// Designs without time for so many iterations are left as they are: the start is within a part in 400 of the optimum.
const FEWEST_ITERATIONS: usize = 20;

/// Whether a design of so many steps and bands takes minutes at most.
pub(crate) fn can_optimize(steps: usize, bands: usize) -> bool {
    work(steps, bands).saturating_mul(FEWEST_ITERATIONS) <= MOST_WORK
}

fn work(steps: usize, bands: usize) -> usize {
    steps.saturating_mul(steps).saturating_mul(bands)
}

/// The Toeplitz coefficients, as many as `start` has, whose matrix with columns of norm 1 has the least ||A C^-1||.
///
/// # Errors
/// When the workload is not valid for the problem's steps.
pub(crate) fn minimize(start: &[f64], problem: &Problem) -> Result<Solution<Vec<f64>>> {
    let (steps, bands) = (problem.steps, start.len());
    let max = problem.objective == Objective::Max;
    let exponents: &[f64] = if max { &MAX_LOSS_EXPONENTS } else { &[1.0] };
    let loss = |exponent| -> Result<BandedLoss> {
        Ok(BandedLoss::new(Operator::new(&problem.workload, steps)?, steps, bands, exponent))
    };
    let along_columns = |c: &[f64]| c.repeat(steps);
    let plain = loss(1.0)?;
    let cost = |c: &[f64]| {
        let rows = plain.squared_rows(&normalize_columns(&along_columns(c), bands).rows);
        let cost = if max { rows.iter().copied().fold(0.0, f64::max) } else { rows.iter().sum() };
        if cost.is_finite() { cost } else { f64::INFINITY }
    };
    let mut best = Best::new(start.to_vec(), cost(start));
    let iterations = MOST_WORK / work(steps, bands) / exponents.len();
    let max_iterations =
        iterations.clamp(FEWEST_ITERATIONS / exponents.len(), Settings::default().max_iterations);
    let settings = Settings { max_iterations, ..Settings::default() };
    for &exponent in exponents {
        let loss = loss(exponent)?;
        // Scales do not matter: c_0 stays what it is.
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
    Ok(best.finished())
}
