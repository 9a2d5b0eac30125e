//! Accountants that share nothing with the privacy loss distributions, as oracles.
#![allow(dead_code)] // each test uses its part

use chacha20::ChaCha20;
use cipher::{KeyIvInit, StreamCipher};

/// Whether a sweep checks its case number `case`: each `share`-th one, and with `ANTINOISE_SWEEPS=whole`,
/// which `scripts/long.sh sweeps` sets, every one.
pub fn is_swept(case: usize, share: usize) -> bool {
    case.is_multiple_of(share) || is_whole()
}

/// The number of random cases of a sweep of `whole`: one in `share`, and all with `ANTINOISE_SWEEPS=whole`.
pub fn random_cases(whole: u32, share: u32) -> u32 {
    if is_whole() { whole } else { whole / share }
}

fn is_whole() -> bool {
    std::env::var_os("ANTINOISE_SWEEPS").is_some_and(|sweeps| sweeps == "whole")
}

/// A linear congruential generator on [0, 1).
pub fn uniforms(mut state: u64) -> impl FnMut() -> f64 {
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// `steps` Poisson-sampled Gaussian steps at `rate` with noise multiplier `sigma`.
#[derive(Debug, Clone, Copy)]
pub struct Steps {
    pub sigma: f64,
    pub rate: f64,
    pub steps: u64,
}

impl Steps {
    /// The Rényi divergence of order `alpha` of all steps, in the worse direction of add-or-remove:
    /// `T/(alpha - 1) ln E (1 - q + q e^{(2x - 1)/(2 sigma^2)})^alpha` for x from `N(0, sigma^2)`, by the
    /// trapezoid rule, which converges geometrically: to about 1e-12.
    ///
    /// Source: Mironov, Talwar and Zhang, "Rényi differential privacy of the sampled Gaussian mechanism"
    /// (2019), theorem 5 for the direction.
    pub fn renyi_divergence(self, alpha: f64) -> f64 {
        self.steps as f64 * self.ln_moment(alpha) / (alpha - 1.0)
    }

    /// The epsilon at `delta` by the best conversion from Rényi divergences over real orders.
    ///
    /// Source: Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy" (2020),
    /// proposition 12.
    pub fn epsilon_from_renyi(self, delta: f64) -> f64 {
        let at = |ln_s: f64| {
            let s = ln_s.exp();
            let ln_moment = self.steps as f64 * self.ln_moment(1.0 + s);
            (ln_moment - delta.ln() - s.ln_1p()) / s - (1.0 / s).ln_1p()
        };
        (-600..500).map(|i| at(f64::from(i) * 1e-2)).fold(f64::INFINITY, f64::min)
    }

    /// ln E (P/Q)^alpha for one step.
    fn ln_moment(self, alpha: f64) -> f64 {
        let (mu, q) = (1.0 / self.sigma, self.rate);
        let spacing = 0.1f64.min(0.3 / mu);
        let count = (25.0 + alpha * mu) / spacing;
        if q == 1.0 || count > 1e6 {
            return 0.5 * alpha * (alpha - 1.0) * mu * mu;
        }
        let exponent = |i: i64| {
            let z = ((-12.0 / spacing).floor() as i64 + i) as f64 * spacing;
            (z, alpha * self.ln_ratio(z))
        };
        let points = (0..count as i64).map(exponent);
        let density = |z: f64| -0.5 * z * z - 0.5 * std::f64::consts::TAU.ln();
        let largest = points.clone().map(|(z, x)| density(z) + x).fold(f64::MIN, f64::max);
        // For a small moment the sum of e^x - 1 is what matters: N(0, 1) integrates to 1 exactly.
        if largest < 1.0 {
            let sum: f64 = points.map(|(z, x)| density(z).exp() * x.exp_m1()).sum();
            return (spacing * sum).ln_1p().max(0.0);
        }
        largest + (spacing * points.map(|(z, x)| (density(z) + x - largest).exp()).sum::<f64>()).ln()
    }

    /// ln of the likelihood ratio of one step at z standard deviations: 1 - q + q e^{mu z - mu^2 / 2}.
    fn ln_ratio(self, z: f64) -> f64 {
        let (mu, q) = (1.0 / self.sigma, self.rate);
        let shift = mu * (z - 0.5 * mu);
        match shift < 30.0 {
            true => (q * shift.exp_m1()).ln_1p(),
            false => shift + q.ln() + ((1.0 - q) / q * (-shift).exp()).ln_1p(),
        }
    }

    /// Mean and standard error of `(1 - e^{epsilon - loss})_+` over `samples` sampled runs, of the direction
    /// in which an example is removed, or added.
    pub fn sampled_delta(self, epsilon: f64, is_removed: bool, samples: usize) -> (f64, f64) {
        let mut random = Random::new(u8::from(is_removed));
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..samples {
            let mut loss = 0.0;
            for _ in 0..self.steps {
                let takes_part = random.uniform() <= self.rate;
                let z = random.normal() + if is_removed && takes_part { 1.0 / self.sigma } else { 0.0 };
                loss += if is_removed { self.ln_ratio(z) } else { -self.ln_ratio(z) };
            }
            let sample = if loss > epsilon { -(epsilon - loss).exp_m1() } else { 0.0 };
            (sum, squares) = (sum + sample, squares + sample * sample);
        }
        let mean = sum / samples as f64;
        (mean, ((squares / samples as f64 - mean * mean) / samples as f64).sqrt())
    }
}

struct Random(ChaCha20);

impl Random {
    fn new(seed: u8) -> Self {
        Self(ChaCha20::new(&[seed; 32].into(), &[0; 12].into()))
    }

    /// Uniform on (0, 1].
    fn uniform(&mut self) -> f64 {
        let mut word = [0; 8];
        self.0.apply_keystream(&mut word);
        ((u64::from_le_bytes(word) >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// How often an interval may miss at failure probability `alpha` in `runs` runs, but for chance 1e-6.
pub fn allowed_misses(alpha: f64, runs: usize) -> usize {
    let (mut term, mut below, mut misses) = ((1.0 - alpha).powi(runs as i32), 0.0, 0);
    loop {
        below += term;
        if 1.0 - below < 1e-6 {
            return misses;
        }
        term *= (runs - misses) as f64 / (misses + 1) as f64 * alpha / (1.0 - alpha);
        misses += 1;
    }
}
