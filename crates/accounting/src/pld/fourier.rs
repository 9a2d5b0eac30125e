//! delta of a sum of many privacy losses, computed in Fourier space under an exponential tilt.
//!
//! Let S be the sum of all losses under P, M its moment generating function, and F the law of S tilted by
//! e^{theta s}: delta(epsilon) = M(theta) e^{-theta epsilon} E_F g(S - epsilon) with g(v) = e^{-theta v} (1 -
//! e^{-v}) for v > 0, 0 below. Under F, the losses that contribute to delta are likely, so that all errors
//! are relative to delta, however small it is. g is replaced by a payoff that is periodic and smooth, so that
//! E_F is a short sum over frequencies of products of characteristic functions. For a Gaussian Z with
//! standard deviation s:
//!
//! - above: g(v + Z), with Z the loss of one more release of s-GDP, which can only enlarge delta;
//! - below: E g*(v + sZ) minus a Gaussian bump, where g* is g with its two exponentials scaled so that
//!   smoothing restores them. The bump is s (phi(0) + 2a) e^{a^2/2} e^{-v^2/2s^2} for a = (1 + theta) s, a
//!   bound on what smoothing moves across the kink of g.
//!
//! Both change epsilon by about (1 + theta) s^2, once for the whole sum. Making g periodic only increases it,
//! by an amount that Chernoff's inequality bounds. The error of leaving out high frequencies is bounded by
//! the transform of the payoff, since a characteristic function is at most 1.

use std::f64::consts::PI;

use num_complex::Complex;

use super::characteristic::{additions, characteristic, ln_moment, sum};
use super::discrete::{Bound, Part};
use crate::root::crossing;

/// The tilt, the smoothing and the period of the payoff.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    pub theta: f64,
    pub smoothing: f64,
    pub period: f64,
    /// The last frequency, in units of 1 / smoothing; there the smoothing gives a factor of e^(-last^2 / 2).
    pub last: f64,
    /// The upward and downward tilts in Chernoff's bounds on the mass more than half a period above and below
    /// the target.
    pub above: f64,
    pub below: f64,
}

/// A bound on delta as a function of epsilon.
pub(crate) struct Spectrum {
    settings: Settings,
    bound: Bound,
    /// The transform of the payoff times the characteristic function, at the frequencies 2 pi k / period.
    terms: Vec<Complex<f64>>,
    /// ln M(theta), where M is the moment generating function of the sum.
    ln_moment: f64,
    /// Bound on the rounding error of the sum over `terms`, and on the terms that are left out.
    error: f64,
    /// The probability of S > x under F is at most e^(ln_above - above x).
    ln_above: f64,
    /// The probability of S < x under F is at most e^(ln_below + below x).
    ln_below: f64,
    /// The sum of the absolute values of the terms.
    size: f64,
    infinity: f64,
}

/// Number of terms in a block of a sum over frequencies.
const BLOCK: usize = 16;
/// Maximum number of frequencies of a spectrum.
const MAX_FREQUENCIES: f64 = (1 << 19) as f64;
impl Settings {
    /// The number of frequencies.
    fn frequencies(&self) -> f64 {
        (self.last / self.smoothing * self.period / (2.0 * PI)).ceil() + 1.0
    }

    /// The settings with enough smoothing for at most `most` frequencies, and whether they are unchanged.
    pub fn within(mut self, most: f64) -> (Self, bool) {
        let excess = self.frequencies() / most.min(MAX_FREQUENCIES);
        self.smoothing *= excess.max(1.0);
        (self, excess <= 1.0)
    }

    /// The number of frequencies, if all settings are finite.
    fn count(&self) -> Option<usize> {
        let count = self.frequencies();
        (count <= 2.0 * MAX_FREQUENCIES && self.theta > 0.0 && self.above > 0.0 && self.below > 0.0)
            .then_some(count as usize)
    }
}

impl Spectrum {
    /// Computes the bound for `parts`, all of which are bounds on the side `bound`.
    pub fn new(parts: &[Part], settings: Settings, bound: Bound) -> Option<Self> {
        let Settings { theta, smoothing: s, period, above, below, .. } = settings;
        let count = settings.count()?;
        // `wrapped` and the bump assume this; with more smoothing, bounds would be useless.
        if bound == Bound::Below && (1.0 + theta) * s > 0.3 {
            return None;
        }
        // The error of each sum or difference of logarithms is at most 1e-13.
        let slack: f64 = parts.iter().map(|part| part.steps as f64 * 1e-13).sum();
        let moment =
            |tilt: f64| parts.iter().map(|p| p.steps as f64 * ln_moment(&p.discrete, tilt)).sum::<f64>();
        let ln_moment = moment(theta);
        let (mut terms, sizes, ln_mass) = characteristic(parts, theta, period, count, bound);
        let (mass, mut error) = (ln_mass.0.exp(), 0.0);
        let payoff = payoff(theta, s, bound);
        for (k, (term, &(size, growth))) in terms.iter_mut().zip(&sizes).enumerate() {
            let omega = 2.0 * PI * k as f64 / period;
            let payoff = payoff(omega);
            let twice = if k == 0 { 1.0 } else { 2.0 };
            *term *= payoff * (twice / period * mass);
            error += twice / period * payoff.norm() * size * growth * mass;
        }
        let last = 2.0 * PI * count as f64 / period;
        // Masses that are rounded up may sum to slightly more than 1.
        error += left_out(theta, s, last) * mass.max(1.0);
        Some(Self {
            size: terms.iter().map(|term| term.norm()).sum(),
            settings,
            bound,
            terms,
            ln_moment: ln_moment + if bound == Bound::Above { slack + ln_mass.1 } else { -slack - ln_mass.1 },
            error,
            ln_above: moment(theta + above) - ln_moment + slack,
            ln_below: moment(theta - below) - ln_moment + slack,
            infinity: parts.iter().map(|part| part.steps as f64 * part.discrete.infinity).sum(),
        })
    }

    /// The logarithm of the bound on delta at `epsilon`, or minus infinity if the bound is at most 0.
    pub fn ln_delta(&self, epsilon: f64) -> f64 {
        let theta = self.settings.theta;
        let step = -2.0 * PI / self.settings.period * epsilon;
        let turn = |times: usize| Complex::cis(step * times as f64);
        // Terms turn within a block by the same angles in each block, and the blocks as wholes.
        let turns: Vec<_> = (0..BLOCK).map(turn).collect();
        let block = |(i, terms): (usize, &[Complex<f64>])| {
            let inner: Complex<f64> = terms.iter().zip(&turns).map(|(term, turn)| term * turn).sum();
            (inner * turn(i * BLOCK)).re
        };
        let values: Vec<f64> = self.terms.chunks(BLOCK).enumerate().map(block).collect();
        let sum = sum(&values);
        // The error of a phase is at most twice its size in ulps, that of a product three ulps, and that of a
        // sum half an ulp for each addition.
        let last = step * self.terms.len() as f64;
        let rounding =
            self.size * f64::EPSILON * (10.0 + 2.0 * last.abs() + BLOCK as f64 + additions(values.len()));
        let scale = self.ln_moment - theta * epsilon;
        match self.bound {
            Bound::Above => {
                // NaN is not a bound.
                let within = (sum + self.error + rounding).ln() + scale;
                if within.is_nan() || self.infinity.is_nan() {
                    return 0.0;
                }
                let (high, low) = (within.max(self.infinity.ln()), within.min(self.infinity.ln()));
                if low == f64::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
            }
            Bound::Below => (sum - self.error - rounding - self.wrapped(epsilon)).max(0.0).ln() + scale,
        }
    }

    /// The epsilon at which the bound crosses e^`ln_delta`, rounded to the safe side; `None` if it does not
    /// cross.
    ///
    /// The search starts at `guess`, and for a lower bound considers only smaller values.
    pub fn epsilon(&self, ln_delta: f64, guess: f64) -> Option<f64> {
        let excess = |epsilon: f64| self.ln_delta(epsilon) - ln_delta;
        let first = (guess, excess(guess));
        let (mut low, mut high) = (first, first);
        // A spectrum gives useful bounds only near its target.
        let mut step = f64::min(2e-3 * guess, 1e-2 * self.settings.period);
        while low.1 <= 0.0 {
            if low.0 == 0.0 {
                return (self.bound == Bound::Above).then_some(0.0);
            }
            high = low;
            low.0 = (low.0 - step).max(0.0);
            low.1 = excess(low.0);
            step *= 2.0;
        }
        while high.1 > 0.0 {
            if self.bound == Bound::Below || high.0 > 1e6 * guess {
                return (self.bound == Bound::Below).then_some(high.0);
            }
            low = high;
            high.0 += step;
            high.1 = excess(high.0);
            step *= 2.0;
        }
        let (low, high) = crossing(low, high, 1e-8 * guess, excess);
        Some(if self.bound == Bound::Above { high } else { low })
    }

    /// A bound on the error from making g periodic: the sum over m != 0 of g(v + m period).
    fn wrapped(&self, epsilon: f64) -> f64 {
        let Settings { theta, period, above, below, .. } = self.settings;
        // For |v| <= period/2, only terms with m >= 1 are positive, and they are below e^{-theta (m - 1/2)
        // period}.
        let near = (-0.5 * theta * period).exp() / (1.0 - (-theta * period).exp());
        // For other v, a sum over points one period apart is at most the largest term plus the integral over
        // the period.
        let far = greatest(theta) + 1.0 / (period * theta * (1.0 + theta));
        let over = (self.ln_above - above * (epsilon + 0.5 * period)).exp().min(1.0);
        let under = (self.ln_below + below * (epsilon - 0.5 * period)).exp().min(1.0);
        // The factor 1.5 covers the smoothing by s, since s is below 0.3/(1 + theta).
        1.5 * (near + (over + under) * far)
    }
}

/// The greatest value of g: at v = ln(1 + 1/theta).
fn greatest(theta: f64) -> f64 {
    (-theta * (1.0 / theta).ln_1p()).exp() / (1.0 + theta)
}

/// The transform of the payoff as a function of omega, times the characteristic function of its smoothing.
fn payoff(theta: f64, s: f64, bound: Bound) -> impl Fn(f64) -> Complex<f64> {
    let a = (1.0 + theta) * s;
    let beta = (-0.5 * a * a).exp();
    let apart = beta * (0.5 * s * s * (1.0 + 2.0 * theta)).exp_m1();
    let size = (0.5 * s * s * theta * (1.0 + theta)).exp();
    let bump = s * s * ((2.0 * PI).sqrt() * 2.0 * a + 1.0) * (0.5 * a * a).exp();
    move |omega| {
        let z = Complex::new(theta, omega);
        let decay = (-0.5 * s * s * omega * omega).exp();
        match bound {
            // The tilted loss of an s-GDP release has moment generating function exp(z s^2/2 + z^2 s^2/2).
            Bound::Above => {
                Complex::from_polar(size * decay, omega * s * s * (0.5 + theta)) / (z * (z + 1.0))
            }
            // alpha/z - beta/(z + 1) without the cancellation; alpha / beta = e^((1 + 2 theta) s^2 / 2).
            Bound::Below => {
                let exponentials = Complex::from(apart) / z + Complex::from(beta) / (z * (z + 1.0));
                (exponentials - bump * (1.0 + 1e-12)) * decay
            }
        }
    }
}

/// A bound on the sum of the terms from the frequency `last` on, for every characteristic function.
fn left_out(theta: f64, s: f64, last: f64) -> f64 {
    let a = (1.0 + theta) * s;
    // |payoff| is at most e^{-s^2 omega^2/2} times this: 1/omega^2 and, for lower bounds, a s/omega and the
    // bump.
    let bump = s * s * ((2.0 * PI).sqrt() * 2.0 * a + 1.0) * (0.5 * a * a).exp();
    let size = (0.5 * s * s * theta * (1.0 + theta)).exp() / (last * last) + a * s / last + bump;
    // The sum of 2/period times a decreasing function over the frequencies is at most its integral divided by
    // pi, plus one term.
    let tail = (-0.5 * s * s * last * last).exp();
    size * tail * (1.0 / (PI * s * s * last) + last)
}

#[cfg(test)]
mod tests;
