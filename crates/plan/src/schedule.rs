//! Schedules: how batches are formed, and which accountant applies.

use antinoise_accounting::MonteCarloMechanism;
use antinoise_input::{at_least, between};
use antinoise_mechanism::Participation;
use serde::{Deserialize, Serialize};

use crate::error::{Figure, unsound};
use crate::{Result, Sampler};

/// Maximum number of steps of a plan, over which the row norms of its noise are summed.
const MAX_STEPS: usize = 100_000_000;

/// Returns the number of steps of a plan, where it is in range.
pub(crate) fn checked_steps(steps: usize) -> Result<usize> {
    Ok(between("steps", steps, 1, MAX_STEPS, "the limit of a plan")?)
}

/// The accountant by which epsilon is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accountant {
    /// Gaussian differential privacy with mu = 1/sigma, which is exact; no amplification is claimed.
    Gdp,
    /// Privacy loss distributions, for banded noise under block-cyclic Poisson sampling: amplified. They are
    /// those of a DP-SGD run that is no more private. Where batches are cut at a maximum size, delta includes
    /// the cost of that.
    SampledGaussian,
    /// Balls-in-bins sampling of non-negative correlated noise, by Monte Carlo: amplified, with a stated
    /// failure probability.
    BallsInBins,
    /// b-min-sep sampling of banded non-negative correlated noise, by Monte Carlo: amplified, with a stated
    /// failure probability.
    BMinSep,
}

impl Accountant {
    /// The failure probability of a Monte Carlo accountant.
    pub fn failure_probability(self) -> Option<f64> {
        match self {
            Self::Gdp | Self::SampledGaussian => None,
            Self::BallsInBins | Self::BMinSep => Some(MonteCarloMechanism::CLAIM_FAILURE),
        }
    }

    /// Whether epsilon includes amplification by sampling.
    pub(crate) fn is_amplified(self) -> bool {
        match self {
            Self::Gdp => false,
            Self::SampledGaussian | Self::BallsInBins | Self::BMinSep => true,
        }
    }

    /// The number of groups of the DP-SGD run that stands for a run in compositions with other runs, in group
    /// privacy, and in figures by step. `None` for runs that are treated as a Gaussian mechanism without
    /// sampling, whose figures are upper bounds if batches are sampled.
    pub(crate) fn dp_sgd_groups(self, sampler: Sampler) -> Option<usize> {
        match (self, sampler) {
            (
                Self::SampledGaussian,
                Sampler::Poisson { groups } | Sampler::TruncatedPoisson { groups, .. },
            ) => Some(groups),
            (Self::Gdp | Self::SampledGaussian | Self::BallsInBins | Self::BMinSep, _) => None,
        }
    }

    /// Name of the accountant in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gdp => "gdp",
            Self::SampledGaussian => "sampled-gaussian",
            Self::BallsInBins => "balls-in-bins",
            Self::BMinSep => "b-min-sep",
        }
    }
}

/// The steps, the sampler, the participation schema, and whether amplification by sampling is accounted for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Schedule {
    /// n: the number of steps.
    pub steps: usize,
    /// Sampler: the examples that take part in each step.
    pub sampler: Sampler,
    /// Pi: the schema that the sampler keeps and for which the sensitivity holds. Single under amplified
    /// Poisson sampling, whose accountant composes a unit's participations one by one.
    pub participation: Participation,
    /// Whether amplification by sampling is accounted for, if the sampler has such an accountant.
    pub amplified: bool,
}

impl Schedule {
    /// A schedule without amplification.
    pub fn new(steps: usize, sampler: Sampler, participation: Participation) -> Self {
        Self { steps, sampler, participation, amplified: false }
    }

    /// The same schedule under amplified block-cyclic Poisson sampling. `groups` is the number of bands of
    /// the strategy.
    #[must_use]
    pub fn with_poisson(&self, groups: usize) -> Self {
        let (sampler, participation) = (Sampler::Poisson { groups }, Participation::Single);
        Self { steps: self.steps, sampler, participation, amplified: true }
    }

    /// The same schedule under amplified block-cyclic Poisson sampling, with batches that are cut at
    /// `max_batch_size`.
    #[must_use]
    pub(crate) fn with_truncated_poisson(&self, groups: usize, max_batch_size: usize) -> Self {
        let sampler = Sampler::TruncatedPoisson { groups, max_batch_size };
        Self { sampler, ..self.with_poisson(groups) }
    }

    /// The same schedule and schema under amplified balls-in-bins sampling.
    #[must_use]
    pub(crate) fn with_balls_in_bins(&self, bins: usize) -> Self {
        Self { sampler: Sampler::BallsInBins { bins }, amplified: true, ..self.clone() }
    }

    /// The same schedule under amplified b-min-sep sampling.
    #[must_use]
    pub(crate) fn with_b_min_sep(&self, min_sep: usize) -> Self {
        let participation = match self.steps.div_ceil(min_sep) {
            1 => Participation::Single,
            max_participations => Participation::MinSep { min_sep, max_participations },
        };
        Self { steps: self.steps, sampler: Sampler::BMinSep { min_sep }, participation, amplified: true }
    }

    /// The accountant that the schedule implies. The file of a plan must state the same one.
    pub fn accountant(&self) -> Accountant {
        match self.sampler {
            _ if !self.amplified => Accountant::Gdp,
            Sampler::Cyclic { .. } | Sampler::Shuffled { .. } | Sampler::Stream | Sampler::External => {
                Accountant::Gdp
            }
            Sampler::Poisson { .. } | Sampler::TruncatedPoisson { .. } => Accountant::SampledGaussian,
            Sampler::BallsInBins { .. } => Accountant::BallsInBins,
            Sampler::BMinSep { .. } => Accountant::BMinSep,
        }
    }

    /// Whether the accountant's epsilon includes amplification by sampling.
    pub fn is_amplified(&self) -> bool {
        self.accountant().is_amplified()
    }

    /// Refuses a sampler that can violate the schema, for batches of `batch_size` out of `examples` examples.
    pub(crate) fn check(&self, examples: usize, batch_size: usize) -> Result<()> {
        let keeps = match self.sampler {
            Sampler::Cyclic { groups } | Sampler::BallsInBins { bins: groups } => {
                between("groups", groups, 1, examples, "examples")?;
                self.allows_every(groups)
            }
            Sampler::Shuffled { groups } => {
                between("groups", groups, 1, examples, "examples")?;
                self.allows_each_epoch(groups)
            }
            Sampler::Poisson { groups } => {
                at_least("groups", groups, 1)?;
                match self.amplified {
                    true => self.participation == Participation::Single,
                    false => groups == 1 && self.participation == Participation::FullBatch,
                }
            }
            Sampler::TruncatedPoisson { groups, max_batch_size } => {
                at_least("groups", groups, 1)?;
                between("max_batch_size", max_batch_size, batch_size, examples, "examples")?;
                self.amplified && self.participation == Participation::Single
            }
            Sampler::BMinSep { min_sep } => {
                let limit = "examples / batch_size, the largest number of disjoint batches";
                between("min_sep", min_sep, 1, examples / batch_size, limit)?;
                self.allows_at_least(min_sep)
            }
            Sampler::Stream => {
                let limit = "examples / batch_size, the length of the stream";
                between("steps", self.steps, 1, examples / batch_size, limit)?;
                self.allows_every(self.steps)
            }
            Sampler::External => self.is_separation(),
        };
        if keeps {
            return Ok(());
        }
        Err(unsound(Figure::Participation, &self.participation, format!("sampler {}", self.sampler)))
    }

    /// Whether the schema contains all sets of steps that have its separation and number of participations.
    /// Users that come by themselves are refused by these two alone, so that they may take part in late steps
    /// of a phase, or in steps of several listed patterns.
    fn is_separation(&self) -> bool {
        match self.participation {
            Participation::Cyclic { min_sep, max_participations } => {
                self.steps.div_ceil(min_sep.max(1)) <= max_participations
            }
            Participation::Single | Participation::FullBatch | Participation::MinSep { .. } => true,
            Participation::EachEpoch { .. } | Participation::Patterns { .. } => false,
        }
    }

    /// Whether the schema contains every pattern of at most one step in each epoch of `epoch_steps` steps.
    fn allows_each_epoch(&self, epoch_steps: usize) -> bool {
        match self.participation {
            Participation::EachEpoch { epoch_steps: of_schema } => of_schema == epoch_steps,
            Participation::FullBatch => true,
            Participation::MinSep { min_sep, max_participations } => {
                min_sep == 1 && self.steps.div_ceil(epoch_steps) <= max_participations
            }
            Participation::Single | Participation::Cyclic { .. } => self.steps <= epoch_steps,
            // A list of patterns may omit some.
            Participation::Patterns { .. } => false,
        }
    }

    /// Whether the schema contains every pattern whose steps are at least `spacing` apart.
    fn allows_at_least(&self, spacing: usize) -> bool {
        let participations = self.steps.div_ceil(spacing);
        match self.participation {
            Participation::FullBatch => true,
            Participation::MinSep { min_sep, max_participations } => {
                spacing >= min_sep && participations <= max_participations
            }
            Participation::EachEpoch { epoch_steps } => spacing >= epoch_steps || participations <= 1,
            Participation::Single | Participation::Cyclic { .. } => participations <= 1,
            // A list of patterns may omit some.
            Participation::Patterns { .. } => false,
        }
    }

    /// Whether the schema contains every pattern whose steps are exactly `spacing` apart.
    fn allows_every(&self, spacing: usize) -> bool {
        match self.participation {
            Participation::Cyclic { min_sep, max_participations } => {
                spacing == min_sep && self.steps.div_ceil(spacing) <= max_participations
            }
            Participation::Single
            | Participation::FullBatch
            | Participation::MinSep { .. }
            | Participation::EachEpoch { .. }
            | Participation::Patterns { .. } => self.allows_at_least(spacing),
        }
    }
}
