//! The last operation of a plain step: the noise is scaled, and written or added.

use crate::number::Real;
use crate::simd::{Instructions, LINE, per_isa, per_line};

per_isa! {
    /// out = scale x, past the caches if `large`: the lines of `out` are then not read first.
    pub(super) fn write_scaled[T: Real](large: bool, scale: T, x: &[T], out: &mut [T]) = write_body, given set
}

#[inline(always)]
fn write_body<S: Instructions, T: Real>(set: S, large: bool, scale: T, x: &[T], out: &mut [T]) {
    if !(S::STREAMS && large) {
        return scale_each(scale, x, out);
    }
    let head = out.as_ptr().align_offset(LINE).min(out.len());
    let (first, out) = out.split_at_mut(head);
    let (x_first, x) = x.split_at(head);
    scale_each(scale, x_first, first);
    let (mut lines, mut x_lines) = (out.chunks_exact_mut(per_line::<T>()), x.chunks_exact(per_line::<T>()));
    for (out, x) in lines.by_ref().zip(x_lines.by_ref()) {
        let mut line = [scale; 16];
        scale_each(scale, x, &mut line[..per_line::<T>()]);
        set.copy_lines(&line[..per_line::<T>()], out);
    }
    scale_each(scale, x_lines.remainder(), lines.into_remainder());
}

#[inline(always)]
fn scale_each<T: Real>(scale: T, x: &[T], out: &mut [T]) {
    for (out, x) in out.iter_mut().zip(x) {
        *out = scale * *x;
    }
}

per_isa! {
    /// out += scale x.
    pub(super) fn add_scaled(scale: f32, x: &[f32], out: &mut [f32]) = add_body
}

#[inline(always)]
fn add_body(scale: f32, x: &[f32], out: &mut [f32]) {
    for (out, x) in out.iter_mut().zip(x) {
        *out = scale.mul_add(*x, *out);
    }
}
