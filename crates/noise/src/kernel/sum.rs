//! Weighted sums of past vectors, and of regenerated seeds (dense, tree and Fourier mechanisms, and any
//! banded C^-1 whose past is not stored).

use std::ops::Range;

use crate::number::Real;
use crate::simd::{Isa, per_isa};

/// One term of a sum: seed `seed` times `weight`, in row `row` of a window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Term {
    pub(crate) seed: u64,
    pub(crate) row: usize,
    pub(crate) weight: f64,
}

per_isa! {
    /// Adds weight * x to out.
    pub(super) fn accumulate[T: Real](weight: T, x: &[T], out: &mut [T]) {
        for (out, x) in out.iter_mut().zip(x) {
            *out = weight.times_plus(*x, *out);
        }
    }
}

per_isa! {
    /// Adds w_0 x_0, w_1 x_1, w_2 x_2 and w_3 x_3 to out, in this order.
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

/// Number of rows that [`accumulate_rows`] sums together.
pub(super) const ROWS: usize = 8;
/// Number of coordinates whose sums are kept in registers.
const LANES: usize = 8;

per_isa! {
    /// Adds w\[k\]\[r\] x\[k\] to out\[r\] for every k, in order, and every row r. Each vector is read once
    /// for all rows.
    pub(super) fn accumulate_rows(w: &[[f64; ROWS]], x: &[&[f64]], out: &mut [&mut [f64]; ROWS]) {
        let len = out[0].len();
        let whole = len / LANES * LANES;
        for from in (0..whole).step_by(LANES) {
            rows_of_lanes::<LANES>(w, x, from, out);
        }
        for from in whole..len {
            rows_of_lanes::<1>(w, x, from, out);
        }
    }
}

// Each row is a loop over all lanes, since the compiler does not vectorise a loop over lanes of several rows.
#[inline(always)]
fn rows_of_lanes<const L: usize>(w: &[[f64; ROWS]], x: &[&[f64]], from: usize, out: &mut [&mut [f64]; ROWS]) {
    let lanes = |row: &[f64]| -> [f64; L] { *row[from..].first_chunk().expect("lanes lie in their row") };
    let mut sums: [[f64; L]; ROWS] = std::array::from_fn(|r| lanes(out[r]));
    for (w, x) in w.iter().zip(x) {
        let x = lanes(x);
        for r in 0..ROWS {
            sums[r] = std::array::from_fn(|l| w[r].mul_add(x[l], sums[r][l]));
        }
    }
    for (out, sums) in out.iter_mut().zip(sums) {
        out[from..from + L].copy_from_slice(&sums);
    }
}

/// Sets out to the weighted sum of `count` vectors, added in order.
#[inline(always)]
pub(super) fn weighted_sum<'a, T: Real>(
    isa: Isa,
    count: usize,
    w: impl Fn(usize) -> T,
    x: impl Fn(usize) -> &'a [T],
    out: &mut [T],
) {
    out.fill(T::default());
    add_weighted(isa, 0..count, w, x, out);
}

/// Adds the weighted vectors of these terms to out, in order.
#[inline(always)]
pub(super) fn add_weighted<'a, T: Real>(
    isa: Isa,
    terms: Range<usize>,
    w: impl Fn(usize) -> T,
    x: impl Fn(usize) -> &'a [T],
    out: &mut [T],
) {
    let fours = terms.start + terms.len() / 4 * 4;
    for k in (terms.start..fours).step_by(4) {
        let w = [w(k), w(k + 1), w(k + 2), w(k + 3)];
        accumulate_four(isa, w, [x(k), x(k + 1), x(k + 2), x(k + 3)], out);
    }
    for k in fours..terms.end {
        accumulate(isa, w(k), x(k), out);
    }
}
