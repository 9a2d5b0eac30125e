use antinoise_input::{InvalidParameter, in_open_unit, non_negative, positive};

use crate::Result;
use crate::curve::{LARGEST_MU, ln_delta, rounding};
use crate::root::{greatest_float, least_float};

/// Gaussian differential privacy: releases from neighbouring data sets are no easier to distinguish than
/// N(0, 1) and N(mu, 1).
///
/// `mu = sensitivity / noise standard deviation = 1 / noise multiplier`; `delta(epsilon) =
/// Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2)`. For a Gaussian mechanism, one release or
/// a whole composition, this is exact: [`epsilon_upper`](Self::epsilon_upper) and
/// [`epsilon_lower`](Self::epsilon_lower) differ by rounding alone.
///
/// # Source
/// Dong, Roth and Su, "Gaussian differential privacy" (2022), corollary 2.13; Balle and Wang, "Improving
/// the Gaussian mechanism for differential privacy" (2018), theorem 8.
///
/// ```
/// use antinoise_accounting::Gdp;
/// let epsilon = Gdp::new(1.0)?.epsilon_upper(1e-5)?;
/// assert!((epsilon - 4.3772).abs() < 1e-4);
/// # Ok::<(), antinoise_accounting::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Gdp {
    mu: f64,
}

impl Gdp {
    /// Creates `mu`-GDP; `mu` = 0 is perfect privacy.
    ///
    /// # Errors
    /// When `mu` is not in 0..=1e150.
    ///
    /// ```
    /// use antinoise_accounting::Gdp;
    /// assert_eq!(Gdp::new(0.5)?.mu(), 0.5);
    /// assert!(Gdp::new(-1.0).is_err());
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn new(mu: f64) -> Result<Self> {
        let mu = non_negative("mu", mu)?;
        if mu > LARGEST_MU {
            return Err(InvalidParameter::new("mu", mu, "at most 1e150").into());
        }
        Ok(Self { mu })
    }

    /// The privacy of noise with standard deviation `sigma` times the sensitivity: `mu = 1/sigma`, rounded
    /// up.
    ///
    /// # Errors
    /// When `sigma` is not finite or below 1e-150.
    ///
    /// ```
    /// use antinoise_accounting::Gdp;
    /// assert_eq!(Gdp::from_noise_multiplier_upper(4.0)?.mu(), 0.25);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn from_noise_multiplier_upper(sigma: f64) -> Result<Self> {
        let sigma = positive("noise_multiplier", sigma)?;
        let mu = reciprocal_up(sigma);
        if mu > LARGEST_MU {
            return Err(InvalidParameter::new("noise_multiplier", sigma, "at least 1e-150").into());
        }
        Ok(Self { mu })
    }

    /// The largest `mu` that implies `(epsilon, delta)`-differential privacy, rounded down.
    ///
    /// # Errors
    /// When `epsilon` is negative or not finite, or `delta` is not between 0 and 1.
    ///
    /// ```
    /// use antinoise_accounting::Gdp;
    /// let mu = Gdp::from_privacy_lower(2.0, 1e-6)?.mu();
    /// assert!((1.0 / mu - 2.23048).abs() < 1e-5);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn from_privacy_lower(epsilon: f64, delta: f64) -> Result<Self> {
        let epsilon = non_negative("epsilon", epsilon)?;
        let ln_target = in_open_unit("delta", delta)?.ln();
        let meets = |mu: f64| Self { mu }.ln_delta_upper(epsilon) <= ln_target;
        // mu = 0 always meets the target, so that there is a largest mu.
        Ok(Self { mu: greatest_float(LARGEST_MU, meets).unwrap_or(0.0) })
    }

    /// The parameter `mu`.
    ///
    /// ```
    /// assert_eq!(antinoise_accounting::Gdp::new(0.5)?.mu(), 0.5);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn mu(self) -> f64 {
        self.mu
    }

    /// `rho = mu^2 / 2` of zero-concentrated differential privacy, rounded up.
    ///
    /// # Source
    /// Bun and Steinke, "Concentrated differential privacy" (2016), proposition 1.6.
    ///
    /// ```
    /// assert_eq!(antinoise_accounting::Gdp::new(0.5)?.rho_upper(), 0.125);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn rho_upper(self) -> f64 {
        let rho = 0.5 * self.mu * self.mu;
        let exact =
            (0.5 * self.mu).mul_add(self.mu, -rho) <= 0.0 && (rho > f64::MIN_POSITIVE || self.mu == 0.0);
        if exact { rho } else { rho.next_up() }
    }

    /// Adaptive composition of `parts`: `sqrt(sum mu_i^2)`, rounded up.
    ///
    /// # Source
    /// Dong, Roth and Su (2022), corollary 3.3.
    ///
    /// # Errors
    /// When the result exceeds 1e150.
    ///
    /// ```
    /// use antinoise_accounting::Gdp;
    /// let both = Gdp::compose_upper([Gdp::new(3.0)?, Gdp::new(4.0)?])?;
    /// assert!((both.mu() - 5.0).abs() < 1e-14 && both.mu() >= 5.0);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn compose_upper(parts: impl IntoIterator<Item = Self>) -> Result<Self> {
        // The error of hypot is at most one ulp, and it neither overflows nor underflows.
        let mu = parts.into_iter().fold(0.0, |sum: f64, part| match (sum, part.mu) {
            (sum, 0.0) => sum,
            (0.0, mu) => mu,
            (sum, mu) => sum.hypot(mu) * (1.0 + 2.0 * f64::EPSILON),
        });
        Self::new(mu)
    }

    /// `times` releases of this privacy: `mu sqrt(times)`, rounded up.
    ///
    /// # Errors
    /// When the result exceeds 1e150.
    ///
    /// ```
    /// use antinoise_accounting::Gdp;
    /// assert!((Gdp::new(0.1)?.repeat_upper(100)?.mu() - 1.0).abs() < 1e-14);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn repeat_upper(self, times: u64) -> Result<Self> {
        match times {
            0 => Self::new(0.0),
            1 => Ok(self),
            _ => Self::new(self.mu * (times as f64).sqrt() * (1.0 + 3.0 * f64::EPSILON)),
        }
    }

    /// The logarithm of [`delta`](Self::delta_to_nearest), which does not underflow; minus infinity at `mu` =
    /// 0.
    ///
    /// # Errors
    /// When `epsilon` is negative or not finite.
    ///
    /// ```
    /// use antinoise_accounting::Gdp;
    /// assert!((Gdp::new(1.0)?.ln_delta_to_nearest(100.0)? + 4960.2546).abs() < 1e-3);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn ln_delta_to_nearest(self, epsilon: f64) -> Result<f64> {
        Ok(ln_delta(self.mu, non_negative("epsilon", epsilon)?))
    }

    /// The least `delta` at `epsilon`, to nearest:
    /// `Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2)`.
    ///
    /// # Errors
    /// When `epsilon` is negative or not finite.
    ///
    /// ```
    /// use antinoise_accounting::Gdp;
    /// assert!((Gdp::new(1.0)?.delta_to_nearest(0.0)? - 0.3829249225480262).abs() < 1e-15);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn delta_to_nearest(self, epsilon: f64) -> Result<f64> {
        Ok(self.ln_delta_to_nearest(epsilon)?.exp())
    }

    /// A `delta` that holds at `epsilon`: [`delta`](Self::delta_to_nearest), rounded up.
    ///
    /// # Errors
    /// When `epsilon` is negative or not finite.
    ///
    /// ```
    /// use antinoise_accounting::Gdp;
    /// let privacy = Gdp::new(1.0)?;
    /// assert!(privacy.delta_upper(1.0)? > privacy.delta_lower(1.0)?);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn delta_upper(self, epsilon: f64) -> Result<f64> {
        let epsilon = non_negative("epsilon", epsilon)?;
        if self.mu == 0.0 {
            return Ok(0.0);
        }
        Ok(self.ln_delta_upper(epsilon).exp().next_up().min(1.0))
    }

    /// A lower bound on every `delta` that holds at `epsilon`: [`delta`](Self::delta_to_nearest), rounded
    /// down.
    ///
    /// # Errors
    /// When `epsilon` is negative or not finite.
    ///
    /// ```
    /// use antinoise_accounting::Gdp;
    /// assert!(Gdp::new(1.0)?.delta_lower(0.0)? <= 0.3829249225480262);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn delta_lower(self, epsilon: f64) -> Result<f64> {
        let epsilon = non_negative("epsilon", epsilon)?;
        Ok(self.ln_delta_lower(epsilon).exp().next_down().max(0.0))
    }

    /// The least `epsilon` at `delta`, rounded up.
    ///
    /// # Errors
    /// When `delta` is not between 0 and 1.
    ///
    /// ```
    /// use antinoise_accounting::Gdp;
    /// let epsilon = Gdp::from_noise_multiplier_upper(0.34099)?.epsilon_upper(1e-6)?;
    /// assert!((epsilon - 17.648).abs() < 1e-3);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn epsilon_upper(self, delta: f64) -> Result<f64> {
        let ln_target = in_open_unit("delta", delta)?.ln();
        // For mu <= 1e150, delta(f64::MAX) is 0, so that the search always finds a finite epsilon.
        Ok(least_float(|epsilon| self.ln_delta_upper(epsilon) <= ln_target).unwrap_or(f64::MAX))
    }

    /// The least `epsilon` at `delta`, rounded down.
    ///
    /// # Errors
    /// When `delta` is not between 0 and 1.
    ///
    /// ```
    /// use antinoise_accounting::Gdp;
    /// let privacy = Gdp::new(1.0)?;
    /// let (lower, upper) = (privacy.epsilon_lower(1e-9)?, privacy.epsilon_upper(1e-9)?);
    /// assert!(lower <= upper && upper - lower < 1e-11);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn epsilon_lower(self, delta: f64) -> Result<f64> {
        let ln_target = in_open_unit("delta", delta)?.ln();
        Ok(greatest_float(f64::MAX, |epsilon| self.ln_delta_lower(epsilon) >= ln_target).unwrap_or(0.0))
    }

    fn ln_delta_upper(self, epsilon: f64) -> f64 {
        let ln_delta = ln_delta(self.mu, epsilon);
        ln_delta + rounding(ln_delta)
    }

    fn ln_delta_lower(self, epsilon: f64) -> f64 {
        let ln_delta = ln_delta(self.mu, epsilon);
        ln_delta - rounding(ln_delta)
    }
}

/// The smallest noise multiplier that makes a Gaussian mechanism `(epsilon, delta)`-private, rounded up.
///
/// # Errors
/// When `epsilon` is negative or not finite, or `delta` is not between 0 and 1.
///
/// ```
/// let sigma = antinoise_accounting::gaussian_noise_multiplier_upper(8.841, 1e-6)?;
/// assert!((sigma - 0.59997).abs() < 1e-5);
/// # Ok::<(), antinoise_accounting::Error>(())
/// ```
pub fn gaussian_noise_multiplier_upper(epsilon: f64, delta: f64) -> Result<f64> {
    Ok(reciprocal_up(Gdp::from_privacy_lower(epsilon, delta)?.mu))
}

/// 1/x rounded up.
fn reciprocal_up(x: f64) -> f64 {
    let y = 1.0 / x;
    if y.mul_add(x, -1.0) < 0.0 { y.next_up() } else { y }
}
