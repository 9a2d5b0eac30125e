//! The number of coefficients of a Toeplitz design, and the coefficients at which its solver begins.

use antinoise_input::between;

use crate::design::spec::StrategySpec;
use crate::toeplitz::square_root;
use crate::{Problem, Result, Separation, Workload};

/// Number of bands if the spec requests none.
const DEFAULT_BANDS: usize = 16;

/// Returns the requested number of bands, or the default: at most the number of steps, and at most the
/// separation of several participations.
pub(crate) fn bands_of(spec: &StrategySpec, problem: &Problem) -> Result<usize> {
    let Separation { min_sep: b, max_participations: k } = problem.participation.separation(problem.steps);
    let default = if k > 1 { DEFAULT_BANDS.min(b) } else { DEFAULT_BANDS.min(problem.steps) };
    Ok(between("bands", spec.bands.unwrap_or(default), 1, problem.steps, "steps")?)
}

/// Returns the first `bands` coefficients of sqrt(A), or of the square root of prefix sums if A is not
/// Toeplitz. For prefix sums c_0 = 1, c_t = c_{t-1} (2t - 1) / (2t) (monograph, Theorem 2.5).
pub(crate) fn square_root_of(workload: &Workload, steps: usize, bands: usize) -> Result<Vec<f64>> {
    if *workload != Workload::Prefix
        && let Some(a) = workload.coefficients(steps)?
    {
        return Ok(square_root(&a, bands));
    }
    let mut c = vec![1.0; bands];
    for t in 1..bands {
        c[t] = c[t - 1] * (2 * t - 1) as f64 / (2 * t) as f64;
    }
    Ok(c)
}
