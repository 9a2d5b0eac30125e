//! Weighted sums of seeds, made anew: dense, tree and Fourier mechanisms, and any banded C^-1 without memory.

use crate::number::Real;
use crate::simd::per_isa;

/// One term of a sum: row `row` of a window reads seed `seed` with `weight`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Term {
    pub(crate) seed: u64,
    pub(crate) row: usize,
    pub(crate) weight: f64,
}

per_isa! {
    /// out += weight x.
    pub(super) fn accumulate[T: Real](weight: T, x: &[T], out: &mut [T]) {
        for (out, x) in out.iter_mut().zip(x) {
            *out = weight.times_plus(*x, *out);
        }
    }
}
