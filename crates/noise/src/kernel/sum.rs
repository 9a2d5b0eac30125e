//! Weighted sums: of past vectors, and of regenerated seeds (dense, tree and Fourier mechanisms, and any banded
//! C^-1 without memory).

use crate::number::Real;
use crate::simd::{Isa, per_isa};

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

per_isa! {
    /// out += w_0 x_0 + w_1 x_1 + w_2 x_2 + w_3 x_3, in this order.
    fn accumulate_four[T: Real](w: [T; 4], x: [&[T]; 4], out: &mut [T]) {
        let [a, b, c, d] = x.map(|x| &x[..out.len()]);
        for j in 0..out.len() {
            let y = w[0].times_plus(a[j], out[j]);
            let y = w[1].times_plus(b[j], y);
            let y = w[2].times_plus(c[j], y);
            out[j] = w[3].times_plus(d[j], y);
        }
    }
}

/// out = the sum of `count` vectors times their weights, in this order.
#[inline(always)]
pub(super) fn weighted_sum<'a, T: Real>(
    isa: Isa,
    count: usize,
    w: impl Fn(usize) -> T,
    x: impl Fn(usize) -> &'a [T],
    out: &mut [T],
) {
    out.fill(T::default());
    let fours = count / 4 * 4;
    for k in (0..fours).step_by(4) {
        let w = [w(k), w(k + 1), w(k + 2), w(k + 3)];
        accumulate_four(isa, w, [x(k), x(k + 1), x(k + 2), x(k + 3)], out);
    }
    for k in fours..count {
        accumulate(isa, w(k), x(k), out);
    }
}
