//! The first column of a Toeplitz C: checks, length, square root of A, and loss.

use antinoise_input::between;

use super::spec::StrategySpec;
use crate::decoder::steady_state;
use crate::decoder::{ErrorNorms, rows_of_toeplitz};
use crate::sensitivity::of_toeplitz;
use crate::toeplitz::square_root;
use crate::{Problem, Recursion, Result, Separation, Workload};

/// Number of bands if the spec requests none.
const DEFAULT_BANDS: usize = 16;

/// Refuses a column that no lower-triangular, invertible Toeplitz matrix has.
pub(super) fn check(steps: usize, coefficients: &[f64]) -> Result<()> {
    antinoise_input::at_least("steps", steps, 1)?;
    Workload::Toeplitz { coefficients: coefficients.to_vec() }.check()?;
    antinoise_input::between("coefficients' length", coefficients.len(), 1, steps, "steps")?;
    Ok(())
}

/// Returns the requested number of bands, or the default: at most the number of steps, and at most the
/// separation of several participations.
pub(super) fn bands_of(spec: &StrategySpec, problem: &Problem) -> Result<usize> {
    let Separation { min_sep: b, max_participations: k } = problem.participation.separation(problem.steps);
    let default = if k > 1 { DEFAULT_BANDS.min(b) } else { DEFAULT_BANDS.min(problem.steps) };
    Ok(between("bands", spec.bands.unwrap_or(default), 1, problem.steps, "steps")?)
}
/// Returns the first `bands` coefficients of sqrt(A), or of the square root of prefix sums if A is not
/// Toeplitz. For prefix sums c_0 = 1, c_t = c_{t-1} (2t - 1) / (2t) (monograph, Theorem 2.5).
pub(super) fn square_root_of(workload: &Workload, steps: usize, bands: usize) -> Result<Vec<f64>> {
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

/// Returns the norms of B for the banded C with this first column.
pub(super) fn error(coefficients: &[f64], steps: usize, workload: &Workload) -> Result<ErrorNorms> {
    if *workload == Workload::Prefix && steps > steady_state::MAX_EXACT_STEPS {
        return steady_state::error(coefficients, steps);
    }
    let recursion = Recursion::AutoRegressive { taps: coefficients.to_vec() };
    ErrorNorms::of_rows(&rows_of_toeplitz(coefficients, steps, workload, &recursion)?)
}

/// Returns the loss of the banded C with this first column.
pub(super) fn loss(coefficients: &[f64], problem: &Problem) -> Result<f64> {
    let error = error(coefficients, problem.steps, &problem.workload)?.of(problem.objective);
    Ok(error * of_toeplitz(coefficients, problem.steps, &problem.participation)?.value)
}
