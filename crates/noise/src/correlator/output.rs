//! The last touch of a step: the noise leaves, scaled.

use crate::simd::per_isa;

per_isa! {
    /// out = scale x.
    pub(crate) fn write_scaled(scale: f32, x: &[f32], out: &mut [f32]) = write_scaled_body
}

#[inline(always)]
fn write_scaled_body(scale: f32, x: &[f32], out: &mut [f32]) {
    for (out, x) in out.iter_mut().zip(x) {
        *out = scale * *x;
    }
}

per_isa! {
    /// out += scale x.
    pub(crate) fn add_scaled(scale: f32, x: &[f32], out: &mut [f32]) = add_scaled_body
}

#[inline(always)]
fn add_scaled_body(scale: f32, x: &[f32], out: &mut [f32]) {
    for (out, x) in out.iter_mut().zip(x) {
        *out = scale.mul_add(*x, *out);
    }
}
