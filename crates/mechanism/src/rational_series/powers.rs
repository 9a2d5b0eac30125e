//! Polynomials in x, rewritten as polynomials in X = x / (1 - x).

/// Returns the coefficients of X, X^2, ..., X^degree of (1 + X)^degree (1 + sum_k c\[k - 1\] x^k) with x = X
/// / (1 + X).
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
pub(super) fn binomial_power(a: f64, b: f64, power: usize) -> Vec<f64> {
    let mut out = vec![0.0; power + 1];
    out[0] = 1.0;
    for _ in 0..power {
        for k in (0..=power).rev() {
            out[k] = a * out[k] + if k > 0 { b * out[k - 1] } else { 0.0 };
        }
    }
    out
}
