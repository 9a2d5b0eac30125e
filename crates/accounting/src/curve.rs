//! ln(delta) as a function of epsilon for the pair N(0, 1) and N(mu, 1).

use crate::normal::{LN_SQRT_2PI, mills, mills_drop};

/// The largest supported `mu`, whose square is well within the range of double precision.
pub(crate) const LARGEST_MU: f64 = 1e150;

/// Bound on the error of [`ln_delta`]: ten times the largest error in comparisons with 60-digit arithmetic.
pub(crate) fn rounding(ln_delta: f64) -> f64 {
    if ln_delta.is_finite() { 2e-12 + 1e-14 * ln_delta.abs() } else { 0.0 }
}

/// ln(Phi(-a) - e^epsilon Phi(-b)) with a, b = epsilon/mu -+ mu/2, for `mu` >= 0 and `epsilon` >= 0.
///
/// e^epsilon phi(b) = phi(a) turns it into ln(phi(a) (m(a) - m(b))) with the Mills ratio m. This neither
/// underflows nor overflows, and has a single difference, which [`mills_drop`] computes without cancellation.
pub(crate) fn ln_delta(mu: f64, epsilon: f64) -> f64 {
    if mu == 0.0 {
        return f64::NEG_INFINITY;
    }
    // Fused: epsilon - mu^2/2 may be a small difference of large numbers.
    let (a, b) = ((-0.5 * mu).mul_add(mu, epsilon) / mu, (0.5 * mu).mul_add(mu, epsilon) / mu);
    if a > LARGEST_MU {
        return f64::NEG_INFINITY;
    }
    let ln_density = -0.5 * a * a - LN_SQRT_2PI;
    if a < 0.0 && mu > 1.0 {
        return (-ln_density.exp() * (mills(-a) + mills(b))).ln_1p();
    }
    // The difference is about mu / (a b), which may underflow although its logarithm is in range.
    if a > 1e100 { ln_density + (mu / a).ln() - b.ln() } else { ln_density + mills_drop(a, b, mu).ln() }
}
