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
use crate::normal::{LN_SQRT_2PI, mills, mills_drop};
use crate::root::crossing;

/// Mixtures around multiples of `mu`: P's towards positive numbers, Q's towards negative ones.
#[derive(Debug, Clone)]
pub(crate) struct Mixtures {
    mu: f64,
    up: Vec<f64>,
    down: Vec<f64>,
}

impl Mixtures {
    /// P with `up` examples and Q with `down` examples, each sampled with probability `q` below 1.
    pub fn new(mu: f64, q: f64, up: u32, down: u32) -> Self {
        Self { mu, up: binomial(up, q), down: binomial(down, q) }
    }

    /// P and Q exchanged, and mirrored so that the ratio increases again.
    fn turned(&self) -> Self {
        Self { mu: self.mu, up: self.down.clone(), down: self.up.clone() }
    }

    /// ln L at `z`, and a bound on its error.
    fn ln_ratio(&self, z: f64) -> (f64, f64) {
        let (up, down) = (ln_mean(&self.up, self.mu, z), ln_mean(&self.down, self.mu, -z));
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
        let end = |weights: &[f64]| (weights.len() - 1) as f64 * self.mu + FARTHEST + 1.0;
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
        let posterior = posterior(&self.down, self.mu, -z);
        let mut value = 0.0;
        for (i, a) in self.up.iter().enumerate() {
            let shift = i as f64 * self.mu;
            let near = z - shift;
            let error = EVALUATION_ERROR
                + weight_error(&self.up)
                + weight_error(&self.down)
                + 8.0 * f64::EPSILON * (1.0 + near.abs()) * (1.0 + z.abs() + shift);
            let terms = posterior.iter().enumerate().skip(usize::from(i == 0));
            let sum: f64 = terms
                .map(|(j, w)| {
                    w * tail_difference(near, near + (i + j) as f64 * self.mu, (i + j) as f64 * self.mu)
                })
                .sum();
            value += a * sum * (1.0 + rounding.sign() * error);
        }
        let tails = |weights: &[f64], sign: f64| -> f64 {
            weights.iter().enumerate().map(|(i, w)| w * tail(z + sign * i as f64 * self.mu)).sum()
        };
        (value.max(0.0), tails(&self.up, -1.0), tails(&self.down, 1.0))
    }
}

impl Pair for Mixtures {
    fn loss(&self, z: f64) -> f64 {
        self.ln_ratio(z).0
    }

    fn steepness(&self, z: f64) -> f64 {
        let mean = |weights: &[f64], z: f64| -> f64 {
            posterior(weights, self.mu, z).iter().enumerate().map(|(i, w)| i as f64 * w).sum()
        };
        self.mu * (mean(&self.up, z) + mean(&self.down, -z))
    }

    fn bound(&self) -> f64 {
        if self.up.len() > 1 { f64::INFINITY } else { -self.down[0].ln() }
    }

    fn greatest(&self, reach: f64) -> f64 {
        self.loss((self.up.len() - 1) as f64 * self.mu + reach)
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
        let component =
            |(i, weight): (usize, &f64)| Component { mean: i as f64 * self.mu, ln_weight: weight.ln() };
        self.up.iter().enumerate().map(component).collect()
    }
}

/// The probabilities that 0, 1, ..., `trials` of `trials` examples are sampled.
fn binomial(trials: u32, q: f64) -> Vec<f64> {
    let n = trials as usize;
    let (odds, mut weights) = (q / (1.0 - q), vec![0.0; n + 1]);
    // From the end whose probability does not underflow.
    if q <= 0.5 {
        weights[0] = (f64::from(trials) * (-q).ln_1p()).exp();
        for i in 0..n {
            weights[i + 1] = weights[i] * odds * (n - i) as f64 / (i + 1) as f64;
        }
    } else {
        weights[n] = (f64::from(trials) * q.ln()).exp();
        for i in (0..n).rev() {
            weights[i] = weights[i + 1] / odds * (i + 1) as f64 / (n - i) as f64;
        }
    }
    weights
}

/// Bound on the relative error of a weight of [`binomial`].
fn weight_error(weights: &[f64]) -> f64 {
    (8.0 + 8.0 * weights.len() as f64) * f64::EPSILON
}

/// ln of the sum of w_i e^{i mu z - (i mu)^2 / 2}, and a bound on its error.
fn ln_mean(weights: &[f64], mu: f64, z: f64) -> (f64, f64) {
    let unit = weight_error(weights);
    let exponent = |i: usize| i as f64 * mu * (z - 0.5 * i as f64 * mu);
    let size = |i: usize| i as f64 * mu * (z.abs() + 0.5 * i as f64 * mu);
    let largest = (0..weights.len()).map(exponent).fold(0.0, f64::max);
    if weights[0] >= 0.5 && largest < 30.0 {
        // The weights sum to 1: the difference from 1 is small where the ratio is near 1.
        let (mut change, mut error) = (0.0, 0.0);
        for (i, w) in weights.iter().enumerate().skip(1) {
            let growth = exponent(i).exp_m1();
            change += w * growth;
            error += w * (growth.abs() + (growth + 1.0) * size(i));
        }
        let value = change.ln_1p();
        return (value, unit * error / (1.0 + change) + 2.0 * f64::EPSILON * value.abs());
    }
    let terms =
        || weights.iter().enumerate().filter(|(_, w)| **w > 0.0).map(|(i, w)| (i, w.ln() + exponent(i)));
    let peak = terms().map(|(_, x)| x).fold(f64::MIN, f64::max);
    let sum: f64 = terms().map(|(_, x)| (x - peak).exp()).sum();
    let sizes = terms().map(|(i, x)| (x - peak).exp() * (size(i) + x.abs())).sum::<f64>() / sum;
    let value = peak + sum.ln();
    (value, unit * (1.0 + sizes + value.abs() + peak.abs()))
}

/// The weights w_i e^{i mu z - (i mu)^2 / 2}, scaled to the sum 1.
fn posterior(weights: &[f64], mu: f64, z: f64) -> Vec<f64> {
    let exponent = |i: usize| i as f64 * mu * (z - 0.5 * i as f64 * mu);
    let peak = (0..weights.len()).filter(|&i| weights[i] > 0.0).map(exponent).fold(f64::MIN, f64::max);
    let scaled: Vec<f64> = weights.iter().enumerate().map(|(i, w)| w * (exponent(i) - peak).exp()).collect();
    let sum: f64 = scaled.iter().sum();
    scaled.into_iter().map(|w| w / sum).collect()
}

/// phi(x).
fn density(x: f64) -> f64 {
    (-0.5 * x * x - LN_SQRT_2PI).exp()
}

/// The mass of N(0, 1) beyond `x`.
fn tail(x: f64) -> f64 {
    match x {
        x if x > FARTHEST => 0.0,
        x if x >= -1.0 => density(x) * mills(x),
        x => 1.0 - density(x) * mills(-x),
    }
}

/// phi(a) (m(a) - m(b)) for b = a + width.
fn tail_difference(a: f64, b: f64, width: f64) -> f64 {
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
