//! Rényi divergences of the sampled Gaussian, at real orders: an accountant that shares nothing with the
//! privacy loss distributions, to check them by.

use antinoise_input::{InvalidParameter, in_open_unit, larger};

use crate::root::golden_section;
use crate::{Composition, Result, SampledGaussian};

impl SampledGaussian {
    /// The Rényi divergence of order `alpha` of all steps, the worse direction of add-or-remove:
    /// `T/(alpha - 1) ln E (1 - q + q e^{(2x - 1)/(2 sigma^2)})^alpha` for x from `N(0, sigma^2)`.
    ///
    /// The integrand is analytic in a strip of half-width `pi sigma` (in standard deviations) or more, so the
    /// trapezoid rule converges geometrically: the result is good to about 1e-12. It is not certified; where
    /// the rule would need more than a million points, the value without sampling is returned, which is
    /// an upper bound.
    ///
    /// # Errors
    /// When `alpha` is not finite or not above 1.
    ///
    /// # Source
    /// Mironov, Talwar and Zhang, "Rényi differential privacy of the sampled Gaussian mechanism" (2019),
    /// theorem 5 for the direction.
    ///
    /// ```
    /// use antinoise_accounting::SampledGaussian;
    /// // alpha = 2 has the closed form ln(1 + q^2 (e^{1/sigma^2} - 1)).
    /// let found = SampledGaussian::new(2.0, 0.1, 1)?.renyi_divergence_estimate(2.0)?;
    /// assert!((found - (0.01 * 0.25f64.exp_m1()).ln_1p()).abs() < 1e-14);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn renyi_divergence_estimate(&self, alpha: f64) -> Result<f64> {
        if !(alpha > 1.0 && alpha.is_finite()) {
            return Err(InvalidParameter::new("alpha", alpha, "a finite number above 1").into());
        }
        Ok(self.steps() as f64 * self.ln_moment(alpha) / (alpha - 1.0))
    }

    /// ln E (P/Q)^alpha for one step.
    fn ln_moment(&self, alpha: f64) -> f64 {
        let (mu, q) = (1.0 / self.noise_multiplier(), self.sampling_rate());
        let unsampled = 0.5 * alpha * (alpha - 1.0) * mu * mu;
        let spacing = 0.1f64.min(0.3 / mu);
        let count = (25.0 + alpha * mu) / spacing;
        if q == 1.0 || count > 1e6 {
            return unsampled;
        }
        let first = (-12.0 / spacing).floor() as i64;
        let exponent = |i: i64| {
            let z = (first + i) as f64 * spacing;
            let shift = mu * (z - 0.5 * mu);
            let ln_ratio = if shift < 30.0 {
                (q * shift.exp_m1()).ln_1p()
            } else {
                shift + q.ln() + ((1.0 - q) / q * (-shift).exp()).ln_1p()
            };
            (z, alpha * ln_ratio)
        };
        // For a small moment the sum of e^x - 1 is what matters: N(0, 1) integrates to 1 exactly.
        let points = (0..count as i64).map(exponent);
        let density = |z: f64| -0.5 * z * z - crate::normal::LN_SQRT_2PI;
        let largest = points.clone().map(|(z, x)| density(z) + x).fold(f64::MIN, f64::max);
        if largest < 1.0 {
            let sum: f64 = points.map(|(z, x)| density(z).exp() * x.exp_m1()).sum();
            return larger((spacing * sum).ln_1p(), 0.0);
        }
        let sum: f64 = points.map(|(z, x)| (density(z) + x - largest).exp()).sum();
        (largest + (spacing * sum).ln()).min(unsampled)
    }
}

impl Composition {
    /// The epsilon that Rényi divergences give at `delta`, by the best conversion over real orders; looser
    /// than [`epsilon`](Self::epsilon), and found in another way.
    ///
    /// # Errors
    /// When `delta` is not between 0 and 1.
    ///
    /// # Source
    /// Canonne, Kamath and Steinke (2020), proposition 12.
    ///
    /// ```
    /// use antinoise_accounting::{Composition, SampledGaussian};
    /// let run = Composition::new([SampledGaussian::new(1.0, 0.01, 1000)?])?;
    /// assert!(run.epsilon_estimate_from_renyi(1e-5)? > run.epsilon(1e-5)?.lower);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn epsilon_estimate_from_renyi(&self, delta: f64) -> Result<f64> {
        let ln_delta = in_open_unit("delta", delta)?.ln();
        let at = |ln_s: f64| {
            let s = ln_s.exp();
            let ln_moment: f64 = self.phases().map(|run| run.steps() as f64 * run.ln_moment(1.0 + s)).sum();
            (ln_moment - ln_delta - s.ln_1p()) / s - (1.0 / s).ln_1p()
        };
        Ok(larger(golden_section(-12.0, 12.0, at).1 * (1.0 + 1e-9), 0.0))
    }
}
