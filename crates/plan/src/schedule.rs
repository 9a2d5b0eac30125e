//! How batches are formed, and which privacy analysis that allows.

use antinoise_accounting::MonteCarloMechanism;
use antinoise_input::{at_least, between};
use antinoise_mechanism::Participation;
use serde::{Deserialize, Serialize};

use crate::error::{Figure, unsound};
use crate::{Result, Sampler};

/// How epsilon was computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accountant {
    /// 1/sigma-GDP, exact; no amplification is claimed.
    Gdp,
    /// Privacy loss distributions of a DP-SGD run that is no more private than banded noise under
    /// block-cyclic Poisson sampling: amplified.
    SampledGaussian,
    /// Balls-in-bins sampling of non-negative correlated noise, by Monte Carlo: amplified, with a stated
    /// failure probability.
    BallsInBins,
    /// b-min-sep sampling of banded non-negative correlated noise, by Monte Carlo: amplified, with a stated
    /// failure probability.
    BMinSep,
}

impl Accountant {
    /// The failure probability of a statistical accountant.
    pub fn failure_probability(self) -> Option<f64> {
        match self {
            Self::Gdp | Self::SampledGaussian => None,
            Self::BallsInBins | Self::BMinSep => Some(MonteCarloMechanism::CLAIM_FAILURE),
        }
    }

    /// Whether epsilon counts amplification by sampling.
    pub(crate) fn is_amplified(self) -> bool {
        match self {
            Self::Gdp => false,
            Self::SampledGaussian | Self::BallsInBins | Self::BMinSep => true,
        }
    }

    /// Groups of the DP-SGD run as which a run composes with others, with other examples of a user, and step
    /// by step. `None` for runs that compose as a Gaussian mechanism without sampling, whose figures bound
    /// those of sampled batches.
    pub(crate) fn dp_sgd_groups(self, sampler: Sampler) -> Option<usize> {
        match (self, sampler) {
            (Self::SampledGaussian, Sampler::Poisson { groups }) => Some(groups),
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

/// The steps, the batches, and whether the randomness of sampling is accounted for.
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
    /// Whether sampling amplifies privacy, for samplers for which there is such an analysis.
    pub amplified: bool,
}

impl Schedule {
    /// A schedule without amplification.
    pub fn new(steps: usize, sampler: Sampler, participation: Participation) -> Self {
        Self { steps, sampler, participation, amplified: false }
    }

    /// This schedule under amplified block-cyclic Poisson sampling. `groups` is the number of bands of the
    /// strategy.
    #[must_use]
    pub fn with_poisson(&self, groups: usize) -> Self {
        let (sampler, participation) = (Sampler::Poisson { groups }, Participation::Single);
        Self { steps: self.steps, sampler, participation, amplified: true }
    }

    /// This schedule under amplified balls-in-bins sampling, with the same schema.
    #[must_use]
    pub(crate) fn with_balls_in_bins(&self, bins: usize) -> Self {
        Self { sampler: Sampler::BallsInBins { bins }, amplified: true, ..self.clone() }
    }

    /// This schedule under amplified b-min-sep sampling.
    #[must_use]
    pub(crate) fn with_b_min_sep(&self, min_sep: usize) -> Self {
        let participation = match self.steps.div_ceil(min_sep) {
            1 => Participation::Single,
            max_participations => Participation::MinSep { min_sep, max_participations },
        };
        Self { steps: self.steps, sampler: Sampler::BMinSep { min_sep }, participation, amplified: true }
    }

    /// The accountant of epsilon. Derived here alone; a plan's file states it, and must state this one.
    pub fn accountant(&self) -> Accountant {
        match self.sampler {
            _ if !self.amplified => Accountant::Gdp,
            Sampler::Cyclic { .. } | Sampler::Stream | Sampler::External => Accountant::Gdp,
            Sampler::Poisson { .. } => Accountant::SampledGaussian,
            Sampler::BallsInBins { .. } => Accountant::BallsInBins,
            Sampler::BMinSep { .. } => Accountant::BMinSep,
        }
    }

    /// Whether the accountant's epsilon counts amplification by sampling.
    pub fn is_amplified(&self) -> bool {
        self.accountant().is_amplified()
    }

    /// Refuses a sampler that does not keep the schema, for batches of `batch_size` of `examples` examples.
    pub(crate) fn check(&self, examples: usize, batch_size: usize) -> Result<()> {
        let keeps = match self.sampler {
            Sampler::Cyclic { groups } | Sampler::BallsInBins { bins: groups } => {
                between("groups", groups, 1, examples, "examples")?;
                self.allows_every(groups)
            }
            Sampler::Poisson { groups } => {
                at_least("groups", groups, 1)?;
                match self.amplified {
                    true => self.participation == Participation::Single,
                    false => groups == 1 && self.participation == Participation::FullBatch,
                }
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
            Sampler::External => true,
        };
        if keeps {
            return Ok(());
        }
        Err(unsound(Figure::Participation, &self.participation, format!("sampler {:?}", self.sampler)))
    }

    /// Whether the schema has every pattern of steps at least `spacing` apart.
    fn allows_at_least(&self, spacing: usize) -> bool {
        let participations = self.steps.div_ceil(spacing);
        match self.participation {
            Participation::FullBatch => true,
            Participation::MinSep { min_sep, max_participations } => {
                spacing >= min_sep && participations <= max_participations
            }
            Participation::Single | Participation::Cyclic { .. } => participations <= 1,
            // A list may omit some patterns.
            Participation::Patterns { .. } => false,
        }
    }

    /// Whether the schema has every pattern of steps exactly `spacing` apart.
    fn allows_every(&self, spacing: usize) -> bool {
        match self.participation {
            Participation::Cyclic { min_sep, max_participations } => {
                spacing == min_sep && self.steps.div_ceil(spacing) <= max_participations
            }
            Participation::Single
            | Participation::FullBatch
            | Participation::MinSep { .. }
            | Participation::Patterns { .. } => self.allows_at_least(spacing),
        }
    }
}
