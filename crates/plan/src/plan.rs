//! Plans: their numbers and their privacy claim.

use antinoise_accounting::{
    BlockCyclicPoisson, Bounds, Composition, Gdp, MaxBatch, MonteCarloMechanism, Neighbours,
    PoissonSampledGaussian, Sampling,
};
use antinoise_input::{InvalidParameter, at_least, between};
use antinoise_mechanism::design::Objective;
use antinoise_mechanism::rounded;
use antinoise_mechanism::sensitivity::Sensitivity;
use antinoise_mechanism::{Adjacency, AnyStrategy, Participation, PrivacyUnit, Workload};
use serde::{Deserialize, Serialize};

use crate::arithmetic::RoundedNoise;
use crate::error::{Figure, unsound};
use crate::widened_clip_norm::CLIP_ROUNDING;
use crate::{Accountant, Arithmetic, Error, Result, Sampler, Schedule, monte_carlo};

/// The privacy claim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Privacy {
    /// The claimed epsilon, which is at least the true one.
    pub epsilon: f64,
    /// A lower bound on every epsilon that this accountant could prove for this noise multiplier; it shows
    /// how tight `epsilon` is. In a plan of an earlier version the accountant may have been a looser one:
    /// [`VerifiedPlan::epsilon_lower`](crate::VerifiedPlan::epsilon_lower) is today's.
    pub epsilon_lower: f64,
    /// The delta of the claim.
    pub delta: f64,
    /// Whose data are protected.
    pub unit: PrivacyUnit,
    /// How neighbouring data sets differ.
    pub adjacency: Adjacency,
    /// The accountant by which epsilon was computed.
    pub accountant: Accountant,
    /// The failure probability of a Monte Carlo accountant, which delta includes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<f64>,
}

/// Everything that a reader needs to verify the claim and a trainer needs to run it, as a file states it, not
/// yet verified. Trainers, statements and audits take a [`VerifiedPlan`](crate::VerifiedPlan).
///
/// ```
/// use antinoise_plan::{Length, Plan, Request, Setting, choose};
/// let plan = choose(&Request::new(1000, 50, Length::Epochs(2), Setting::Cyclic))?.plan;
/// assert_eq!(Plan::from_toml(&plan.to_toml())?, plan);
/// assert!(plan.noise_std() >= plan.noise_multiplier * plan.sensitivity.value * plan.clip_norm);
/// # Ok::<(), antinoise_plan::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Plan {
    pub(crate) version: u32,
    /// N: the number of examples, or of users if the unit is the user.
    pub examples: usize,
    /// B: the requested batch size.
    pub batch_size: usize,
    /// M: the maximum number of a user's examples in a step. A step uses the mean of their gradients, clipped
    /// as one gradient; if a user has more examples, M of them are drawn in each step. Present in plans for
    /// users whose sampler forms batches of users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_examples_per_user: Option<usize>,
    /// n: the number of steps of the run.
    pub steps: usize,
    /// Upper bound on the l2 norm of one example's gradient.
    pub clip_norm: f64,
    /// sigma: the standard deviation of the seed noise over (`sensitivity` times clip norm).
    pub noise_multiplier: f64,
    /// Sensitivity of the rounded strategy over `sensitivity`, at least 1. Coefficients are stored in single
    /// precision (plain arithmetic) or double precision (grid). On a grid, the factor also covers rounding of
    /// the history term.
    pub rounding_factor: f64,
    /// The loss that the strategy minimises.
    pub objective: Objective,
    /// The privacy claim.
    pub privacy: Privacy,
    /// The arithmetic of noisy sums.
    pub arithmetic: Arithmetic,
    /// How batches are formed.
    pub sampler: Sampler,
    /// Pi: the participation schema that the sampler guarantees and for which the sensitivity holds. It is
    /// `Single` under amplified Poisson sampling, whose accountant composes a unit's participations one by
    /// one.
    pub participation: Participation,
    /// A: the workload whose loss the strategy minimises.
    pub workload: Workload,
    /// The sensitivity sens(C, Pi) under the adjacency, with its proof: the largest column norm for single
    /// participation.
    pub sensitivity: Sensitivity,
    /// The strategy C.
    pub strategy: AnyStrategy,
}

impl Plan {
    /// The schedule: sampler, schema, and amplification if the stated accountant has it. Refuses a plan whose
    /// stated accountant is not the one that the schedule implies.
    pub(crate) fn schedule(&self) -> Result<Schedule> {
        let stated = self.privacy.accountant;
        let (sampler, participation) = (self.sampler, self.participation.clone());
        let schedule =
            Schedule { steps: self.steps, sampler, participation, amplified: stated.is_amplified() };
        let implied = schedule.accountant();
        if implied != stated {
            let found = format!("{} for sampler {}", implied.name(), self.sampler);
            return Err(unsound(Figure::Accountant, stated.name(), found));
        }
        Ok(schedule)
    }

    /// Bounds on epsilon at the plan's delta, by an accountant other than Monte Carlo. For plans with a Monte
    /// Carlo accountant, they are those of the mechanism without amplification.
    pub(crate) fn epsilon(&self) -> Result<Bounds> {
        let delta = self.privacy.delta;
        if let Some(run) = self.sampled_run(self.steps)? {
            return Ok(Composition::new([run])?.epsilon(delta)?);
        }
        let gdp = Gdp::from_noise_multiplier_upper(self.noise_multiplier)?;
        Ok(Bounds { lower: gdp.epsilon_lower(delta)?, upper: gdp.epsilon_upper(delta)? })
    }

    /// Recomputes [`Plan::rounding_factor`] and the error of the history term that it includes. `exact` is
    /// the sensitivity under zero-out before rounding, and `noise` is the noise in the plan's arithmetic.
    pub(crate) fn rounding(&self, exact: f64, noise: &RoundedNoise) -> Result<Rounding> {
        let (strategy, precision) = (&*self.strategy, self.arithmetic.kind().precision());
        let rounded = rounded::sensitivity_upper(strategy, &self.participation, precision)?;
        let column_norm = (self.participation == Participation::Single).then_some(rounded);
        let history = self.history_error(exact, noise, column_norm)?;
        let left = (1.0 - self.accounted_noise() * history).next_down();
        if !(0.5..=1.0).contains(&left) {
            let must_be = "one whose rounding errors are at most half the sensitivity: use fewer bands, fewer steps or a \
                           smaller --dim, the number of model parameters";
            let got =
                format!("one whose noise may have rounding errors of {:.1e} of the sensitivity", 1.0 - left);
            return Err(InvalidParameter::new("strategy", got, must_be).into());
        }
        let ratio = (rounded / exact).next_up().max(1.0);
        Ok(Rounding { factor: (ratio / left * RECOMPUTATION_MARGIN).next_up(), history })
    }

    /// Upper bound on how far rounding of the history term shifts the mean of C G + Z, in standard deviations
    /// of the seed noise, for every participation schema. `column_norm` is the largest column norm of the
    /// rounded C, if it is known.
    fn history_error(&self, exact: f64, noise: &RoundedNoise, column_norm: Option<f64>) -> Result<f64> {
        match self.arithmetic {
            // The claim of plain arithmetic does not cover the last bits.
            Arithmetic::PlainFloatingPoint => Ok(0.0),
            Arithmetic::Grid { spacing, dim } => {
                let (strategy, precision) = (&*self.strategy, self.arithmetic.kind().precision());
                let single = || rounded::sensitivity_upper(strategy, &Participation::Single, precision);
                let column_norm = column_norm.map_or_else(single, Ok)?;
                let noise_std = self.noise_multiplier * exact * self.clip_norm;
                Ok(noise.history_error(column_norm, spacing / noise_std, dim))
            }
        }
    }

    /// The number of groups of the DP-SGD run to which the accountant reduces this plan; `None` if the
    /// accountant treats it as a Gaussian mechanism.
    ///
    /// ```
    /// # use antinoise_plan::{Length, Request, Setting, choose};
    /// # let plan = choose(&Request::new(1000, 50, Length::Epochs(2), Setting::Cyclic))?.plan;
    /// assert_eq!(plan.dp_sgd_groups(), None); // cyclic batches
    /// # Ok::<(), antinoise_plan::Error>(())
    /// ```
    pub fn dp_sgd_groups(&self) -> Option<usize> {
        self.privacy.accountant.dp_sgd_groups(self.sampler)
    }

    /// Epsilon of a replaced example as if it were removed and another added, which is how plans of replaced
    /// examples under amplified Poisson sampling were accounted for at first; `None` for other plans.
    pub(crate) fn by_two_changes(&self) -> Result<Option<Bounds>> {
        let Some(run) = self.sampled_run(self.steps)? else { return Ok(None) };
        if self.privacy.adjacency == Adjacency::ZeroOut || self.sampler.max_batch_size().is_some() {
            return Ok(None);
        }
        let one = PoissonSampledGaussian::new(run.noise_multiplier(), run.sampling_rate(), run.steps())?;
        Ok(Some(Composition::new([one])?.group_epsilon(self.privacy.delta, 2)?))
    }

    /// A DP-SGD run that, under the plan's adjacency, is no more private than the first `steps` steps of the
    /// plan under amplified Poisson sampling. The conditions of this reduction are checked on the numbers.
    /// `None` for other accountants.
    pub(crate) fn sampled_run(&self, steps: usize) -> Result<Option<PoissonSampledGaussian>> {
        let Some(groups) = self.dp_sgd_groups() else { return Ok(None) };
        between("groups", groups, 1, steps, "steps")?;
        // The rounded C may have more bands: if C^-1 is rounded, entries of C outside the band may become
        // non-zero.
        let bands =
            self.strategy.encoder()?.bandwidth().max(self.strategy.recursion()?.bandwidth(self.steps));
        if bands > groups {
            return Err(unsound(
                Figure::Groups,
                groups,
                format!("at least {bands}, the bands of the strategy"),
            ));
        }
        let sizes = (self.batch_size, self.examples);
        let sampling = sampling(self.sampler, groups, steps, sizes);
        Ok(Some(sampling.run(self.noise_multiplier, neighbours(self.privacy.adjacency))?))
    }

    /// The noise multiplier for the accountant. Under amplified Poisson sampling it is relative to the norm
    /// of one contribution, half of the sensitivity of replace-one, and so twice as large.
    fn accounted_noise(&self) -> f64 {
        let is_sampled = self.dp_sgd_groups().is_some();
        let factor = if is_sampled { self.privacy.adjacency.sensitivity_factor() } else { 1.0 };
        self.noise_multiplier * factor
    }

    /// The input of the plan's Monte Carlo accountant, with the conditions of its theorem checked on the
    /// rounded C; `None` if the plan has another accountant. The noise is divided by the widened clip norm
    /// and reduced by the error `history` of the history term.
    pub(crate) fn simulated(&self, history: f64) -> Result<Option<MonteCarloMechanism>> {
        if self.privacy.accountant.failure_probability().is_none() {
            return Ok(None);
        }
        if self.privacy.adjacency != Adjacency::ZeroOut {
            let found = "zero-out, the adjacency of Monte Carlo accountants";
            return Err(unsound(Figure::Adjacency, self.privacy.adjacency, found));
        }
        let (encoder, factor) = rounded::encoder_upper(&*self.strategy, self.arithmetic.kind().precision())?;
        let history = (self.noise_multiplier * history).next_up();
        // Each product is rounded once.
        let std =
            self.noise_multiplier * self.sensitivity.value * self.rounding_factor * (1.0 - history) / factor;
        let std = std * (1.0 - 8.0 * f64::EPSILON);
        monte_carlo::mechanism(&encoder, self.sampler, (self.batch_size, self.examples), std)
    }

    /// nu: the standard deviation of the seed noise, from which the noise on *sums* of clipped gradients is
    /// computed. It is sigma times the sensitivity, [`Plan::rounding_factor`] and
    /// [`Plan::widened_clip_norm`], rounded up.
    pub fn noise_std(&self) -> f64 {
        let sensitivity = (self.sensitivity.value * self.rounding_factor).next_up();
        ((self.noise_multiplier * sensitivity).next_up() * self.widened_clip_norm()).next_up()
    }

    /// w: an upper bound on the l2 norm of one unit's effect on a step's noisy sum. It is clip_norm (1 +
    /// [`CLIP_ROUNDING`]), plus spacing sqrt(dim) on a grid, rounded up.
    ///
    /// NaN if the arithmetic's numbers are out of range, which verified plans exclude.
    ///
    /// [`CLIP_ROUNDING`]: crate::CLIP_ROUNDING
    pub fn widened_clip_norm(&self) -> f64 {
        self.arithmetic.widened(self.clip_norm).unwrap_or(f64::NAN)
    }

    /// The maximum l2 norm of floating-point errors in a clipped sum, which the program that computes sums
    /// must not exceed.
    pub fn sum_allowance(&self) -> f64 {
        self.clip_norm * CLIP_ROUNDING
    }

    /// Refuses a model of `dim` parameters if the grid was made for fewer.
    ///
    /// # Errors
    /// Names `dim` and the largest value that the plan allows.
    pub fn check_dim(&self, dim: usize) -> Result<()> {
        match self.arithmetic {
            Arithmetic::Grid { dim: most, .. } => between("dim", dim, 1, most, "the plan's dim").map(|_| ()),
            Arithmetic::PlainFloatingPoint => at_least("dim", dim, 1).map(|_| ()),
        }
        .map_err(Error::from)
    }

    /// (n, p): the size of the batch of step `step`, before it is cut at [`Sampler::max_batch_size`], is
    /// Binomial(n, p). `None` if the sampler forms no batches.
    ///
    /// ```
    /// # use antinoise_plan::{Length, Request, Setting, choose};
    /// # let plan = choose(&Request::new(1000, 50, Length::Epochs(2), Setting::Cyclic))?.plan;
    /// assert_eq!(plan.batch_size_law(3), Some((50, 1.0)));
    /// # Ok::<(), antinoise_plan::Error>(())
    /// ```
    pub fn batch_size_law(&self, step: usize) -> Option<(usize, f64)> {
        self.sampler.batch_size_law(step, self.examples, self.batch_size)
    }

    /// The size to which all batches can be padded: the largest one that the sampler can form. `None` if
    /// sizes are random and not cut, or the sampler forms no batches.
    ///
    /// ```
    /// # use antinoise_plan::{Length, Request, Setting, choose};
    /// # let plan = choose(&Request::new(1010, 50, Length::Epochs(2), Setting::Cyclic))?.plan;
    /// assert_eq!(plan.max_batch_size(), Some(51));
    /// # Ok::<(), antinoise_plan::Error>(())
    /// ```
    pub fn max_batch_size(&self) -> Option<usize> {
        match self.sampler {
            Sampler::Cyclic { groups } | Sampler::Shuffled { groups } => Some(self.examples.div_ceil(groups)),
            Sampler::Stream => Some(self.batch_size),
            other => other.max_batch_size(),
        }
    }

    /// The number by which a noisy sum is divided to give a mean gradient.
    pub fn expected_batch_size(&self) -> f64 {
        self.sampler.expected_batch_size(self.examples, self.batch_size)
    }
}

/// The effect of rounding on the sensitivity of a plan's strategy.
pub(crate) struct Rounding {
    /// The smallest valid [`Plan::rounding_factor`].
    pub factor: f64,
    /// Upper bound on how far rounding of the history term shifts the mean of C G + Z, in standard deviations
    /// of the seed noise.
    pub history: f64,
}

/// The sampling of `steps` steps of a strategy with `groups` bands under `sampler`, which forms batches of
/// `batch_size` out of `examples` examples.
pub(crate) fn sampling(
    sampler: Sampler,
    groups: usize,
    steps: usize,
    (batch_size, examples): (usize, usize),
) -> Sampling {
    let batches = BlockCyclicPoisson { bands: groups, steps, batch_size: batch_size as f64, examples };
    let max_batch = sampler.max_batch_size().map(|size| MaxBatch { size, examples });
    Sampling::Poisson { batches, max_batch }
}

/// The adjacency of a plan as its accountant and its statement name it.
///
/// ```
/// use antinoise_accounting::Neighbours;
/// assert_eq!(antinoise_plan::neighbours(antinoise_mechanism::Adjacency::ReplaceOne), Neighbours::ReplaceOne);
/// ```
pub fn neighbours(adjacency: Adjacency) -> Neighbours {
    match adjacency {
        Adjacency::ZeroOut => Neighbours::ZeroOut,
        Adjacency::ReplaceOne => Neighbours::ReplaceOne,
    }
}

/// Margin that covers the rounding of figures that are recomputed on another machine.
pub(crate) const RECOMPUTATION_MARGIN: f64 = 1.0 + 4e-9;
