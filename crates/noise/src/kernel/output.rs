//! The last operation of a step of a plain stream: scaling the noise, and writing or adding it.

use crate::number::Real;
use crate::simd::{Lines, per_isa, per_line};

per_isa! {
    /// Sets out to scale * x. If `large`, writes directly to main memory, which avoids reading the cache
    /// lines of `out` first.
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
    /// Adds scale * x to out.
    pub(super) fn add_scaled(scale: f32, x: &[f32], out: &mut [f32]) {
        for (out, x) in out.iter_mut().zip(x) {
            *out = scale.mul_add(*x, *out);
        }
    }
}

per_isa! {
    /// Sets out to sum + scale * x, where scale * x is computed in single precision and the sum in double
    /// precision.
    pub(super) fn add_scaled_to_sum(scale: f32, x: &[f32], sum: &[f64], out: &mut [f32]) {
        for ((out, x), sum) in out.iter_mut().zip(x).zip(sum) {
            *out = (sum + f64::from(scale * x)) as f32;
        }
    }
}
