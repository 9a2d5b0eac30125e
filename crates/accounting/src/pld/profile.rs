//! The hockey-stick curve of one step of the sampled Gaussian mechanism.
//!
//! For the pair (P, Q) of a direction, D(t) = integral of (P - t Q)_+ is convex in t = e^loss, and its slope
//! is -Q(loss > ln t). Below loss 0 the curve is represented by D(t) - (1 - t) = integral of (t Q - P)_+,
//! which is as small there as D is above, so that nothing cancels. With y = (t - 1)/q (or (1/t - 1)/q), the
//! sampled curve is q times the Gaussian curve at ln(1 + y), or its mirror image.
//!
//! Source: Balle, Barthe and Gaboardi, "Privacy amplification by subsampling" (2018), theorem 2, which is an
//! identity for this pair.

use antinoise_input::larger;

use crate::normal::{LN_SQRT_2PI, mills, mills_drop};

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

/// The direction in which values of the curve are rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rounding {
    Up,
    Down,
}

/// A step with noise multiplier 1/`mu` and sampling rate `q`, in one direction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Profile {
    pub mu: f64,
    pub q: f64,
    pub direction: Direction,
}

/// The curve at one loss.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    /// D(t) for loss >= 0, and D(t) - (1 - t) below; rounded in the requested direction.
    pub value: f64,
    /// The absolute slope: Q(loss > ln t) for loss >= 0, and Q(loss <= ln t) below; to nearest.
    pub slope: f64,
}

/// Ten times the largest relative error of [`gaussian`] in comparisons with 60-digit arithmetic, without the
/// rounding of a and b.
const EVALUATION_ERROR: f64 = 2e-12;

/// Number of standard deviations beyond which a normal density is 0 in double precision.
const FARTHEST: f64 = 40.0;

impl Profile {
    /// The loss at an output that is `z` standard deviations from 0, towards the mean of the mixture.
    pub fn loss(&self, z: f64) -> f64 {
        let exponent = self.mu * (z - 0.5 * self.mu);
        // ln(1 - q + q e^exponent), in the form that is accurate for small losses.
        let loss = if exponent < 30.0 {
            (self.q * exponent.exp_m1()).ln_1p()
        } else {
            exponent + self.q.ln() + ((-exponent).exp() * (1.0 - self.q) / self.q).ln_1p()
        };
        if self.direction == Direction::Remove { loss } else { -loss }
    }

    /// The derivative of [`loss`](Self::loss) in `z`, without its sign.
    pub fn steepness(&self, z: f64) -> f64 {
        // A logistic function of the exponent, which is 1/2 where both components weigh the same.
        let exponent = self.mu * (z - 0.5 * self.mu);
        self.mu / (1.0 + (1.0 - self.q) / self.q * (-exponent).exp())
    }

    /// The supremum of the loss.
    pub fn bound(&self) -> f64 {
        if self.direction == Direction::Add { -(-self.q).ln_1p() } else { f64::INFINITY }
    }

    /// The greatest loss within `reach` standard deviations of the means of P.
    pub fn greatest(&self, reach: f64) -> f64 {
        match self.direction {
            Direction::Remove => self.loss(self.mu + reach),
            Direction::Add => self.loss(-reach),
        }
    }

    /// The curve at `loss`.
    pub fn at(&self, loss: f64, rounding: Rounding) -> Point {
        let sign = if rounding == Rounding::Up { 1.0 } else { -1.0 };
        let (above, removing) = (loss >= 0.0, self.direction == Direction::Remove);
        // The curve for addition is that for removal with loss replaced by -loss and D by t D.
        let (toward, scale) = if removing { (loss, 1.0) } else { (-loss, loss.exp()) };
        let y = toward.exp_m1() / self.q;
        let (q, tails) = (self.q, if above == removing { self.outer(y, sign) } else { self.inner(y, sign) });
        let Some((value, near, far)) = tails else { return Point { value: 0.0, slope: 0.0 } };
        let slope = match (removing, above) {
            (true, true) => far,
            (true, false) => near,
            (false, true) => (1.0 - q) * near + q * far,
            (false, false) => (1.0 - q) * far + q * near,
        };
        Point { value: larger(scale * q * value, 0.0), slope }
    }

    /// G(ln(1 + y)) for y >= 0, with the two tails.
    fn outer(&self, y: f64, sign: f64) -> Option<(f64, f64, f64)> {
        // G falls in y, so an error in y toward 0 raises it; y, its logarithm and the loss itself carry 6
        // ulps at most.
        let e = y.ln_1p() * (1.0 - sign * 6.0 * f64::EPSILON);
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
    let (density_a, density_b) = ((-0.5 * a * a - LN_SQRT_2PI).exp(), (-0.5 * b * b - LN_SQRT_2PI).exp());
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
