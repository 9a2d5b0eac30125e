//! The last operation of a plain step: noise is scaled, and written or added.

use crate::number::Real;
use crate::simd::{Lines, per_isa, per_line};

per_isa! {
    /// out = scale x; past the caches if `large`, which avoids reading the lines of `out` first.
    pub(super) fn write_scaled<set>[T: Real](large: bool, scale: T, x: &[T], out: &mut [T]) {
        if !(set.streams() && large) {
            return scale_each(scale, x, out);
        }
        let (head, mut lines, tail) = Lines::split(out);
        let (x_head, x) = x.split_at(head.len());
        let (x_lines, x_tail) = x.split_at(x.len() - tail.len());
        scale_each(scale, x_head, head);
        for x in x_lines.chunks_exact(per_line::<T>()) {
            let mut line = [scale; 16];
            scale_each(scale, x, &mut line[..per_line::<T>()]);
            set.write_lines(&line[..per_line::<T>()], lines.take(1));
        }
        scale_each(scale, x_tail, tail);
    }
}

#[inline(always)]
fn scale_each<T: Real>(scale: T, x: &[T], out: &mut [T]) {
    for (out, x) in out.iter_mut().zip(x) {
        *out = scale * *x;
    }
}

per_isa! {
    /// out += scale x.
    pub(super) fn add_scaled(scale: f32, x: &[f32], out: &mut [f32]) {
        for (out, x) in out.iter_mut().zip(x) {
            *out = scale.mul_add(*x, *out);
        }
    }
}

per_isa! {
    /// out = sum + scale x, with the noise in single precision and its sum with `sum` in double.
    pub(super) fn add_scaled_to_sum(scale: f32, x: &[f32], sum: &[f64], out: &mut [f32]) {
        for ((out, x), sum) in out.iter_mut().zip(x).zip(sum) {
            *out = (sum + f64::from(scale * x)) as f32;
        }
    }
}
