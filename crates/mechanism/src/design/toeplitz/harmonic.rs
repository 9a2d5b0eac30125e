//! The coefficients 1 / i + c for i = 1, 2, ..., which have a single free parameter c (BandMF, Appendix J).

use crate::sensitivity::of_toeplitz;
use crate::solution::{Solution, Status};
use crate::strategy::first_column;
use crate::{Problem, Result};

/// The values of c that are tried first: minimum, maximum and number.
const FIRST_LOOK: (f64, f64, usize) = (1e-6, 1e4, 41);
/// Number of golden-section steps, each of which reduces the range of ln c by a factor of 0.62.
const SECTIONS: usize = 30;

/// Returns the coefficients 1 / i + c with the best c >= 0: tries c = 0 and many other values, then a
/// golden-section search around the best one.
pub(super) fn harmonic(problem: &Problem, bands: usize) -> Result<Solution<Vec<f64>>> {
    let of = |c: f64| -> Vec<f64> { (1..=bands).map(|i| 1.0 / i as f64 + c).collect() };
    // The first evaluation returns any error of the problem itself, such as a schema that does not fit; later
    // errors count as an infinite loss.
    let mut best = (0.0, loss(&of(0.0), problem)?);
    let mut evaluations = 1;
    let mut loss = |c: f64| -> f64 {
        evaluations += 1;
        loss(&of(c), problem).unwrap_or(f64::INFINITY)
    };
    let (first, last, count) = FIRST_LOOK;
    let step = (last / first).ln() / (count - 1) as f64;
    let at = |place: f64| first * (step * place).exp();
    let mut place = None;
    for i in 0..count {
        let found = loss(at(i as f64));
        if found < best.1 {
            (best, place) = ((at(i as f64), found), Some(i as f64));
        }
    }
    if let Some(place) = place {
        let golden = 0.5 * (5f64.sqrt() - 1.0);
        let (mut low, mut high) = (place - 1.0, place + 1.0);
        let inner = |low: f64, high: f64| (high - golden * (high - low), low + golden * (high - low));
        let (mut left, mut right) = inner(low, high);
        let (mut of_left, mut of_right) = (loss(at(left)), loss(at(right)));
        for _ in 0..SECTIONS {
            if of_left < of_right {
                (high, right, of_right) = (right, left, of_left);
                left = inner(low, high).0;
                of_left = loss(at(left));
            } else {
                (low, left, of_left) = (left, right, of_right);
                right = inner(low, high).1;
                of_right = loss(at(right));
            }
        }
        for (place, found) in [(left, of_left), (right, of_right)] {
            if found < best.1 {
                best = (at(place), found);
            }
        }
    }
    Ok(Solution {
        value: of(best.0),
        status: Status::Converged,
        gap: None,
        iterations: evaluations,
        improved: best.0 > 0.0,
    })
}

/// Returns the loss of the banded Toeplitz C with this first column.
fn loss(coefficients: &[f64], problem: &Problem) -> Result<f64> {
    let error = first_column::error(coefficients, problem.steps, &problem.workload)?.of(problem.objective);
    Ok(error * of_toeplitz(coefficients, problem.steps, &problem.participation)?.value)
}
