//! Weighted sums of seeds, made anew: dense, tree and Fourier mechanisms, and any banded C^-1 without memory.

use crate::simd::per_isa;

/// Row `row` of a window uses seed `seed` with `weight`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Use {
    pub(crate) seed: u64,
    pub(crate) row: usize,
    pub(crate) weight: f32,
}

per_isa! {
    /// out += weight x.
    pub(super) fn accumulate(weight: f32, x: &[f32], out: &mut [f32]) = accumulate_body
}

#[inline(always)]
fn accumulate_body(weight: f32, x: &[f32], out: &mut [f32]) {
    for (out, x) in out.iter_mut().zip(x) {
        *out = weight.mul_add(*x, *out);
    }
}
