//! Scaling of a matrix by powers of two before a decomposition.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use crate::error::{Error, Result};
use crate::matrix::Matrix;

/// Frobenius norms (of the half that is read) for which a matrix needs no scaling. Outside this range digits
/// would be lost: faer's divide and conquer drops entries by absolute thresholds, and squares overflow or
/// underflow.
const UNSCALED_NORMS: RangeInclusive<f64> = 1.0 / 16.0..=1_048_576.0;

/// Returns a symmetric matrix divided by a power of two, and that power, which is 1 unless the entries of the
/// lower half are far from 1. Only the lower half is read.
///
/// # Errors
/// When an entry is not finite: an iteration over it may take hours to fail.
pub(crate) fn scaled_near_one(x: &Matrix) -> Result<(Cow<'_, Matrix>, f64)> {
    let (mut largest, mut squares) = (0.0, 0.0);
    for entry in (0..x.ncols()).flat_map(|j| &x.column(j)[j..]) {
        if !entry.is_finite() {
            return Err(Error::NoConvergence(x.nrows()));
        }
        largest = entry.abs().max(largest);
        squares += entry * entry;
    }
    if largest == 0.0 || UNSCALED_NORMS.contains(&squares.sqrt()) {
        return Ok((Cow::Borrowed(x), 1.0));
    }
    let factor = power_of_two(largest);
    let mut scaled = x.clone();
    scaled.entries_mut().iter_mut().for_each(|x| *x /= factor);
    Ok((Cow::Owned(scaled), factor))
}

/// Returns a power of two for each column; dividing the column by it brings its largest entry near 1.
pub(crate) fn column_powers(x: &Matrix) -> Vec<f64> {
    let largest = |j| x.column(j).iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    (0..x.ncols()).map(|j| power_of_two(largest(j))).collect()
}

/// Returns the largest power of two that is at most `x` > 0, or the smallest normal number if that is larger.
fn power_of_two(x: f64) -> f64 {
    f64::from_bits(x.max(f64::MIN_POSITIVE).to_bits() & f64::INFINITY.to_bits())
}
