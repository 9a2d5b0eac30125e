//! The Fourier mechanism: prefix sums are the upper-left block of a circulant A_circ (2n x 2n), and C_F is
//! the first n columns of the square root of A_circ.
//!
//! 1. The eigenvalues of A_circ are the discrete Fourier transform of (1^n, 0^n): n at frequency 0, 0 at the
//!    other even frequencies, and 2 / (1 - exp(-i theta)) with theta = pi k / n at odd frequencies k.
//! 2. With h = theta / 2 in (0, pi / 2], the latter are exp(-i (pi / 2 - h)) / sin(h). The principal square
//!    root halves the angle.
//! 3. The inverse transform of the roots is the first column of the square root of A_circ.

use std::f64::consts::PI;

use antinoise_linear::{Error, Matrix};
use realfft::RealFftPlanner;
use realfft::num_complex::Complex;

use crate::Result;
use crate::numeric::vector::dot;

/// Returns the first column of the square root of A_circ, 2n real values.
pub(super) fn coefficients(n: usize) -> Vec<f64> {
    from_spectrum(n, (n as f64).sqrt(), |half| {
        Complex::from_polar(half.sin().powf(-0.5), 0.5 * half - 0.25 * PI)
    })
}

/// Returns the n values r with (C_F^T C_F)\[t, tau\] = r_{|t - tau|}: the inverse transform of the magnitudes
/// of A_circ's eigenvalues.
pub(super) fn autocorrelation(n: usize) -> Vec<f64> {
    let mut r = from_spectrum(n, n as f64, |half| Complex::new(1.0 / half.sin(), 0.0));
    r.truncate(n);
    r
}

/// Returns the real sequence of length 2n with the eigenvalues `zero` at frequency 0, `odd(theta / 2)` at odd
/// frequencies and 0 elsewhere.
fn from_spectrum(n: usize, zero: f64, odd: impl Fn(f64) -> Complex<f64>) -> Vec<f64> {
    let mut spectrum: Vec<Complex<f64>> = (0..=n)
        .map(|k| if k % 2 == 1 { odd(0.5 * PI * k as f64 / n as f64) } else { Complex::default() })
        .collect();
    spectrum[0] = zero.into();
    // This entry is real by symmetry, up to rounding.
    spectrum[n].im = 0.0;
    let mut out = vec![0.0; 2 * n];
    RealFftPlanner::<f64>::new()
        .plan_fft_inverse(2 * n)
        .process(&mut spectrum, &mut out)
        .expect("buffers have the plan's lengths and the ends are real");
    out.iter_mut().for_each(|x| *x /= 2.0 * n as f64);
    out
}

/// Returns the lower-triangular N with N N^T = X^-1 for the positive definite Toeplitz X (n x n) with first
/// column `r`.
///
/// # Errors
/// When X is not positive definite in double precision.
pub(super) fn inverse_factor(r: &[f64]) -> Result<Matrix> {
    let n = r.len();
    let mut factor = Matrix::zeros(n, n);
    each_inverse_column(r, |column, entries| {
        entries.enumerate().for_each(|(i, a)| factor[(column + i, column)] = a);
    })?;
    Ok(factor)
}

/// Calls `take` with the index and the entries, from the diagonal down, of each column of the N of
/// [`inverse_factor`], from the last column to the first. O(n^2) time, O(n) memory.
///
/// Durbin's recursion gives the filters that predict a stationary sequence with autocorrelation `r`. The
/// filter of each order, divided by the standard deviation of its prediction error, is a column of N.
///
/// # Errors
/// When X is not positive definite in double precision.
pub(super) fn each_inverse_column(
    r: &[f64],
    mut take: impl FnMut(usize, &mut dyn Iterator<Item = f64>),
) -> Result<()> {
    let n = r.len();
    let (mut filter, mut error) = (vec![1.0], r[0]);
    let backwards: Vec<f64> = r.iter().rev().copied().collect();
    for order in 0..n {
        if order > 0 {
            // The inner product of the filter with r_order, r_{order - 1}, ..., r_1.
            let reflection = -dot(&filter, &backwards[n - 1 - order..n - 1]) / error;
            filter.push(0.0);
            add_reversed(&mut filter, reflection);
            error *= 1.0 - reflection * reflection;
        }
        if error.is_nan() || error <= 0.0 {
            return Err(Error::NotPositiveDefinite(n).into());
        }
        let root = error.sqrt();
        take(n - 1 - order, &mut filter.iter().map(|a| a / root));
    }
    Ok(())
}

/// Adds the reversed vector to x: replaces x_i by x_i + factor x_{last - i}.
fn add_reversed(x: &mut [f64], factor: f64) {
    let (mut i, mut j) = (0, x.len() - 1);
    while i < j {
        (x[i], x[j]) = (x[i] + factor * x[j], x[j] + factor * x[i]);
        (i, j) = (i + 1, j - 1);
    }
    if i == j {
        x[i] += factor * x[i];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_squared_is_the_circulant_of_prefix_sums() {
        for n in [1, 2, 3, 8, 33] {
            let c = coefficients(n);
            for t in 0..2 * n {
                let square: f64 = (0..2 * n).map(|s| c[s] * c[(2 * n + t - s) % (2 * n)]).sum();
                assert!((square - f64::from(t < n)).abs() < 1e-13, "n={n} {t}: {square}");
            }
        }
    }

    #[test]
    fn the_inverse_factor_undoes_the_toeplitz_matrix() {
        for n in [1, 2, 3, 8, 33, 200] {
            let r = autocorrelation(n);
            let factor = inverse_factor(&r).unwrap();
            let x = Matrix::from_fn(n, n, |i, j| r[i.abs_diff(j)]);
            let identity =
                antinoise_linear::product(&antinoise_linear::product(factor.transpose(), &x), &factor);
            for j in 0..n {
                for i in 0..n {
                    assert!((identity[(i, j)] - f64::from(i == j)).abs() < 1e-12, "n={n} {i} {j}");
                    assert!(i >= j || factor[(i, j)] == 0.0, "n={n} {i} {j}");
                }
            }
        }
        assert!(inverse_factor(&[1.0, 1.0]).is_err());
    }
}
