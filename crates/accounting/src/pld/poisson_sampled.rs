use antinoise_input::{InvalidParameter, positive};

use super::profile::{Direction, Profile};
use crate::Result;

/// Steps of DP-SGD with Poisson sampling, each of which adds Gaussian noise to the sum over a random batch.
///
/// Every example takes part in a step with probability `sampling_rate`, independently; the standard deviation
/// of the noise is `noise_multiplier` times the maximum norm of one example's contribution. Neighbouring data
/// sets differ in one example, which is present or not (add-or-remove), or contributes zero (zero-out).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PoissonSampledGaussian {
    pub(super) noise_multiplier: f64,
    pub(super) sampling_rate: f64,
    pub(super) steps: u64,
}

impl PoissonSampledGaussian {
    /// `steps` steps at `sampling_rate` with `noise_multiplier`.
    ///
    /// # Errors
    /// When `noise_multiplier` is not in 1e-6..=1e12, `sampling_rate` not in (0, 1], or `steps` is 0 or above
    /// 1e15.
    ///
    /// ```
    /// use antinoise_accounting::PoissonSampledGaussian;
    /// assert!(PoissonSampledGaussian::new(1.0, 0.01, 1000).is_ok());
    /// assert!(PoissonSampledGaussian::new(1.0, 1.01, 1000).unwrap_err().to_string().starts_with("sampling_rate is 1.01"));
    /// ```
    pub fn new(noise_multiplier: f64, sampling_rate: f64, steps: u64) -> Result<Self> {
        positive("noise_multiplier", noise_multiplier)?;
        if !(1e-6..=1e12).contains(&noise_multiplier) {
            return Err(InvalidParameter::new(
                "noise_multiplier",
                format!("{noise_multiplier:?}"),
                "from 1e-6 to 1e12",
            )
            .into());
        }
        if !(sampling_rate > 0.0 && sampling_rate <= 1.0) {
            return Err(InvalidParameter::new("sampling_rate", sampling_rate, "above 0 and at most 1").into());
        }
        if !(1..=1_000_000_000_000_000).contains(&steps) {
            return Err(InvalidParameter::new("steps", steps, "from 1 to 1e15").into());
        }
        Ok(Self { noise_multiplier, sampling_rate, steps })
    }

    /// The noise multiplier.
    ///
    /// ```
    /// assert_eq!(antinoise_accounting::PoissonSampledGaussian::new(1.5, 0.1, 10)?.noise_multiplier(), 1.5);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn noise_multiplier(&self) -> f64 {
        self.noise_multiplier
    }

    /// The probability that an example takes part in a step.
    ///
    /// ```
    /// assert_eq!(antinoise_accounting::PoissonSampledGaussian::new(1.5, 0.1, 10)?.sampling_rate(), 0.1);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn sampling_rate(&self) -> f64 {
        self.sampling_rate
    }

    /// The number of steps.
    ///
    /// ```
    /// assert_eq!(antinoise_accounting::PoissonSampledGaussian::new(1.5, 0.1, 10)?.steps(), 10);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn steps(&self) -> u64 {
        self.steps
    }

    pub(crate) fn profile(&self, direction: Direction) -> Profile {
        Profile { mu: 1.0 / self.noise_multiplier, q: self.sampling_rate, direction }
    }
}
