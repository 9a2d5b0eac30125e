//! The first column of a Toeplitz C: checks, and the norms of B.

use crate::decoder::{ErrorNorms, rows_of_toeplitz, steady_state};
use crate::{Recursion, Result, Workload};

/// Refuses a first column of a Toeplitz C that is not lower triangular and invertible.
pub(super) fn check(steps: usize, coefficients: &[f64]) -> Result<()> {
    antinoise_input::at_least("steps", steps, 1)?;
    Workload::Toeplitz { coefficients: coefficients.to_vec() }.check()?;
    antinoise_input::between("coefficients' length", coefficients.len(), 1, steps, "steps")?;
    Ok(())
}

/// Returns the norms of B for the banded Toeplitz C with this first column.
pub(crate) fn error(coefficients: &[f64], steps: usize, workload: &Workload) -> Result<ErrorNorms> {
    if *workload == Workload::Prefix && steps > steady_state::MAX_EXACT_STEPS {
        return steady_state::error(coefficients, steps);
    }
    let recursion = Recursion::AutoRegressive { taps: coefficients.to_vec() };
    ErrorNorms::of_rows(&rows_of_toeplitz(coefficients, steps, workload, &recursion)?)
}
