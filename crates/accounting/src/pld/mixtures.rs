//! The pair of steps in which several sampled examples change, or one is replaced.
//!
//! P is the mixture of N(i mu, 1) with weights `up`, Q that of N(-j mu, 1) with weights `down`, both
//! binomial: an example is in the batch with probability q. The ratio
//!
//! ```text
//! L(z) = sum_i a_i e^{i mu z - (i mu)^2 / 2} / sum_j b_j e^{-j mu z - (j mu)^2 / 2}
//! ```
//!
//! increases with z. At t = L(z) the curve is a sum of positive numbers, so nothing cancels: with the weights
//! w_j of the posterior of j at z, and the Mills ratio m,
//!
//! ```text
//! D(t) = P(beyond z) - t Q(beyond z) = sum_ij a_i w_j phi(z - i mu) (m(z - i mu) - m(z + j mu)).
//! ```
//!
//! The error of a computed ln L is bounded, and z chosen on the side of it that errs as asked: D decreases.
//! That the pair dominates is proved in docs/accounting.md.

use super::pair::{Component, Pair, Point, Rounding};
use super::profile::{EVALUATION_ERROR, FARTHEST};
use crate::normal::{density, mills, mills_drop};
use crate::root::crossing;

/// Mixtures around multiples of `mu`: P's towards positive numbers, Q's towards negative ones.
#[derive(Debug, Clone)]
pub(crate) struct Mixtures {
    mu: f64,
    up: Binomial,
    down: Binomial,
}

/// Bound on the relative error of the product of two weights in a value of the curve: more than eight ulps of
/// the logarithms, which are below 2500 in size.
const WEIGHT_ERROR: f64 = 1e-11;

/// A unit of error of logarithms, for sums whose terms carry at most half as much.
const UNIT: f64 = 8.0 * f64::EPSILON;

/// Units of error of a term besides its exponents and the logarithms of weights: ln of a binomial coefficient
/// is below 45, and a sum has at most 65 terms.
const TERMS: f64 = 100.0;

impl Mixtures {
    /// P with `up` examples and Q with `down` examples, each sampled with probability `q` below 1.
    pub fn new(mu: f64, q: f64, up: u32, down: u32) -> Self {
        Self { mu, up: Binomial::new(up, q), down: Binomial::new(down, q) }
    }

    /// P and Q exchanged, and mirrored so that the ratio increases again.
    fn turned(&self) -> Self {
        Self { mu: self.mu, up: self.down.clone(), down: self.up.clone() }
    }

    /// ln L at `z`, and a bound on its error.
    fn ln_ratio(&self, z: f64) -> (f64, f64) {
        let (up, down) = (self.up.ln_mean(self.mu, z), self.down.ln_mean(self.mu, -z));
        let value = up.0 - down.0;
        (value, up.1 + down.1 + f64::EPSILON * value.abs())
    }

    /// A z with L(z) at most e^`loss` (for rounding up) or at least e^`loss` (for rounding down), next to the
    /// one where they are equal; `None` where all of P's mass beyond such a z underflows.
    fn place(&self, loss: f64, rounding: Rounding) -> Option<f64> {
        let excess = |z: f64| {
            let (value, error) = self.ln_ratio(z);
            loss - value - rounding.sign() * error
        };
        let end = |mixture: &Binomial| mixture.trials() * self.mu + FARTHEST + 1.0;
        let (low, high) = (-end(&self.down), end(&self.up));
        let (at_low, at_high) = (excess(low), excess(high));
        if at_high > 0.0 {
            return None;
        }
        if at_low.is_nan() || at_low <= 0.0 {
            return Some(low);
        }
        let tolerance = 1e-14 * (1.0 + low.abs().min(high));
        let (below, above) = crossing((low, at_low), (high, at_high), tolerance, excess);
        Some(if rounding == Rounding::Up { below } else { above })
    }

    /// D(e^`loss`) for a loss >= 0, and the masses of P and Q beyond.
    fn beyond(&self, loss: f64, rounding: Rounding) -> (f64, f64, f64) {
        let Some(z) = self.place(loss, rounding) else { return (0.0, 0.0, 0.0) };
        let posterior = self.down.posterior(self.mu, -z);
        let mut value = 0.0;
        for (i, a) in self.up.weights.iter().enumerate() {
            let shift = i as f64 * self.mu;
            let near = z - shift;
            let error = EVALUATION_ERROR
                + WEIGHT_ERROR
                + 8.0 * f64::EPSILON * (1.0 + near.abs()) * (1.0 + z.abs() + shift);
            let terms = posterior.iter().enumerate().skip(usize::from(i == 0));
            let sum: f64 = terms
                .map(|(j, w)| {
                    w * tail_difference(near, near + (i + j) as f64 * self.mu, (i + j) as f64 * self.mu)
                })
                .sum();
            value += a * sum * (1.0 + rounding.sign() * error);
        }
        let tails = |mixture: &Binomial, sign: f64| -> f64 {
            mixture.weights.iter().enumerate().map(|(i, w)| w * tail(z + sign * i as f64 * self.mu)).sum()
        };
        (value.max(0.0), tails(&self.up, -1.0), tails(&self.down, 1.0))
    }
}

impl Pair for Mixtures {
    fn loss(&self, z: f64) -> f64 {
        self.ln_ratio(z).0
    }

    fn steepness(&self, z: f64) -> f64 {
        let mean = |mixture: &Binomial, z: f64| -> f64 {
            mixture.posterior(self.mu, z).iter().enumerate().map(|(i, w)| i as f64 * w).sum()
        };
        self.mu * (mean(&self.up, z) + mean(&self.down, -z))
    }

    fn bound(&self) -> f64 {
        if self.up.trials() > 0.0 { f64::INFINITY } else { -self.down.ln_weights[0] }
    }

    fn greatest(&self, reach: f64) -> f64 {
        self.loss(self.up.trials() * self.mu + reach)
    }

    fn at(&self, loss: f64, rounding: Rounding) -> Point {
        if loss >= 0.0 {
            let (value, _, slope) = self.beyond(loss, rounding);
            return Point { value, slope };
        }
        // (t Q - P)_+ is t times (Q - P / t)_+.
        let (value, slope, _) = self.turned().beyond(-loss, rounding);
        Point { value: value * loss.exp() * (1.0 + rounding.sign() * 4.0 * f64::EPSILON), slope }
    }

    fn components(&self) -> Vec<Component> {
        let component = |(i, &ln_weight): (usize, &f64)| Component { mean: i as f64 * self.mu, ln_weight };
        self.up.ln_weights.iter().enumerate().map(component).collect()
    }
}

/// The probabilities that 0, 1, ... of some examples are sampled; their logarithms do not underflow.
#[derive(Debug, Clone)]
struct Binomial {
    weights: Vec<f64>,
    ln_weights: Vec<f64>,
}

impl Binomial {
    /// For `trials` examples, at most 64, each with probability `q` below 1.
    fn new(trials: u32, q: f64) -> Self {
        let (mut ways, mut ln_weights) = (1u128, Vec::new());
        for i in 0..=trials {
            let of_sampled = f64::from(i) * q.ln();
            ln_weights.push((ways as f64).ln() + of_sampled + f64::from(trials - i) * (-q).ln_1p());
            ways = ways * u128::from(trials - i) / u128::from(i + 1);
        }
        Self { weights: ln_weights.iter().map(|x| x.exp()).collect(), ln_weights }
    }

    fn trials(&self) -> f64 {
        (self.weights.len() - 1) as f64
    }

    /// ln of the sum of w_i e^{i mu z - (i mu)^2 / 2}, and a bound on its error.
    fn ln_mean(&self, mu: f64, z: f64) -> (f64, f64) {
        let exponent = |i: usize| i as f64 * mu * (z - 0.5 * i as f64 * mu);
        let size = |i: usize| i as f64 * mu * (z.abs() + 0.5 * i as f64 * mu);
        let largest = (0..self.weights.len()).map(exponent).fold(0.0, f64::max);
        if self.weights[0] >= 0.5 && largest < 30.0 {
            // The weights sum to 1: the difference from 1 is small where the ratio is near 1.
            let (mut change, mut error) = (0.0, 0.0);
            for (i, (w, ln)) in self.weights.iter().zip(&self.ln_weights).enumerate().skip(1) {
                let growth = exponent(i).exp_m1();
                change += w * growth;
                error += w * (growth.abs() * (TERMS - ln) + (growth + 1.0) * size(i));
            }
            let value = change.ln_1p();
            return (value, UNIT * error / (1.0 + change) + 2.0 * f64::EPSILON * value.abs());
        }
        let terms = || self.ln_weights.iter().enumerate().map(|(i, ln)| (i, ln + exponent(i)));
        let peak = terms().map(|(_, x)| x).fold(f64::MIN, f64::max);
        let sum: f64 = terms().map(|(_, x)| (x - peak).exp()).sum();
        let sizes = terms().map(|(i, x)| (x - peak).exp() * (size(i) + x.abs())).sum::<f64>() / sum;
        let value = peak + sum.ln();
        (value, UNIT * (TERMS + sizes + value.abs() + peak.abs()))
    }

    /// The weights w_i e^{i mu z - (i mu)^2 / 2}, scaled to the sum 1.
    fn posterior(&self, mu: f64, z: f64) -> Vec<f64> {
        let terms = || {
            let exponent = |i: usize| i as f64 * mu * (z - 0.5 * i as f64 * mu);
            self.ln_weights.iter().enumerate().map(move |(i, ln)| ln + exponent(i))
        };
        let peak = terms().fold(f64::MIN, f64::max);
        let sum: f64 = terms().map(|x| (x - peak).exp()).sum();
        terms().map(|x| (x - peak).exp() / sum).collect()
    }
}

/// The mass of N(0, 1) beyond `x`.
pub(super) fn tail(x: f64) -> f64 {
    match x {
        x if x > FARTHEST => 0.0,
        x if x >= -1.0 => density(x) * mills(x),
        x => 1.0 - density(x) * mills(-x),
    }
}

/// phi(a) (m(a) - m(b)) for b = a + width.
pub(super) fn tail_difference(a: f64, b: f64, width: f64) -> f64 {
    if a > FARTHEST {
        return 0.0;
    }
    if a >= -1.0 {
        return density(a) * mills_drop(a, b, width);
    }
    if b > 0.0 {
        return 1.0 - density(a) * (mills(-a) + mills(b));
    }
    // m(x) = sqrt(2 pi) e^{x^2 / 2} - m(-x).
    -(0.5 * width * (a + b)).exp_m1() + density(a) * mills_drop(-b, -a, width)
}
