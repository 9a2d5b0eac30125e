//! The last touch of a step: the noise leaves, scaled.

use crate::gaussian::Real;
use crate::simd::{Isa, Level, per_isa};

/// What is done with a row.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Emit {
    Write,
    Add(f32),
}

/// How the noise of one step leaves: times `factor`, on a grid of `spacing` or on none.
pub(crate) struct Leave {
    pub(crate) emit: Emit,
    pub(crate) factor: f64,
    pub(crate) spacing: Option<f64>,
    pub(crate) large: bool,
}

/// Outputs of more bytes than this will not be found in a cache again: they are written past it.
const PAST_CACHE: usize = 8 << 20;

/// True when `out` is better written past the caches.
pub(crate) fn is_large<T>(out: &[T]) -> bool {
    size_of_val(out) >= PAST_CACHE
}

/// out = scale x, past the caches if `large`: the lines of `out` are then not read first.
pub(crate) fn write_scaled<T: Real>(isa: Isa, large: bool, scale: T, x: &[T], out: &mut [T]) {
    match isa.level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa` of this level exists only where its features were detected.
        Level::Avx512 if large => unsafe { stream_scaled(scale, x, out) },
        _ => store_scaled(isa, scale, x, out),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn stream_scaled<T: Real>(scale: T, x: &[T], out: &mut [T]) {
    use std::arch::x86_64::{_mm_sfence, _mm512_loadu_si512, _mm512_stream_si512};
    let per_line = 64 / size_of::<T>();
    let head = out.as_ptr().align_offset(64).min(out.len());
    let (first, out) = out.split_at_mut(head);
    let (x_first, x) = x.split_at(head);
    store_scaled_body(scale, x_first, first);
    let (mut lines, mut x_lines) = (out.chunks_exact_mut(per_line), x.chunks_exact(per_line));
    for (out, x) in lines.by_ref().zip(x_lines.by_ref()) {
        let mut line = [scale; 16];
        store_scaled_body(scale, x, &mut line[..per_line]);
        // SAFETY: both hold 64 bytes; `out` starts at a multiple of 64 bytes, the load needs no alignment.
        unsafe { _mm512_stream_si512(out.as_mut_ptr().cast(), _mm512_loadu_si512(line.as_ptr().cast())) };
    }
    store_scaled_body(scale, x_lines.remainder(), lines.into_remainder());
    // Streamed lines may reach memory late; whoever reads them next must not be earlier.
    _mm_sfence();
}

per_isa! {
    fn store_scaled[T: Real](scale: T, x: &[T], out: &mut [T]) = store_scaled_body
}

#[inline(always)]
fn store_scaled_body<T: Real>(scale: T, x: &[T], out: &mut [T]) {
    for (out, x) in out.iter_mut().zip(x) {
        *out = scale * *x;
    }
}

per_isa! {
    /// out += scale x.
    pub(super) fn add_scaled(scale: f32, x: &[f32], out: &mut [f32]) = add_scaled_body
}

#[inline(always)]
fn add_scaled_body(scale: f32, x: &[f32], out: &mut [f32]) {
    for (out, x) in out.iter_mut().zip(x) {
        *out = scale.mul_add(*x, *out);
    }
}
