//! The first coefficients of a Toeplitz C, by each rule.

use antinoise_input::{between, in_open_unit};

use super::averaged::minimize_averaged;
use super::harmonic::harmonic;
use super::optimized::optimized;
use super::start::square_root_of;
use crate::design::coefficient_rule::CoefficientRule;
use crate::numeric::limits::{check_held, check_materializable};
use crate::solution::Solution;
use crate::{Participation, Problem, Result, Separation, Workload};

/// Maximum number of separations in the mean of [`CoefficientRule::Averaged`].
const MAX_SEPARATIONS: usize = 33;

/// Returns the first `bands` coefficients of C, chosen by `rule`.
pub(crate) fn coefficients(
    problem: &Problem,
    bands: usize,
    rule: CoefficientRule,
) -> Result<Solution<Vec<f64>>> {
    // Without a steady state (which prefix sums with no more bands than the separation have), all n steps are
    // computed.
    let b = problem.participation.separation(problem.steps).min_sep;
    if problem.workload != Workload::Prefix || bands > b {
        check_materializable(problem.steps)?;
    }
    check_held("bands", bands)?;
    let root = || square_root_of(&problem.workload, problem.steps, bands);
    match rule {
        CoefficientRule::Optimized => optimized(problem, bands),
        CoefficientRule::SquareRoot => Ok(Solution::closed_form(root()?)),
        CoefficientRule::Damped { damping } => {
            let keep = 1.0 - in_open_unit("damped", damping)?;
            let damped = |(t, c): (usize, f64)| c * keep.powi(i32::try_from(t).unwrap_or(i32::MAX));
            Ok(Solution::closed_form(root()?.into_iter().enumerate().map(damped).collect()))
        }
        CoefficientRule::RationalApproximation => unreachable!("a spec takes it for BLTs alone"),
        CoefficientRule::Harmonic => harmonic(problem, bands),
        CoefficientRule::Tapered { from } => {
            between("tapered", from, 1, bands.saturating_sub(1), "bands - 1")?;
            let found = optimized(&separated(problem, bands), bands)?;
            Ok(found.map(|c| taper(c, from)))
        }
        CoefficientRule::Averaged { from } => {
            between("averaged", from, 1, bands.saturating_sub(1), "bands - 1")?;
            let start = taper(optimized(&separated(problem, bands), bands)?.value, from);
            let count = (bands - from + 1).min(MAX_SEPARATIONS);
            let at = |i: usize| from + i * (bands - from) / (count - 1);
            minimize_averaged(&start, &(0..count).map(at).collect::<Vec<_>>(), problem)
        }
    }
}

/// Returns the problem with the same number of participations and a separation of `bands` steps.
fn separated(problem: &Problem, bands: usize) -> Problem {
    let k = problem.participation.separation(problem.steps).max_participations;
    let separation = Separation { min_sep: bands, max_participations: k };
    let participation = Participation::min_sep(problem.steps, separation);
    Problem { participation, ..problem.clone() }
}

/// Multiplies coefficient i, counted from 1, by (bands - i) / (bands - from) for i >= from.
fn taper(mut c: Vec<f64>, from: usize) -> Vec<f64> {
    let bands = c.len();
    for (i, c) in c.iter_mut().enumerate().skip(from - 1) {
        *c *= (bands - 1 - i) as f64 / (bands - from) as f64;
    }
    c
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taper_ends_at_zero_and_leaves_the_head() {
        assert_eq!(taper(vec![1.0; 5], 2), [1.0, 1.0, 2.0 / 3.0, 1.0 / 3.0, 0.0]);
        assert_eq!(taper(vec![1.0; 2], 1), [1.0, 0.0]);
    }
}
