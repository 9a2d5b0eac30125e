//! The pair of a step on a batch of a fixed size, without replacement, in which one example is zeroed.
//!
//! A batch that lacks the example has another one in its place. In units of the noise, and as seen from the
//! sum of the other examples in the batch, the worst neighbours for t >= 1 are
//!
//! ```text
//! P = (1 - q) N(-mu, 1) + q N(mu, 1),    Q = (1 - q) N(-mu, 1) + q N(0, 1):
//! ```
//!
//! all other examples contribute the opposite. For t < 1 they are those whose other examples contribute the
//! same, which are the pair of Poisson sampling (`profile`). The least curve above both dominates; the worst
//! neighbours for t >= 1, taken for every t, bound it from below. Proved in docs/accounting.md.
//!
//! With u = e^{mu z}, P = t Q at the roots of q u^2 - t q e^{mu^2 / 2} u = (1 - q)(t - 1). For t >= 1 one of
//! them is positive, and at it the curve is a sum of positive numbers (`mixtures`). For t < 1, t Q exceeds P
//! between two roots, or nowhere.

use super::mixtures::{tail, tail_difference};
use super::pair::{Component, Pair, Point, Rounding};
use super::profile::{Direction, EVALUATION_ERROR, Profile};

/// A step with noise multiplier 1/`mu` on batches of the share `q` of the examples, one of which is zeroed
/// (`Direction::Remove`), or was (`Direction::Add`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Zeroed {
    pub mu: f64,
    pub q: f64,
    pub direction: Direction,
}

/// The integral of (P - t Q)_+ or of (t Q - P)_+, and the masses of P and Q where it is positive.
#[derive(Debug, Clone, Copy, Default)]
struct Excess {
    value: f64,
    p: f64,
    q: f64,
}

impl Zeroed {
    fn removal(&self) -> Profile {
        Profile { mu: self.mu, q: self.q, direction: Direction::Remove }
    }

    /// The masses of P and Q beyond `z`.
    fn beyond(&self, z: f64) -> (f64, f64) {
        let others = (1.0 - self.q) * tail(z + self.mu);
        (others + self.q * tail(z - self.mu), others + self.q * tail(z))
    }

    /// (P - t Q)_+ for t = e^`loss` >= 1.
    fn above(&self, loss: f64, rounding: Rounding) -> Excess {
        let (mu, q) = (self.mu, self.q);
        // Exponentials of loss and of mu^2 may overflow.
        let (growth, rest) = (0.5 * mu * mu, (1.0 - q) / q * -(-loss).exp_m1());
        let square = 1.0 + 4.0 * rest * (-loss - 2.0 * growth).exp();
        let ln_u = loss + growth + (0.5 * (1.0 + square.sqrt())).ln();
        let z = ln_u / mu;
        let near = z - mu;
        // Shares of the terms of t Q where P = t Q.
        let of_zero = (growth + loss - ln_u).exp().min(1.0);
        let of_others = (rest * (loss - 2.0 * ln_u).exp()).min(1.0);
        let value =
            of_others * tail_difference(near, z + mu, 2.0 * mu) + of_zero * tail_difference(near, z, mu);
        let of_place = (1.0 + near.abs()) * (1.0 + z.abs() + (1.0 + ln_u.abs()) / mu);
        let error = EVALUATION_ERROR + 16.0 * f64::EPSILON * (of_place + growth + ln_u.abs());
        let (p, beyond) = self.beyond(z);
        Excess { value: (q * value * (1.0 + rounding.sign() * error)).max(0.0), p, q: beyond }
    }

    /// (t Q - P)_+ for t = e^`loss` < 1, rounded down.
    fn below(&self, loss: f64) -> Excess {
        let (mu, q, t) = (self.mu, self.q, loss.exp());
        let middle = 0.5 * t * (0.5 * mu * mu).exp();
        let square = middle * middle + (1.0 - q) / q * loss.exp_m1();
        if square <= 0.0 || middle.is_infinite() {
            return Excess::default();
        }
        let upper = middle + square.sqrt();
        // The product of the roots is (1 - q)(1 - t) / q.
        let lower = -(1.0 - q) / q * loss.exp_m1() / upper;
        let ((p, beyond), (p_far, beyond_far)) = (self.beyond(lower.ln() / mu), self.beyond(upper.ln() / mu));
        let (p, between) = ((p - p_far).max(0.0), (beyond - beyond_far).max(0.0));
        Excess { value: (t * between - p - 16.0 * f64::EPSILON).max(0.0), p, q: between }
    }
}

impl Pair for Zeroed {
    fn loss(&self, z: f64) -> f64 {
        let size = z.abs();
        if size <= 0.5 * self.mu {
            return 0.0;
        }
        // Losses of the side on which the other examples are opposite, and of the other one.
        let of_opposite = || {
            let odds = self.q.ln() - (-self.q).ln_1p();
            let ln_one_plus = |x: f64| if x > 30.0 { x } else { x.exp().ln_1p() };
            let (p, q) = (2.0 * self.mu * size, self.mu * size + 0.5 * self.mu * self.mu);
            ln_one_plus(odds + p) - ln_one_plus(odds + q)
        };
        if (z > 0.0) == (self.direction == Direction::Remove) {
            of_opposite() * z.signum()
        } else {
            self.removal().loss(size) * z.signum()
        }
    }

    fn steepness(&self, z: f64) -> f64 {
        const STEP: f64 = 1e-3;
        (self.loss(z + STEP) - self.loss(z - STEP)) / (2.0 * STEP)
    }

    fn bound(&self) -> f64 {
        f64::INFINITY
    }

    fn greatest(&self, reach: f64) -> f64 {
        self.loss(self.mu + reach)
    }

    fn at(&self, loss: f64, rounding: Rounding) -> Point {
        let is_removal = self.direction == Direction::Remove;
        // The curve of Q and P at t is t times that of P and Q at 1 / t, with the sides exchanged.
        let (toward, scale) = if is_removal { (loss, 1.0) } else { (-loss, loss.exp()) };
        let excess = match (toward >= 0.0, rounding) {
            (true, _) => self.above(toward, rounding),
            (false, Rounding::Down) => self.below(toward),
            (false, Rounding::Up) => {
                let direction = if is_removal { Direction::Add } else { Direction::Remove };
                return Profile { direction, ..self.removal() }.at(loss, rounding);
            }
        };
        let rounded = 1.0 + rounding.sign() * 4.0 * f64::EPSILON;
        Point {
            value: (scale * excess.value * rounded).max(0.0),
            slope: if is_removal { excess.q } else { excess.p },
        }
    }

    /// The components of sampled removal: those of P differ from them by the place of most of the mass.
    fn components(&self) -> Vec<Component> {
        self.removal().components()
    }
}
