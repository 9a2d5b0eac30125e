use antinoise_input::{InvalidParameter, positive};

use super::mixtures::Mixtures;
use super::pair::Pair;
use super::profile::{Direction, Profile};
use crate::Result;

/// Steps of DP-SGD with Poisson sampling, each of which adds Gaussian noise to the sum over a random batch.
///
/// Every example takes part in a step with probability `sampling_rate`, independently; the standard deviation
/// of the noise is `noise_multiplier` times the maximum norm of one example's contribution. Neighbouring data
/// sets differ in one example, which is present or not (add-or-remove), or contributes zero (zero-out),
/// unless [`of_group`](Self::of_group) and [`replaced`](Self::replaced) say otherwise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PoissonSampledGaussian {
    pub(super) noise_multiplier: f64,
    pub(super) sampling_rate: f64,
    pub(super) steps: u64,
    pub(super) group: u32,
    pub(super) is_replaced: bool,
}

/// Largest number of examples that change together.
const MAX_GROUP: u64 = 64;

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
        Ok(Self { noise_multiplier, sampling_rate, steps, group: 1, is_replaced: false })
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

    /// The same steps where `size` examples change together, each sampled independently of the others.
    ///
    /// Not for several examples under block-cyclic sampling with more than one group, where those of
    /// different groups affect the same rows of C.
    ///
    /// # Errors
    /// When `size` is not from 1 to 64.
    ///
    /// ```
    /// use antinoise_accounting::{Composition, PoissonSampledGaussian};
    /// let one = PoissonSampledGaussian::new(1.0, 0.01, 1000)?;
    /// let three = Composition::new([one.of_group(3)?])?.epsilon(1e-5)?.upper;
    /// assert!(three < Composition::new([one])?.group_epsilon_upper(1e-5, 3)?);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn of_group(self, size: u64) -> Result<Self> {
        if !(1..=MAX_GROUP).contains(&size) {
            return Err(InvalidParameter::new("size", size, "from 1 to 64").into());
        }
        Ok(Self { group: size as u32, ..self })
    }

    /// The same steps where each example that changes is replaced by another: its contribution may turn into
    /// any other one of the same largest norm, relative to which the noise multiplier remains.
    ///
    /// ```
    /// use antinoise_accounting::{Composition, PoissonSampledGaussian};
    /// let run = PoissonSampledGaussian::new(1.0, 0.01, 1000)?;
    /// let replaced = Composition::new([run.replaced()])?.epsilon(1e-5)?.upper;
    /// let removed = Composition::new([run])?;
    /// assert!(removed.epsilon(1e-5)?.upper < replaced && replaced < removed.group_epsilon_upper(1e-5, 2)?);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn replaced(self) -> Self {
        Self { is_replaced: true, ..self }
    }

    /// The same steps with another noise multiplier.
    ///
    /// # Errors
    /// When `noise_multiplier` is not in 1e-6..=1e12.
    ///
    /// ```
    /// use antinoise_accounting::PoissonSampledGaussian;
    /// let run = PoissonSampledGaussian::new(1.5, 0.1, 10)?;
    /// assert_eq!(run.with_noise_multiplier(2.0)?, PoissonSampledGaussian::new(2.0, 0.1, 10)?);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn with_noise_multiplier(self, noise_multiplier: f64) -> Result<Self> {
        let Self { sampling_rate, steps, .. } = self;
        let Self { noise_multiplier, .. } = Self::new(noise_multiplier, sampling_rate, steps)?;
        Ok(Self { noise_multiplier, ..self })
    }

    /// How far the examples that change can move the sum, in norms of one contribution.
    pub(crate) fn distance(&self) -> u64 {
        u64::from(self.group) * if self.is_replaced { 2 } else { 1 }
    }

    /// The pair of one step.
    pub(crate) fn pair(&self, direction: Direction) -> Box<dyn Pair> {
        let (mu, q) = (1.0 / self.noise_multiplier, self.sampling_rate);
        if self.distance() == 1 {
            return Box::new(Profile { mu, q, direction });
        }
        let others = if self.is_replaced { self.group } else { 0 };
        Box::new(match direction {
            Direction::Remove => Mixtures::new(mu, q, self.group, others),
            Direction::Add => Mixtures::new(mu, q, others, self.group),
        })
    }
}
