//! Precisions, and their rounding errors.

/// The precision in which a stream keeps coefficients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// Plain streams: [`Recursion::in_single_precision`](crate::Recursion::in_single_precision).
    Single,
    /// Streams on a grid, which make sums of seeds by [`Recursion::with_one_seed_per_step`](crate::Recursion::with_one_seed_per_step).
    Double,
}

/// Single precision rounds a step's factor times the noise's standard deviation: a step's noise, and with it a column of
/// C, is off by at most this part, twice over for a scale that the caller adds.
pub const OUTPUT_ROUNDING: f64 = 1.0 / (1u64 << 23) as f64;

/// Unit roundoff of double precision: an operation's relative error, at most.
pub(super) const UNIT_ROUNDOFF: f64 = f64::EPSILON / 2.0;
/// Rounding of one operation, twice over.
pub(super) const ULP: f64 = 2.0 * UNIT_ROUNDOFF;
