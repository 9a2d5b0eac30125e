//! Weighted sums of seeds, made anew: dense, tree and Fourier mechanisms, and any banded C^-1 without memory.

use crate::gaussian::Real;
use crate::simd::{Isa, per_isa};

/// Row `row` of a window uses seed `seed` with `weight`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Use {
    pub(crate) seed: u64,
    pub(crate) row: usize,
    pub(crate) weight: f64,
}

/// out = the sum of `terms` vectors with their weights, in order.
pub(super) fn weighted<'a, T: Real>(
    isa: Isa,
    terms: usize,
    term: impl Fn(usize) -> (T, &'a [T]),
    out: &mut [T],
) {
    out.fill(T::default());
    let fours = terms / 4 * 4;
    for first in (0..fours).step_by(4) {
        let four: [(T, &[T]); 4] = std::array::from_fn(|i| term(first + i));
        accumulate_four(isa, four.map(|(w, _)| w), four.map(|(_, x)| x), out);
    }
    for (weight, x) in (fours..terms).map(term) {
        accumulate(isa, weight, x, out);
    }
}

per_isa! {
    fn accumulate_four[T: Real](w: [T; 4], x: [&[T]; 4], out: &mut [T]) = accumulate_four_body
}

#[inline(always)]
fn accumulate_four_body<T: Real>(w: [T; 4], x: [&[T]; 4], out: &mut [T]) {
    let [a, b, c, d] = x.map(|x| &x[..out.len()]);
    for j in 0..out.len() {
        let y = w[0].times_plus(a[j], out[j]);
        let y = w[1].times_plus(b[j], y);
        let y = w[2].times_plus(c[j], y);
        out[j] = w[3].times_plus(d[j], y);
    }
}

per_isa! {
    /// out += weight x.
    pub(super) fn accumulate[T: Real](weight: T, x: &[T], out: &mut [T]) = accumulate_body
}

#[inline(always)]
fn accumulate_body<T: Real>(weight: T, x: &[T], out: &mut [T]) {
    for (out, x) in out.iter_mut().zip(x) {
        *out = weight.times_plus(*x, *out);
    }
}
