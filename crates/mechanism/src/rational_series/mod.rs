//! Power series P(X) / Q(X), where X = x / (1 - x) maps a sequence to the sums of its earlier terms.
//!
//! 1. Every rational function of x of degree d with value 1 at 0 is such a quotient, with P(0) = Q(0) = 1 and
//!    degrees at most d: multiply numerator and denominator by (1 + X)^d, since x = X / (1 + X).
//! 2. A factor 1 - lambda x is (1 - x)(1 + delta X) with delta = 1 - lambda. So the coefficient of X^k is the
//!    elementary symmetric function e_k of the complements delta of the poles or zeros. It does not lose
//!    digits as lambda approaches 1, where the coefficients of powers of x cancel, and it changes by a few
//!    units in the last place if the complements do.
//! 3. Complex and repeated poles need no other form.

pub(crate) mod running_sums;
pub(crate) mod sections;
pub(crate) mod stability;

/// Returns the coefficients of X, X^2, ..., X^degree of (1 + X)^degree (1 + sum_k c\[k - 1\] x^k) with x = X /
/// (1 + X).
///
/// # Panics
/// When `c` has more than `degree` numbers.
pub(crate) fn in_sums(c: &[f64], degree: usize) -> Vec<f64> {
    let mut out = vec![0.0; degree + 1];
    for (k, c) in std::iter::once(&1.0).chain(c).enumerate() {
        let rest = binomial_power(1.0, 1.0, degree - k);
        out[k..].iter_mut().zip(rest).for_each(|(sum, r)| *sum += c * r);
    }
    out.split_off(1)
}

/// Returns the coefficients of (a + b X)^power.
fn binomial_power(a: f64, b: f64, power: usize) -> Vec<f64> {
    let mut out = vec![1.0];
    for _ in 0..power {
        out.push(0.0);
        for k in (0..out.len()).rev() {
            out[k] = a * out[k] + if k > 0 { b * out[k - 1] } else { 0.0 };
        }
    }
    out
}
