//! The pair of a step in which one sampled example is removed or added.
//!
//! With y = (t - 1)/q (or (1/t - 1)/q), the sampled curve is q times the Gaussian curve at ln(1 + y), or its
//! mirror image.
//!
//! Source: Balle, Barthe and Gaboardi, "Privacy amplification by subsampling" (2018), theorem 2, which is an
//! identity for this pair.

use antinoise_input::larger;

use super::pair::{Component, Pair, Point, Rounding};
use crate::normal::{density, mills, mills_drop};

/// The direction of a comparison: the example is removed or added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// P is the mixture (1-q) N(0, 1) + q N(mu, 1), Q is N(0, 1).
    Remove,
    /// P is N(0, 1), Q is the mixture.
    Add,
}

impl Direction {
    pub const BOTH: [Self; 2] = [Self::Remove, Self::Add];
}

/// A step with noise multiplier 1/`mu` and sampling rate `q`, in one direction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Profile {
    pub mu: f64,
    pub q: f64,
    pub direction: Direction,
}

/// Ten times the largest relative error of [`gaussian`] in comparisons with 60-digit arithmetic, without the
/// rounding of a and b.
pub(super) const EVALUATION_ERROR: f64 = 2e-12;

/// Loss from which on logarithms take the place of exponentials.
const LARGE: f64 = 30.0;

/// Number of standard deviations beyond which a normal density is 0 in double precision.
pub(super) const FARTHEST: f64 = 40.0;

impl Pair for Profile {
    /// The loss at an output that is `z` standard deviations from 0, towards the mean of the mixture.
    fn loss(&self, z: f64) -> f64 {
        let exponent = self.mu * (z - 0.5 * self.mu);
        // ln(1 - q + q e^exponent), in the form that is accurate for small losses.
        let loss = if exponent < 30.0 {
            (self.q * exponent.exp_m1()).ln_1p()
        } else {
            exponent + self.q.ln() + ((-exponent).exp() * (1.0 - self.q) / self.q).ln_1p()
        };
        if self.direction == Direction::Remove { loss } else { -loss }
    }

    fn steepness(&self, z: f64) -> f64 {
        // A logistic function of the exponent, which is 1/2 where both components weigh the same.
        let exponent = self.mu * (z - 0.5 * self.mu);
        self.mu / (1.0 + (1.0 - self.q) / self.q * (-exponent).exp())
    }

    fn bound(&self) -> f64 {
        if self.direction == Direction::Add { -(-self.q).ln_1p() } else { f64::INFINITY }
    }

    fn greatest(&self, reach: f64) -> f64 {
        match self.direction {
            Direction::Remove => self.loss(self.mu + reach),
            Direction::Add => self.loss(-reach),
        }
    }

    fn at(&self, loss: f64, rounding: Rounding) -> Point {
        let sign = rounding.sign();
        let (above, removing) = (loss >= 0.0, self.direction == Direction::Remove);
        // The curve for addition is that for removal with loss replaced by -loss and D by t D.
        let (toward, scale) = if removing { (loss, 1.0) } else { (-loss, loss.exp()) };
        let q = self.q;
        let tails =
            if above == removing { self.outer(toward, sign) } else { self.inner(toward.exp_m1() / q, sign) };
        let Some((value, near, far)) = tails else { return Point::ZERO };
        let slope = match (removing, above) {
            (true, true) => far,
            (true, false) => near,
            (false, true) => (1.0 - q) * near + q * far,
            (false, false) => (1.0 - q) * far + q * near,
        };
        Point { value: larger(scale * q * value, 0.0), slope }
    }

    fn components(&self) -> Vec<Component> {
        let component = |mean, weight: f64| Component { mean, ln_weight: weight.ln() };
        match self.direction {
            Direction::Add => vec![component(0.0, 1.0)],
            Direction::Remove if self.q == 1.0 => vec![component(self.mu, 1.0)],
            Direction::Remove => {
                vec![Component { mean: 0.0, ln_weight: (-self.q).ln_1p() }, component(self.mu, self.q)]
            }
        }
    }
}

impl Profile {
    /// G(ln(1 + y)) for y = (e^`loss` - 1) / q >= 0, with the two tails.
    fn outer(&self, loss: f64, sign: f64) -> Option<(f64, f64, f64)> {
        // The exponential of a large loss overflows.
        let e = if loss < LARGE {
            (loss.exp_m1() / self.q).ln_1p()
        } else {
            loss - self.q.ln() + (-(1.0 - self.q) * (-loss).exp()).ln_1p()
        };
        // G falls in y, so an error in y toward 0 raises it; y, its logarithm and the loss itself carry 6
        // ulps at most.
        let e = e * (1.0 - sign * 6.0 * f64::EPSILON);
        let (value, near, far, error) = gaussian(self.mu, e);
        Some((value * (1.0 + sign * error), near, far))
    }

    /// (1 + y) G(-ln(1 + y)) for -1 < y <= 0, with the two tails; None beyond the end of the support.
    fn inner(&self, y: f64, sign: f64) -> Option<(f64, f64, f64)> {
        // Near the end of the support 1 + y cancels, so that the error of y is added before the sum.
        let moved = y + sign * 6.0 * f64::EPSILON * y.abs();
        let w = (1.0 + moved) + sign * f64::EPSILON;
        if w <= 0.0 {
            return None;
        }
        let e = if moved > -0.5 { -moved.min(0.0).ln_1p() } else { -w.ln() };
        let (value, near, far, error) = gaussian(self.mu, e.max(0.0) * (1.0 - sign * 6.0 * f64::EPSILON));
        Some((w.min(1.0) * value * (1.0 + sign * error), near, far))
    }
}

/// G = Phi(-a) - exp(e) Phi(-b), Phi(-a) and Phi(-b) for a, b = e/mu -+ mu/2, and the relative error of G.
fn gaussian(mu: f64, e: f64) -> (f64, f64, f64, f64) {
    let (a, b) = ((-0.5 * mu).mul_add(mu, e) / mu, (0.5 * mu).mul_add(mu, e) / mu);
    let (density_a, density_b) = (density(a), density(b));
    if a > FARTHEST {
        // Both tails underflow.
        return (0.0, 0.0, 0.0, EVALUATION_ERROR);
    }
    let far = density_b * mills(b);
    let error = EVALUATION_ERROR + 2.0 * f64::EPSILON * (a * b).abs();
    if a < 0.0 && mu > 1.0 {
        let beyond = density_a * mills(-a);
        return (1.0 - beyond - density_a * mills(b), 1.0 - beyond, far, error);
    }
    (density_a * mills_drop(a, b, mu), density_a * mills(a), far, error)
}

#[cfg(test)]
mod tests;
