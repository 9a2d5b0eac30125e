use antinoise_input::{in_open_unit, non_negative};

use crate::root::golden_section;
use crate::{Gdp, Result};

/// Zero-concentrated differential privacy: Rényi divergence at most `rho alpha` at every order `alpha` > 1.
///
/// # Source
/// Bun and Steinke, "Concentrated differential privacy" (2016), definition 1.1.
///
/// ```
/// use antinoise_accounting::{Gdp, Zcdp};
/// let weak = Zcdp::new(0.5)?.epsilon_upper(1e-5)?;
/// assert!(weak > Gdp::new(1.0)?.epsilon_upper(1e-5)? && weak < 5.0);
/// # Ok::<(), antinoise_accounting::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Zcdp {
    rho: f64,
}

impl Zcdp {
    /// `rho`-zCDP.
    ///
    /// # Errors
    /// When `rho` is negative or not finite.
    ///
    /// ```
    /// assert_eq!(antinoise_accounting::Zcdp::new(0.5)?.rho(), 0.5);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn new(rho: f64) -> Result<Self> {
        Ok(Self { rho: non_negative("rho", rho)? })
    }

    /// `rho`.
    ///
    /// ```
    /// assert_eq!(antinoise_accounting::Zcdp::new(0.5)?.rho(), 0.5);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn rho(self) -> f64 {
        self.rho
    }

    /// All of `parts` released together: the sum of `rho`, rounded up.
    ///
    /// # Errors
    /// When the sum overflows.
    ///
    /// # Source
    /// Bun and Steinke (2016), lemma 1.7.
    ///
    /// ```
    /// use antinoise_accounting::Zcdp;
    /// let both = Zcdp::compose_upper([Zcdp::new(0.25)?, Zcdp::new(0.5)?])?;
    /// assert!(both.rho() >= 0.75 && both.rho() < 0.75 + 1e-14);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn compose_upper(parts: impl IntoIterator<Item = Self>) -> Result<Self> {
        Self::new(parts.into_iter().fold(0.0, |sum: f64, part| match (sum, part.rho) {
            (0.0, rho) => rho,
            (sum, 0.0) => sum,
            (sum, rho) => (sum + rho).next_up(),
        }))
    }

    /// An `epsilon` that holds at `delta`, by the best conversion that is known from Rényi divergences:
    /// `min over alpha > 1 of rho alpha + ln(1/(alpha delta))/(alpha - 1) + ln(1 - 1/alpha)`.
    ///
    /// # Errors
    /// When `delta` is not between 0 and 1.
    ///
    /// # Source
    /// Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy" (2020), proposition 12.
    ///
    /// ```
    /// let epsilon = antinoise_accounting::Zcdp::new(0.5)?.epsilon_upper(1e-5)?;
    /// assert!((epsilon - 4.7285).abs() < 1e-3, "{epsilon}");
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn epsilon_upper(self, delta: f64) -> Result<f64> {
        let ln_delta = in_open_unit("delta", delta)?.ln();
        if self.rho == 0.0 {
            return Ok(0.0);
        }
        let at = |order_less_one: f64| epsilon_at(self.rho, order_less_one, ln_delta);
        // With s = alpha - 1 the leading terms are rho s + ln(1/delta)/s, least at sqrt(ln(1/delta)/rho);
        // the remaining terms move the minimum by far less than the range searched.
        let centre = 0.5 * ((-ln_delta).ln() - self.rho.ln());
        let (_, best) = golden_section(centre - 40.0, centre + 40.0, |ln_s| at(ln_s.exp()));
        Ok((best + 1e-13 * (1.0 + best.abs())).clamp(0.0, f64::MAX))
    }

    /// A `delta` that holds at `epsilon`, by the same conversion:
    /// `min over alpha > 1 of exp((alpha - 1)(rho alpha - epsilon)) (1 - 1/alpha)^alpha / (alpha - 1)`.
    ///
    /// # Errors
    /// When `epsilon` is negative or not finite.
    ///
    /// # Source
    /// As for [`epsilon_upper`](Self::epsilon_upper).
    ///
    /// ```
    /// use antinoise_accounting::Zcdp;
    /// let privacy = Zcdp::new(0.5)?;
    /// let delta = privacy.delta_upper(privacy.epsilon_upper(1e-5)?)?;
    /// assert!((delta / 1e-5 - 1.0).abs() < 1e-9);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn delta_upper(self, epsilon: f64) -> Result<f64> {
        let epsilon = non_negative("epsilon", epsilon)?;
        if self.rho == 0.0 {
            return Ok(0.0);
        }
        let (_, best) = golden_section(-80.0, 400.0, |ln_s| {
            let s = ln_s.exp();
            s * (self.rho * (1.0 + s) - epsilon) - s * (1.0 / s).ln_1p() - s.ln_1p()
        });
        Ok((best + 1e-13 * (1.0 + best.abs())).exp().next_up().min(1.0))
    }
}

impl Gdp {
    /// The same guarantee as zero-concentrated differential privacy, which is weaker.
    ///
    /// ```
    /// assert_eq!(antinoise_accounting::Gdp::new(0.5)?.to_zcdp_upper().rho(), 0.125);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn to_zcdp_upper(self) -> Zcdp {
        Zcdp { rho: self.rho_upper() }
    }
}

/// The conversion at the order `alpha = 1 + s`; every `s` > 0 gives a valid epsilon.
fn epsilon_at(rho: f64, s: f64, ln_delta: f64) -> f64 {
    rho * (1.0 + s) - (ln_delta + s.ln_1p()) / s - (1.0 / s).ln_1p()
}
