use antinoise_input::{InvalidParameter, positive};

use super::any_direction::AnyDirection;
use super::mixtures::Mixtures;
use super::pair::Pair;
use super::profile::{Direction, Profile};
use super::truncation::{Truncation, least_max_batch_size};
use super::zeroed::Zeroed;
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
    pub(super) change: Change,
    pub(super) truncation: Option<Truncation>,
}

/// How the examples that differ between neighbouring data sets change a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// They are removed from the batch, or added to it.
    Removed,
    /// They are replaced in it.
    Replaced,
    /// One is removed or added, whichever is worse for the step's loss.
    InAnyDirection,
    /// One of a batch of a fixed size is zeroed.
    Zeroed,
}

impl Change {
    /// Whether batches have a fixed size.
    fn is_of_fixed_size(self) -> bool {
        matches!(self, Self::InAnyDirection | Self::Zeroed)
    }
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
        Ok(Self {
            noise_multiplier,
            sampling_rate,
            steps,
            group: 1,
            change: Change::Removed,
            truncation: None,
        })
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
    /// When `size` is not from 1 to 64, or above 1 for batches of a fixed size
    /// ([`fixed_size_reduction`](crate::fixed_size_reduction)).
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
        if self.change.is_of_fixed_size() && size > 1 {
            return Err(InvalidParameter::new("size", size, "1 for batches of a fixed size").into());
        }
        Ok(Self { group: size as u32, ..self })
    }

    /// The same steps where each example that changes is replaced by another: its contribution may turn into
    /// any other one of the same largest norm, relative to which the noise multiplier remains. Batches of a
    /// fixed size ([`fixed_size_reduction`](crate::fixed_size_reduction)) are already accounted for in this
    /// way.
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
        match self.change {
            Change::Removed => Self { change: Change::Replaced, ..self },
            _ => self,
        }
    }

    /// The same steps where a batch of more than `max_batch_size` examples is cut to that size by a rule that
    /// does not see the examples' content, such as a uniform draw. `examples` is an upper bound on the number
    /// of examples from which a batch is drawn, in both neighbouring data sets. An example that was removed
    /// from a batch contributes nothing; one that contributes zero keeps its place.
    ///
    /// # Errors
    /// When `max_batch_size` is 0, `examples` is not from 1 to 2^53, or batches have a fixed size.
    ///
    /// # Source
    /// Chua et al., "Scalable DP-SGD: shuffling vs. Poisson subsampling" (2024), section 3, with a smaller
    /// cost, which docs/accounting.md proves.
    ///
    /// ```
    /// use antinoise_accounting::{Composition, PoissonSampledGaussian};
    /// let run = PoissonSampledGaussian::new(1.0, 0.01, 1000)?;
    /// let uncut = Composition::new([run])?.epsilon(1e-6)?.upper;
    /// let epsilon = |size| Composition::new([run.truncated(size, 50_000)?])?.epsilon(1e-6);
    /// assert!(epsilon(640)?.upper < 1.001 * uncut && epsilon(600)?.upper > 1.01 * uncut);
    /// assert_eq!(epsilon(50_000)?.upper, uncut);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn truncated(self, max_batch_size: u64, examples: u64) -> Result<Self> {
        if self.change.is_of_fixed_size() {
            let must_be = "left out for batches of a fixed size";
            return Err(InvalidParameter::new("max_batch_size", max_batch_size, must_be).into());
        }
        Ok(Self { truncation: Truncation::new(max_batch_size, examples)?, ..self })
    }

    /// The smallest maximum batch size for which cutting the batches of these steps adds at most `delta` to
    /// the delta of one example.
    ///
    /// # Errors
    /// When `examples` is not from 1 to 2^53.
    ///
    /// ```
    /// use antinoise_accounting::PoissonSampledGaussian;
    /// let run = PoissonSampledGaussian::new(1.0, 0.01, 1000)?;
    /// let size = run.least_max_batch_size(50_000, 1e-8)?;
    /// assert!((620..650).contains(&size), "{size}");
    /// assert!(run.truncated(size, 50_000)?.truncation_delta_upper() <= 1e-8);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn least_max_batch_size(&self, examples: u64, delta: f64) -> Result<u64> {
        least_max_batch_size(self.sampling_rate, self.steps, examples, delta)
    }

    /// An upper bound on what cutting the batches of all steps adds to delta: 0 if no batch can be larger
    /// than the maximum.
    ///
    /// ```
    /// use antinoise_accounting::PoissonSampledGaussian;
    /// let run = PoissonSampledGaussian::new(1.0, 0.01, 1000)?;
    /// assert_eq!(run.truncation_delta_upper(), 0.0);
    /// assert!(run.truncated(600, 50_000)?.truncation_delta_upper() > 1e-6);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn truncation_delta_upper(&self) -> f64 {
        self.truncation_delta_upper_of(1)
    }

    /// The same for `groups` times as many examples that change together.
    pub(super) fn truncation_delta_upper_of(&self, groups: u64) -> f64 {
        let size = u64::from(self.group).saturating_mul(groups);
        self.truncation
            .map_or(0.0, |truncation| truncation.cost_upper_of(self.sampling_rate, self.steps, size))
    }

    /// The same steps where each may be compared in the direction that is worse for its loss.
    pub(crate) fn in_any_direction(self) -> Self {
        Self { change: Change::InAnyDirection, ..self }
    }

    /// The same steps on batches of a fixed size, in which one example is zeroed.
    pub(crate) fn zeroed(self) -> Self {
        Self { change: Change::Zeroed, ..self }
    }

    /// The same steps, all compared in one direction.
    pub(super) fn in_one_direction(self) -> Self {
        Self { change: Change::Removed, ..self }
    }

    /// The same steps without a maximum batch size.
    pub(super) fn uncut(self) -> Self {
        Self { truncation: None, ..self }
    }

    /// Steps without a maximum batch size that are no less private: one example is in a batch at most as
    /// often as after a uniform cut.
    pub(super) fn thinned(self) -> Self {
        let Some(truncation) = self.truncation else { return self };
        let sampling_rate = truncation.kept_rate_lower(self.sampling_rate);
        Self { sampling_rate, group: 1, truncation: None, ..self }
    }

    /// `steps` steps like these.
    ///
    /// # Errors
    /// When `steps` is 0 or above 1e15.
    ///
    /// ```
    /// use antinoise_accounting::PoissonSampledGaussian;
    /// let run = PoissonSampledGaussian::new(1.5, 0.1, 10)?;
    /// assert_eq!(run.with_steps(20)?, PoissonSampledGaussian::new(1.5, 0.1, 20)?);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn with_steps(self, steps: u64) -> Result<Self> {
        let Self { noise_multiplier, sampling_rate, .. } = self;
        let Self { steps, .. } = Self::new(noise_multiplier, sampling_rate, steps)?;
        Ok(Self { steps, ..self })
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

    /// How far the examples that change can move the sum, in norms of one contribution. An example that is
    /// absent from a batch that would be cut leaves its place to another.
    pub(crate) fn distance(&self) -> u64 {
        u64::from(self.group)
            * if self.change == Change::Replaced || self.truncation.is_some() { 2 } else { 1 }
    }

    /// The pair of one step.
    pub(crate) fn pair(&self, direction: Direction) -> Box<dyn Pair> {
        let (mu, q) = (1.0 / self.noise_multiplier, self.sampling_rate);
        let others = match self.change {
            Change::InAnyDirection => return Box::new(AnyDirection { mu, q }),
            Change::Zeroed => return Box::new(Zeroed { mu, q, direction }),
            Change::Removed if self.group == 1 => return Box::new(Profile { mu, q, direction }),
            Change::Removed => 0,
            Change::Replaced => self.group,
        };
        Box::new(match direction {
            Direction::Remove => Mixtures::new(mu, q, self.group, others),
            Direction::Add => Mixtures::new(mu, q, others, self.group),
        })
    }
}
