//! Operations on vectors.

use antinoise_input::larger;

/// Number of independent partial sums, and of columns or terms that are computed together.
pub(crate) const LANES: usize = 8;

/// Returns the inner product x . y, computed as eight independent partial sums for speed.
pub(crate) fn dot(x: &[f64], y: &[f64]) -> f64 {
    let n = x.len().min(y.len());
    let (x, y) = (&x[..n], &y[..n]);
    let mut sums = [0.0; LANES];
    let (xs, ys) = (x.chunks_exact(LANES), y.chunks_exact(LANES));
    let rest: f64 = xs.remainder().iter().zip(ys.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in xs.zip(ys) {
        for i in 0..LANES {
            sums[i] += a[i] * b[i];
        }
    }
    sums.iter().sum::<f64>() + rest
}

/// Returns ||x||^2.
pub(crate) fn norm_squared(x: &[f64]) -> f64 {
    dot(x, x)
}

/// Writes X y, for a square X given row by row.
pub(crate) fn write_product(x: &[f64], y: &[f64], out: &mut [f64]) {
    x.chunks_exact(y.len().max(1)).zip(out).for_each(|(row, out)| *out = dot(row, y));
}

/// Replaces x by x + factor y.
#[inline(always)]
pub(crate) fn add_scaled(x: &mut [f64], factor: f64, y: &[f64]) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x += factor * y);
}

/// Replaces x by x + y.
pub(crate) fn add(x: &mut [f64], y: &[f64]) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
}

/// Returns the smallest non-increasing sequence that is at least |c| in every entry. If an entry of c is NaN,
/// so are that entry of the result and all earlier ones.
pub(crate) fn non_increasing_majorant(c: &[f64]) -> Vec<f64> {
    let mut majorant: Vec<f64> = c.iter().map(|c| c.abs()).collect();
    for t in (1..c.len()).rev() {
        majorant[t - 1] = larger(majorant[t - 1], majorant[t]);
    }
    majorant
}
