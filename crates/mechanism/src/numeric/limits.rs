//! Limits on the size of matrices and lists that are held in memory, and on the size of norms.

use std::ops::RangeInclusive;

use antinoise_input::between;

use crate::{Error, Result};

/// Maximum number of coefficients that are held in memory: 10^8 numbers are 0.8 GB.
pub(crate) const MAX_MATERIALIZED: usize = 100_000_000;

/// Refuses more steps than coefficients are held in memory.
pub(crate) fn check_materializable(steps: usize) -> Result<()> {
    check_held("steps", steps)
}

/// As [`check_materializable`], for `count` numbers that are named `what`.
pub(crate) fn check_held(what: &str, count: usize) -> Result<()> {
    between(what, count, 1, MAX_MATERIALIZED, "the maximum that can be held in memory")?;
    Ok(())
}

/// Maximum number of steps for which the sparse rows of a noise matrix are listed: at this size, about 40
/// terms of 16 bytes a step.
const MAX_LISTED: usize = 1 << 20;

/// Refuses more steps than sparse rows are listed for.
pub(crate) fn check_rows_listable(steps: usize) -> Result<()> {
    between("steps", steps, 1, MAX_LISTED, "the maximum number of steps whose rows of noise can be listed")?;
    Ok(())
}

/// Maximum number of steps for which the dense rows of a noise matrix are stored. Its n^2 / 2 terms of 16
/// bytes are then 0.13 GB, and the 2 n^2 terms of the Fourier mechanism 0.5 GB.
pub(crate) const MAX_STORED_DENSE: usize = 4096;

/// Refuses more steps than dense rows are stored for.
pub(crate) fn check_dense_rows_storable(steps: usize) -> Result<()> {
    between("steps", steps, 1, MAX_STORED_DENSE, "the maximum for which dense noise rows are stored")?;
    Ok(())
}

/// The norms that can be squared in double precision: squares of smaller norms lose digits, and squares of
/// larger ones are infinite.
const NORMS: RangeInclusive<f64> = 1e-140..=1e150;

/// Returns whether the square of a norm is representable with all its digits; false for NaN.
pub(crate) fn norm_in_range(norm: f64) -> bool {
    NORMS.contains(&norm)
}

/// Returns the error for a norm out of range; `figure` names it and states its value.
pub(crate) fn out_of_range(figure: &str) -> Error {
    let range = format!("from {:e} to {:e}", NORMS.start(), NORMS.end());
    Error::Numerical(format!(
        "{figure} in double precision but must be {range}: the strategy's coefficients grow or shrink too fast"
    ))
}
