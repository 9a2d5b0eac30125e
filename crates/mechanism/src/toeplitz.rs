//! The algebra of lower-triangular Toeplitz matrices: power series truncated at n terms.
//!
//! A matrix is represented by its first column. Short series are multiplied and divided directly, long ones
//! by FFT and Newton's iteration; tests compare both.

use crate::numeric::series_division::Quotient;
use crate::numeric::transform::{Transform, convolve, fast_length};
use crate::numeric::vector::dot;

/// Maximum number of terms of the shorter factor for which a direct product is at least as fast as the FFT.
pub(crate) const DIRECT_TERMS: usize = 96;

/// Minimum number of terms for which quotients are computed in blocks of eight terms.
const MIN_TERMS_IN_LANES: usize = 4096;
/// Number of terms of a correlation that are processed for all lags while they are in cache.
const CACHED_TERMS: usize = 4096;

/// Returns the first `n` terms of a * b: the first column of the product of two Toeplitz matrices.
///
/// ```
/// use antinoise_mechanism::toeplitz::multiply;
/// assert_eq!(multiply(&[1.0, 1.0], &[1.0, 2.0, 3.0], 3), [1.0, 3.0, 5.0]);
/// ```
pub fn multiply(a: &[f64], b: &[f64], n: usize) -> Vec<f64> {
    let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
    let (short, long) = (&short[..short.len().min(n)], &long[..long.len().min(n)]);
    if short.len() > DIRECT_TERMS {
        return convolve(short, long, n);
    }
    let mut out = vec![0.0; n];
    for (shift, &s) in short.iter().enumerate() {
        for (o, &l) in out[shift..].iter_mut().zip(long) {
            *o += s * l;
        }
    }
    out
}

/// Returns the first `n` terms of a / b, where b\[0\] is not 0: the first column of A B^-1.
///
/// # Panics
/// When `b` is empty.
///
/// ```
/// use antinoise_mechanism::toeplitz::divide;
/// assert_eq!(divide(&[1.0], &[1.0, -1.0], 3), [1.0, 1.0, 1.0]);
/// ```
pub fn divide(a: &[f64], b: &[f64], n: usize) -> Vec<f64> {
    let b = &b[..b.len().min(n)];
    if b.len() <= DIRECT_TERMS { divide_directly(a, b, n) } else { divide_by_newton(a, b, n) }
}

fn divide_directly(a: &[f64], b: &[f64], n: usize) -> Vec<f64> {
    if n >= MIN_TERMS_IN_LANES {
        let mut out = vec![0.0; n];
        Quotient::new(b).fill(a, &mut out);
        return out;
    }
    let past: Vec<f64> = b[1..].iter().rev().copied().collect();
    let mut out = vec![0.0; n];
    for t in 0..n {
        let reach = past.len().min(t);
        let (before, rest) = out.split_at_mut(t);
        let known = dot(&past[past.len() - reach..], &before[t - reach..]);
        rest[0] = (a.get(t).copied().unwrap_or(0.0) - known) / b[0];
    }
    out
}

/// Divides by Newton's iteration. A correction by the residual removes the rounding errors of the transforms.
fn divide_by_newton(a: &[f64], b: &[f64], n: usize) -> Vec<f64> {
    let inverse = invert(b, n);
    let mut out = multiply(a, &inverse, n);
    let residual = subtract(a, &multiply(b, &out, n));
    for (o, correction) in out.iter_mut().zip(multiply(&residual, &inverse, n)) {
        *o += correction;
    }
    out
}

/// Returns a - b, where a is padded with zeros or truncated to the length of b.
fn subtract(a: &[f64], b: &[f64]) -> Vec<f64> {
    b.iter().enumerate().map(|(i, b)| a.get(i).copied().unwrap_or(0.0) - b).collect()
}

/// Returns the first `n` terms of 1 / b by Newton's iteration g <- g (2 - b g), which doubles the number of
/// correct terms. Transforms need only that length, since products wrap around onto terms that are already
/// known.
pub(crate) fn invert(b: &[f64], n: usize) -> Vec<f64> {
    let mut known = DIRECT_TERMS.min(n);
    let mut g = divide_directly(&[1.0], &b[..b.len().min(known)], known);
    while known < n {
        let wanted = (2 * known).min(n);
        let transform = Transform::new(fast_length(wanted));
        let inverse = transform.forward(&g);
        let mut residual = transform.product(&transform.forward(&b[..b.len().min(wanted)]), &inverse);
        residual.truncate(wanted);
        residual[..known].fill(0.0);
        let step = transform.product(&transform.forward(&residual), &inverse);
        g.extend(step[known..wanted].iter().map(|x| -x));
        known = wanted;
    }
    g
}

/// Returns the solution x of C^T x = v for the n x n Toeplitz matrix C with first column `c`, where n =
/// v.len(). It is a division of the reversed vector, and the adjoint of [`divide`].
pub(crate) fn divide_transposed(v: &[f64], c: &[f64]) -> Vec<f64> {
    let reversed: Vec<f64> = v.iter().rev().copied().collect();
    let mut x = divide(&reversed, c, v.len());
    x.reverse();
    x
}

/// Returns the sum over i of x\[i\] y\[i - lag\] for each lag below `lags`: the adjoint of [`multiply`].
///
/// ```
/// use antinoise_mechanism::toeplitz::correlate;
/// assert_eq!(correlate(&[1.0, 2.0, 3.0], &[1.0, 1.0, 1.0], 2), [6.0, 5.0]);
/// ```
pub fn correlate(x: &[f64], y: &[f64], lags: usize) -> Vec<f64> {
    let n = x.len();
    if lags <= DIRECT_TERMS {
        let mut sums = vec![0.0; lags];
        for first in (0..y.len().min(n)).step_by(CACHED_TERMS) {
            let here = &y[first..y.len().min(first + CACHED_TERMS)];
            for (sum, lag) in sums.iter_mut().zip(first..n) {
                *sum += dot(&x[lag..], here);
            }
        }
        return sums;
    }
    let reversed: Vec<f64> = x.iter().rev().copied().collect();
    let mut product = convolve(&reversed, &y[..y.len().min(n)], n);
    product.reverse();
    product.resize(lags, 0.0);
    product
}

/// Returns the first `n` terms of sqrt(a), where a\[0\] > 0: the power series c with c * c = a.
///
/// # Panics
/// When `a` is empty.
///
/// ```
/// use antinoise_mechanism::toeplitz::square_root;
/// assert_eq!(square_root(&[1.0, 1.0, 1.0], 3), [1.0, 0.5, 0.375]);
/// ```
pub fn square_root(a: &[f64], n: usize) -> Vec<f64> {
    let mut known = DIRECT_TERMS.min(n);
    let mut c = square_root_directly(a, known);
    while known < n {
        known = (2 * known).min(n);
        let quotient = divide(a, &c, known);
        c.resize(known, 0.0);
        for (c, q) in c.iter_mut().zip(quotient) {
            *c = 0.5 * (*c + q);
        }
    }
    c
}

fn square_root_directly(a: &[f64], n: usize) -> Vec<f64> {
    let mut c = vec![0.0; n];
    for t in 0..n {
        let a_t = a.get(t).copied().unwrap_or(0.0);
        c[t] = if t == 0 {
            a_t.sqrt()
        } else {
            let cross: f64 = (1..t).map(|s| c[s] * c[t - s]).sum();
            (a_t - cross) / (2.0 * c[0])
        };
    }
    c
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(n: usize, seed: u64) -> Vec<f64> {
        let mut state = seed;
        (0..n)
            .map(|t| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                ((state >> 11) as f64 / (1u64 << 53) as f64 + if t == 0 { 1.0 } else { 0.0 })
                    / (1.0 + t as f64)
            })
            .collect()
    }

    fn assert_close(x: &[f64], y: &[f64]) {
        assert_eq!(x.len(), y.len());
        for (t, (a, b)) in x.iter().zip(y).enumerate() {
            assert!((a - b).abs() <= 1e-13 * (1.0 + b.abs()), "term {t}: {a} against {b}");
        }
    }

    #[test]
    fn fast_forms_equal_the_direct_ones() {
        let n = 1000;
        let (a, b) = (series(n, 1), series(n, 2));
        let direct: Vec<f64> = (0..n).map(|t| (0..=t).map(|s| a[s] * b[t - s]).sum()).collect();
        assert_close(&multiply(&a, &b, n), &direct);
        assert_close(&divide(&a, &b, n), &divide_directly(&a, &b, n));
        assert_close(&square_root(&a, n), &square_root_directly(&a, n));
        let lagged: Vec<f64> = (0..n).map(|lag| (lag..n).map(|i| a[i] * b[i - lag]).sum()).collect();
        assert_close(&correlate(&a, &b, n), &lagged);
        assert_close(&correlate(&a, &b, 5), &lagged[..5]);
    }

    #[test]
    fn division_undoes_multiplication_and_its_transpose_is_an_adjoint() {
        for n in [1, 2, 95, 96, 97, 500] {
            let (a, b, v) = (series(n, 3), series(n, 4), series(n, 5));
            assert_close(&divide(&multiply(&a, &b, n), &b, n), &a);
            let (forward, adjoint) = (dot(&divide(&a, &b, n), &v), dot(&a, &divide_transposed(&v, &b)));
            assert!((forward - adjoint).abs() <= 1e-12 * forward.abs());
        }
    }

    #[test]
    fn long_series_by_short_ones_are_those_of_transforms() {
        let n = 2 * MIN_TERMS_IN_LANES + 5;
        for terms in [1, 2, 16, DIRECT_TERMS] {
            let (a, b) = (series(n, 6), series(terms, 7));
            assert_close(&multiply(&divide(&a, &b, n), &b, n), &a);
            let padded = correlate(&a, &series(n, 8), DIRECT_TERMS + 1);
            assert_close(&correlate(&a, &series(n, 8), terms), &padded[..terms]);
        }
    }
}
