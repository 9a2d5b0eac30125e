//! The dense design for min-sep with several participations, with a lower bound on its loss.
//!
//! Min-sep has too many patterns to list, but few of them are the worst ones of the best C. The design for
//! listed patterns ([`Overlapping`]) is solved again and again, each time with more patterns:
//!
//! 1. The least loss for some patterns is a lower bound on the loss for all of them. It holds for C without
//!    negative inner products; one a little lower holds for every C.
//! 2. Its X violates other patterns. Points between a feasible X and this one are made feasible: divided by
//!    the largest sum of |X\[t, tau\]| over a pattern. The best of them is the next feasible X.
//! 3. The worst pattern for each first step is added: of the X of step 1, and of the X half-way to it.
//!    Half-way, the worst patterns are more often those of the optimum.
//!
//! # Source
//! Cutting planes with in-out separation: Ben-Ameur and Neto (2007).

use std::collections::BTreeSet;

use antinoise_linear::{Matrix, product};

use super::certified::{ascend_to, cost, squared_error};
use super::overlapping::Overlapping;
use super::queries::Queries;
use super::settings::DenseSettings;
use crate::sensitivity::PatternSearch;
use crate::solution::{Solution, Status};
use crate::{Problem, Result, Separation};

/// Relative gap of the squared loss at which the design stops.
const GAP: f64 = 1e-3;
/// Maximum number of lists of patterns.
const MAX_LISTS: usize = 80;
/// Maximum number of iterations for a list, and of n^3 times all iterations: about 15 seconds.
const MAX_ITERATIONS: usize = 100;
const MAX_WORK: usize = 3_000_000_000;
/// The gap of a list's solution relative to that of the design, and its limits.
const SHARE_OF_GAP: f64 = 0.1;
const GAPS: (f64, f64) = (2e-5, 1e-2);
/// Number of operations of a search for a worst pattern, and of all searches: about 15 seconds.
const OPERATIONS: usize = 1 << 22;
const MAX_OPERATIONS: u64 = 1 << 32;
/// Excess of a pattern's sum over 1 for which it is added.
const VIOLATED: f64 = 1e-5;
/// Fractions of the way from the feasible X to the solution of step 1.
const FRACTIONS: [f64; 4] = [1.0, 0.5, 0.25, 0.1];

/// Returns the C of least squared loss that is found from `start` on, with its gap. `a` is A divided by
/// `scale`.
pub(super) fn minimize(
    a: &Matrix,
    scale: f64,
    start: &Matrix,
    problem: &Problem,
) -> Result<Solution<Matrix>> {
    let n = problem.steps;
    let separation = problem.participation.separation(n);
    let mut patterns = densest(n, separation);
    let mut searches = Searches { separation, left: MAX_OPERATIONS };
    let mut inside = searches.feasible(&product(start.transpose(), start));
    let (mut best, mut value) = cost(inside.clone(), problem)?;
    // Of C without negative inner products, and of every C.
    let (mut bound, mut certified) = (0.0, 0.0);
    let (mut iterations, mut solved) = (0, None::<(Vec<f64>, usize)>);
    for _ in 0..MAX_LISTS {
        let left = (MAX_WORK / n.pow(3)).saturating_sub(iterations);
        if left == 0 || searches.left == 0 || value <= bound * (1.0 + GAP) {
            break;
        }
        let mut dual = Overlapping::new(Queries::new(a.clone(), problem.objective), &patterns, n, scale);
        let first = match &solved {
            Some((variables, patterns)) => dual.start_after(variables, *patterns),
            None => dual.start(),
        };
        let gap = (SHARE_OF_GAP * (value / bound - 1.0)).clamp(GAPS.0, GAPS.1);
        let settings = DenseSettings { gap, max_iterations: left.min(MAX_ITERATIONS) };
        // Lists whose multipliers are too ill-conditioned for double precision end the search.
        let Ok((found, variables)) = ascend_to(&mut dual, first, problem, &settings) else { break };
        iterations += found.iterations.max(1);
        if let Some(gap) = found.gap {
            bound = f64::max(bound, squared_error(&found.value, problem)? / (1.0 + gap));
        }
        certified = f64::max(certified, dual.bound_for_all_signs(&variables).unwrap_or(0.0));
        let (before, outside) = (inside.clone(), product(found.value.transpose(), &found.value));
        for fraction in FRACTIONS {
            let between = searches.feasible(&mixed(&before, &outside, fraction));
            if let Ok((encoder, squared)) = cost(between.clone(), problem)
                && squared < value
            {
                (best, value, inside) = (encoder, squared, between);
            }
        }
        let known = patterns.len();
        let half_way = mixed(&before, &outside, 0.5);
        for x in [&outside, &half_way] {
            patterns.extend(searches.worst(x, 1.0 + VIOLATED));
        }
        // A solve that stalled may violate nothing. Longer lists often help it.
        if !has_more(&mut patterns, known) {
            patterns.extend(searches.worst(&outside, 0.0));
            if !has_more(&mut patterns, known) {
                break;
            }
        }
        solved = Some((variables, known));
    }
    let gap = (value / certified - 1.0).max(0.0);
    let is_close = value <= bound * (1.0 + GAP) && certified > 0.0;
    let status = if is_close { Status::Converged } else { Status::IterationLimit };
    Ok(Solution { value: best, status, gap: gap.is_finite().then_some(gap), iterations, improved: true })
}

/// The patterns whose participations are all `min_sep` apart, without those that others contain.
fn densest(n: usize, Separation { min_sep: b, max_participations: k }: Separation) -> Vec<Vec<usize>> {
    let starts = b.max((n + b).saturating_sub(k * b)).min(n);
    (0..starts).map(|start| (start..n).step_by(b).take(k).collect()).collect()
}

/// Drops patterns after the first `known` that are listed before; returns whether any remain.
fn has_more(patterns: &mut Vec<Vec<usize>>, known: usize) -> bool {
    let mut seen: BTreeSet<_> = patterns[..known].iter().cloned().collect();
    let mut added = patterns.split_off(known);
    added.retain(|pattern| seen.insert(pattern.clone()));
    patterns.append(&mut added);
    patterns.len() > known
}

fn mixed(x: &Matrix, y: &Matrix, fraction: f64) -> Matrix {
    Matrix::from_fn(x.nrows(), x.ncols(), |i, j| x[(i, j)] + fraction * (y[(i, j)] - x[(i, j)]))
}

/// The searches for worst patterns, and how many operations they have left.
struct Searches {
    separation: Separation,
    left: u64,
}

impl Searches {
    /// Returns X divided by the largest sum of |X\[t, tau\]| over a pattern, or by an upper bound on it.
    fn feasible(&mut self, x: &Matrix) -> Matrix {
        let worst = PatternSearch::of_magnitudes(x, self.separation).largest(OPERATIONS);
        self.left = self.left.saturating_sub(worst.operations as u64);
        Matrix::from_fn(x.nrows(), x.ncols(), |i, j| x[(i, j)] / worst.value)
    }

    /// The worst pattern for each first step, if its sum of |X\[t, tau\]| is above `floor`.
    fn worst(&mut self, x: &Matrix, floor: f64) -> Vec<Vec<usize>> {
        let search = PatternSearch::of_magnitudes(x, self.separation);
        let each = (self.left / x.nrows() as u64).min(OPERATIONS as u64) as usize;
        let all: Vec<_> = (0..x.nrows()).map(|first| search.largest_from(first, floor, each)).collect();
        self.left = self.left.saturating_sub(all.iter().map(|worst| worst.operations as u64).sum());
        all.into_iter().map(|worst| worst.steps).filter(|steps| !steps.is_empty()).collect()
    }
}
