//! Stable polynomials P(X) from free variables: products of factors 1 + a X + b X^2 (two poles, real, equal
//! or conjugate) and, for odd degree, one factor 1 + delta X.
//!
//! The lambda of a factor are inside the unit circle if and only if b > 0, a - b > 0 and 1 - a / 2 + b / 4 >
//! 0. The three numbers (a - b) / 2, b / 4 and 1 - a / 2 + b / 4 add up to 1, so that they are the softmax of
//! (u, v, 0). If both lambda approach 1, u and v are logarithms. delta = 2 / (1 + exp(-u)).

use realfft::num_complex::Complex;

use crate::toeplitz::multiply;

/// Least weight of a softmax at a start: lambda on the unit circle would have infinite variables.
const MIN_WEIGHT: f64 = 1e-12;

/// A stable polynomial, with its factors.
pub(crate) struct Sections {
    /// The coefficients of X, X^2, ... of each factor.
    factors: Vec<Vec<f64>>,
}

impl Sections {
    /// Returns the polynomial of degree variables.len().
    pub(crate) fn from_variables(variables: &[f64]) -> Self {
        let factor = |u: &[f64]| match *u {
            [u, v] => {
                let top = u.max(v).max(0.0);
                let (first, second, rest) = ((u - top).exp(), (v - top).exp(), (-top).exp());
                let sum = first + second + rest;
                vec![(2.0 * first + 4.0 * second) / sum, 4.0 * second / sum]
            }
            _ => vec![2.0 / (1.0 + (-u[0]).exp())],
        };
        Self { factors: variables.chunks(2).map(factor).collect() }
    }

    /// Returns the coefficients of X, X^2, ... of the product.
    pub(crate) fn coefficients(&self) -> Vec<f64> {
        self.product_without(usize::MAX)[1..].to_vec()
    }

    /// Returns the coefficients, from X^0 on, of the product of all factors but one.
    fn product_without(&self, left_out: usize) -> Vec<f64> {
        let kept = self.factors.iter().enumerate().filter(|&(i, _)| i != left_out);
        kept.fold(vec![1.0], |product, (_, factor)| {
            let factor = [&[1.0], &factor[..]].concat();
            multiply(&product, &factor, product.len() + factor.len() - 1)
        })
    }

    /// Maps the derivative in the coefficients to that in the variables.
    pub(crate) fn gradient(&self, d_coefficients: &[f64]) -> Vec<f64> {
        let mut out = Vec::with_capacity(d_coefficients.len());
        for (i, factor) in self.factors.iter().enumerate() {
            let others = self.product_without(i);
            // The derivative in the factor's coefficient of X^k.
            let slope = |k: usize| -> f64 {
                others.iter().zip(&d_coefficients[k - 1..]).map(|(other, d)| other * d).sum()
            };
            match **factor {
                [a, b] => {
                    let (first, second) = (0.5 * (a - b), 0.25 * b);
                    let (da, db) = (slope(1), slope(2));
                    // a = 2 first + 4 second, b = 4 second; the softmax moves the weights against each other.
                    let (d_first, d_second) = (2.0 * da, 4.0 * (da + db));
                    let mean = first * d_first + second * d_second;
                    out.extend([first * (d_first - mean), second * (d_second - mean)]);
                }
                _ => out.push(slope(1) * factor[0] * (1.0 - 0.5 * factor[0])),
            }
        }
        out
    }
}

/// Returns the variables of the polynomial with these delta: real numbers and conjugate pairs, in any order.
/// Those of lambda on the unit circle or outside are moved inside.
pub(crate) fn variables(delta: &[Complex<f64>]) -> Vec<f64> {
    let mut real: Vec<f64> = delta.iter().filter(|z| z.im == 0.0).map(|z| z.re).collect();
    real.sort_by(f64::total_cmp);
    let pairs = delta.iter().filter(|z| z.im > 0.0).map(|z| [2.0 * z.re, z.norm_sqr()]);
    let (twos, last) = real.as_chunks::<2>();
    let factors: Vec<[f64; 2]> = pairs.chain(twos.iter().map(|[p, q]| [p + q, p * q])).collect();
    let linear = last.iter().map(|delta| (delta.max(MIN_WEIGHT) / (2.0 - delta).max(MIN_WEIGHT)).ln());
    factors.into_iter().flat_map(|[a, b]| of_factor(a, b)).chain(linear).collect()
}

/// Returns the variables of a polynomial with these variables, times 1 + delta X.
pub(crate) fn with_real(u: &[f64], delta: f64) -> Vec<f64> {
    let (pairs, last) = u.as_chunks::<2>();
    let mut out = pairs.concat();
    match last {
        [_] => {
            let other = Sections::from_variables(last).factors[0][0];
            out.extend(of_factor(other + delta, other * delta));
        }
        _ => out.extend(variables(&[delta.into()])),
    }
    out
}

/// Returns the two variables of the factor 1 + a X + b X^2.
fn of_factor(a: f64, b: f64) -> [f64; 2] {
    let weight = |x: f64| x.max(MIN_WEIGHT);
    let rest = weight(1.0 - 0.5 * a + 0.25 * b);
    [(weight(0.5 * (a - b)) / rest).ln(), (weight(0.25 * b) / rest).ln()]
}

/// Returns the zeros of z^d + c_1 z^(d-1) + ... + c_d, the lambda of the polynomial 1 + sum_k c_k x^k, by
/// Durand and Kerner's iteration: d numbers, conjugate in pairs, which suffice for starts.
pub(crate) fn zeros(c: &[f64]) -> Vec<Complex<f64>> {
    let at = |z: Complex<f64>| c.iter().fold(Complex::from(1.0), |value, c| value * z + c);
    let mut z: Vec<Complex<f64>> = (0..c.len())
        .map(|i| Complex::from_polar(0.9, 0.4 + i as f64 * std::f64::consts::TAU / c.len() as f64))
        .collect();
    for _ in 0..200 {
        for i in 0..z.len() {
            let apart: Complex<f64> = (0..z.len()).filter(|&j| j != i).map(|j| z[i] - z[j]).product();
            let step = at(z[i]) / apart;
            if step.is_finite() {
                z[i] -= step;
            }
        }
    }
    let is_real = |z: &Complex<f64>| z.im.abs() < 1e-7 * (1.0 + z.norm());
    let upper: Vec<Complex<f64>> = z.iter().filter(|z| !is_real(z) && z.im > 0.0).copied().collect();
    let real: Vec<Complex<f64>> = z.iter().filter(|z| is_real(z)).map(|z| z.re.into()).collect();
    upper.iter().flat_map(|z| [*z, z.conj()]).chain(real).collect()
}

#[cfg(test)]
mod tests {
    use super::super::stability::are_within;
    use super::*;
    use crate::testing::{Tolerance, assert_gradient};

    #[test]
    fn any_variables_are_stable_and_the_gradient_is_the_finite_difference() {
        for u in [vec![-1.0, -3.0, 0.5, 1.5, 0.3], vec![-9.0, -20.0, 4.0, -2.0], vec![2.0]] {
            let sections = Sections::from_variables(&u);
            let p = sections.coefficients();
            assert!(p.len() == u.len() && are_within(&p, 1.0), "{p:?}");
            let f = |u: &[f64]| {
                let p = Sections::from_variables(u).coefficients();
                p.iter().enumerate().map(|(k, p)| (1 + k) as f64 * p * p).sum::<f64>()
            };
            let slopes: Vec<f64> = p.iter().enumerate().map(|(k, p)| 2.0 * (1 + k) as f64 * p).collect();
            assert_gradient("sections", f, &u, &sections.gradient(&slopes), 1e-5, Tolerance::absolute(1e-7));
        }
    }

    #[test]
    fn variables_give_back_the_polynomial_with_these_zeros() {
        for c in [vec![-1.2, 0.5], vec![-0.5, 0.1, 0.3], vec![0.2, 0.1, -0.3, 0.2], vec![0.5]] {
            let lambda = zeros(&c);
            assert_eq!(lambda.len(), c.len());
            let delta: Vec<Complex<f64>> = lambda.iter().map(|lambda| 1.0 - lambda).collect();
            let p = Sections::from_variables(&variables(&delta)).coefficients();
            let expected = super::super::powers::in_sums(&c, c.len());
            let close = |(x, y): (&f64, &f64)| (x - y).abs() < 1e-9 * (1.0 + y.abs());
            assert!(p.iter().zip(&expected).all(close), "{p:?} {expected:?}");
        }
    }
}
