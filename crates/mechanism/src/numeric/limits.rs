//! Limits on the size of matrices and lists that are held in memory, and on the size of norms.

use std::ops::RangeInclusive;

use antinoise_input::between;

use crate::{Error, Result};

/// Maximum number of coefficients that are held in memory: 10^8 numbers are 0.8 GB.
pub(crate) const MAX_MATERIALIZED: usize = 100_000_000;

/// Refuses more numbers than are held in memory.
pub(crate) fn check_materializable(steps: usize) -> Result<()> {
    between("steps", steps, 1, MAX_MATERIALIZED, "the maximum that can be held in memory")?;
    Ok(())
}

/// Maximum number of steps whose sparse noise rows are listed: about 40 terms of 16 bytes a step at this
/// size.
const MAX_LISTED: usize = 1 << 20;

/// Refuses too many steps for a list of sparse rows.
pub(crate) fn check_rows_listable(steps: usize) -> Result<()> {
    between("steps", steps, 1, MAX_LISTED, "the maximum number of steps whose rows of noise can be listed")?;
    Ok(())
}

/// Maximum number of steps whose dense noise rows are stored: n^2 / 2 terms of 16 bytes are 0.13 GB; 2 n^2,
/// for the Fourier mechanism, 0.5 GB.
pub(crate) const MAX_STORED_DENSE: usize = 4096;

/// Refuses too many steps for dense rows.
pub(crate) fn check_dense_rows_storable(steps: usize) -> Result<()> {
    between("steps", steps, 1, MAX_STORED_DENSE, "the maximum for which dense noise rows are stored")?;
    Ok(())
}

/// The range of norms whose squares double precision can represent: below it squares lose digits, above it
/// they are infinite.
const NORMS: RangeInclusive<f64> = 1e-140..=1e150;

/// Returns whether the square of a norm keeps its digits; false for NaN.
pub(crate) fn norm_in_range(norm: f64) -> bool {
    NORMS.contains(&norm)
}

/// Returns the error for a norm out of range; `figure` names it and states its value.
pub(crate) fn out_of_range(figure: &str) -> Error {
    let range = format!("from {:e} to {:e}", NORMS.start(), NORMS.end());
    Error::Numerical(format!(
        "{figure} in double precision but must be {range}: the strategy's numbers grow or shrink too far"
    ))
}
