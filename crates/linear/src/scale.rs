//! Entries as iterations take them.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use crate::error::{Error, Result};
use crate::matrix::Matrix;

/// Where the largest entry may lie. Beyond, digits are lost: faer's divide and conquer tells by absolute numbers what is
/// negligible, and squares overflow.
const KEPT: RangeInclusive<f64> = 1.0 / 256.0..=16384.0;

/// The whole matrix over a power of two, and that: 1 unless the largest entry from row `first(j)` on of every column j is
/// far from 1. Entries above are not read.
///
/// # Errors
/// When an entry is not finite: what iterates over it may go on for hours before it gives up.
pub(crate) fn near_one(x: &Matrix, first: impl Fn(usize) -> usize) -> Result<(Cow<'_, Matrix>, f64)> {
    let mut largest = 0.0;
    for entry in (0..x.ncols()).flat_map(|j| &x.column(j)[first(j)..]) {
        if !entry.is_finite() {
            return Err(Error::NoConvergence(x.nrows(), x.ncols()));
        }
        largest = entry.abs().max(largest);
    }
    if largest == 0.0 || KEPT.contains(&largest) {
        return Ok((Cow::Borrowed(x), 1.0));
    }
    let factor = power_of_two(largest);
    let mut scaled = x.clone();
    scaled.entries_mut().iter_mut().for_each(|x| *x /= factor);
    Ok((Cow::Owned(scaled), factor))
}

/// The largest power of two that is not above a positive number, or the smallest normal one.
fn power_of_two(x: f64) -> f64 {
    f64::from_bits(x.max(f64::MIN_POSITIVE).to_bits() & f64::INFINITY.to_bits())
}
