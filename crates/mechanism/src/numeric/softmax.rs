//! A smooth approximation of the maximum of several numbers.

/// Exponents, for successive solves, of the p-norm that replaces the maximum of squared row norms.
pub(crate) const ROW_EXPONENTS: [f64; 5] = [8.0, 64.0, 512.0, 4096.0, 32_768.0];

/// Returns the `exponent`-norm of `x` >= 0 divided by `len^(1/exponent)`, and its gradient. It is at most the
/// maximum and at least `len^(-1/exponent)` times the maximum.
pub(crate) fn soft_maximum(x: &[f64], exponent: f64) -> (f64, Vec<f64>) {
    let largest = x.iter().copied().fold(0.0, f64::max);
    if largest <= 0.0 || !largest.is_finite() {
        return (largest, vec![0.0; x.len()]);
    }
    let mean = x.iter().map(|x| (x / largest).powf(exponent)).sum::<f64>() / x.len() as f64;
    let value = largest * mean.powf(1.0 / exponent);
    let scale = value / (mean * largest * x.len() as f64);
    (value, x.iter().map(|x| scale * (x / largest).powf(exponent - 1.0)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Tolerance, assert_gradient};

    #[test]
    fn the_gradient_is_the_finite_difference() {
        let x = [0.3, 2.0, 1.9, 0.0];
        for exponent in [2.0, 8.0, 64.0] {
            let (value, gradient) = soft_maximum(&x, exponent);
            assert!(value <= 2.0 && value >= 2.0 * 4f64.powf(-1.0 / exponent));
            // The smallest number, 0, has a kink.
            let f = |x: &[f64]| soft_maximum(&[x, &[0.0]].concat(), exponent).0;
            assert_gradient(
                &exponent.to_string(),
                f,
                &x[..3],
                &gradient[..3],
                1e-6,
                Tolerance::absolute(1e-7),
            );
        }
    }
}
