//! Operations on columns.

use crate::matrix::Matrix;

/// Number of independent partial sums, which the compiler can keep in vector registers.
const LANES: usize = 8;

/// Squared lengths below this bound are treated as 0: they are negligible in a matrix whose largest entry is
/// near 1, and underflow has lost their digits.
pub(super) const NEGLIGIBLE_SQUARE: f64 = 1e-280;

/// Returns the inner product x . y.
pub(super) fn dot(x: &[f64], y: &[f64]) -> f64 {
    let (x, y) = (x.chunks_exact(LANES), y.chunks_exact(LANES));
    let rest: f64 = x.remainder().iter().zip(y.remainder()).map(|(x, y)| x * y).sum();
    let mut sums = [0.0; LANES];
    for (x, y) in x.zip(y) {
        (0..LANES).for_each(|lane| sums[lane] += x[lane] * y[lane]);
    }
    sums.iter().sum::<f64>() + rest
}

/// x <- x + factor y.
pub(super) fn add_scaled(x: &mut [f64], factor: f64, y: &[f64]) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x += factor * y);
}

/// (x, y) <- (cos x + sin y, cos y - sin x).
pub(super) fn rotate(x: &mut [f64], y: &mut [f64], (cos, sin): (f64, f64)) {
    for (x, y) in x.iter_mut().zip(y) {
        (*x, *y) = (cos * *x + sin * *y, cos * *y - sin * *x);
    }
}

/// Columns i < j, mutable.
pub(super) fn two_columns(matrix: &mut Matrix, i: usize, j: usize) -> (&mut [f64], &mut [f64]) {
    let rows = matrix.nrows();
    let (before, from) = matrix.entries_mut().split_at_mut(j * rows);
    (&mut before[i * rows..(i + 1) * rows], &mut from[..rows])
}
