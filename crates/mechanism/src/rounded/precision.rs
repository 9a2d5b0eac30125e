//! The precisions of streams, and their rounding errors.

/// The precision in which a noise stream stores its coefficients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// Single precision, in plain streams: they run
    /// [`Recursion::in_single_precision`](crate::Recursion::in_single_precision).
    Single,
    /// Double precision, in streams on a grid: they rewrite sums of seeds by
    /// [`Recursion::with_one_seed_per_step`](crate::Recursion::with_one_seed_per_step).
    Double,
}

/// Bound on the relative error of a step's noise (and so of a column of C) that comes from rounding the
/// noise's standard deviation, times the step's factor, to single precision. It is twice that rounding error,
/// and so also covers a scale by which the caller multiplies the noise.
pub const OUTPUT_ROUNDING: f64 = 1.0 / (1u64 << 23) as f64;

/// Unit roundoff of double precision: the maximum relative error of one operation.
pub(super) const UNIT_ROUNDOFF: f64 = f64::EPSILON / 2.0;
/// Distance from 1 to the next double: twice the unit roundoff.
pub(super) const ULP: f64 = 2.0 * UNIT_ROUNDOFF;
