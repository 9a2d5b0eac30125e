//! Toeplitz coefficients of least loss, at most the loss of the classes that Toeplitz contains.

use super::harmonic::harmonic;
use super::search::minimize_banded;
use super::start::square_root_of;
use crate::design::blt;
use crate::design::class::Design;
use crate::design::spec::StrategySpec;
use crate::problem::Objective;
use crate::solution::Solution;
use crate::strategy::{BandedInverse, Class};
use crate::{Encoder, Participation, Problem, Result, Strategy, Workload};

/// Returns the `bands` coefficients of least loss; the solver begins at those of sqrt(A).
pub(super) fn optimized(problem: &Problem, bands: usize) -> Result<Solution<Vec<f64>>> {
    let start = square_root_of(&problem.workload, problem.steps, bands)?;
    let optimal_already = bands == problem.steps
        && problem.objective == Objective::Max
        && problem.participation == Participation::Single
        && problem.workload == Workload::Prefix;
    if optimal_already {
        return Ok(Solution::closed_form(start));
    }
    let mut others = vec![vec![1.0]];
    if problem.workload != Workload::Prefix {
        others.extend(problem.workload.coefficients(problem.steps)?);
    }
    if bands == problem.steps {
        others.extend(contained(problem)?);
    }
    if !problem.workload.is_toeplitz()
        && problem.objective == Objective::Max
        && problem.steps <= MAX_STEPS_OF_HARMONIC_START
    {
        others.push(harmonic(problem, bands)?.value);
    }
    minimize_banded(&start, &others, problem)
}

/// Returns the solutions of the classes that Toeplitz contains, as further starts. If the columns of several
/// participations overlap, they lead to minima that other starts miss.
fn contained(problem: &Problem) -> Result<Vec<Vec<f64>>> {
    let (steps, k) = (problem.steps, problem.participation.separation(problem.steps).max_participations);
    let mut found = Vec::new();
    if k > 1 && steps <= MAX_STEPS_OF_CONTAINED {
        found.push(blt::best(problem)?.coefficients()?);
        let inverse = StrategySpec { bands: Some(steps), ..StrategySpec::new(Class::BandedInverse) };
        if let Encoder::Toeplitz { coefficients, .. } =
            BandedInverse::design(&inverse, problem)?.value.encoder()?
        {
            found.push(coefficients);
        }
    } else if steps > MIN_STEPS_OF_BLT_START && problem.workload == Workload::Prefix {
        found.push(blt::best(problem)?.coefficients()?);
    }
    Ok(found)
}

/// Maximum number of steps for which the solver also starts from the best coefficients 1 / i + c if a p-norm
/// replaces the maximum row norm: optima of the smoothed loss can be worse by a few parts in 10^6.
const MAX_STEPS_OF_HARMONIC_START: usize = 256;

/// Maximum number of steps for which the classes that Toeplitz contains are designed too.
const MAX_STEPS_OF_CONTAINED: usize = 64;

/// Minimum number of steps for which the solver also starts from the best BLT, which is found fast: with so
/// large a problem there is time for few iterations only.
const MIN_STEPS_OF_BLT_START: usize = 1 << 17;
