//! When a plan's units take part.

use antinoise_mechanism::Participation;

use crate::{Accountant, Sampler};

/// How batches are formed, and whether that amplifies privacy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scheme {
    /// All steps are one release.
    Unamplified {
        /// Which examples take part when.
        sampler: Sampler,
        /// Pi: the schema that the sampler keeps and the sensitivity is for.
        participation: Participation,
    },
    /// Block-cyclic Poisson sampling in as many groups as the strategy has bands: each of a unit's participations is
    /// released by itself, and they are composed.
    Amplified {
        /// Steps between two turns of an example.
        groups: usize,
    },
    /// Balls-in-bins sampling, which amplifies any C without negative entries: nobody knows an example's bin.
    BallsInBins {
        /// Steps between two turns of an example.
        bins: usize,
        /// Pi: the schema that each bin keeps and the sensitivity is for.
        participation: Participation,
    },
}

impl Scheme {
    /// Which examples take part when.
    pub fn sampler(&self) -> Sampler {
        match *self {
            Self::Unamplified { sampler, .. } => sampler,
            Self::Amplified { groups } => Sampler::Poisson { groups },
            Self::BallsInBins { bins, .. } => Sampler::BallsInBins { bins },
        }
    }

    /// Pi: the schema that the sensitivity is for; single where sampling amplifies.
    pub fn participation(&self) -> &Participation {
        match self {
            Self::Unamplified { participation, .. } | Self::BallsInBins { participation, .. } => {
                participation
            }
            Self::Amplified { .. } => &Participation::Single,
        }
    }

    /// What accounts for it.
    pub fn accountant(&self) -> Accountant {
        match self {
            Self::Unamplified { .. } => Accountant::Gdp,
            Self::Amplified { .. } => Accountant::SampledGaussian,
            Self::BallsInBins { .. } => Accountant::BallsInBins,
        }
    }

    /// Whether sampling amplifies privacy.
    pub fn is_amplified(&self) -> bool {
        !matches!(self, Self::Unamplified { .. })
    }
}

/// The steps, and who takes part in them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// n.
    pub steps: usize,
    /// Who takes part.
    pub scheme: Scheme,
}

impl Schedule {
    /// The same steps under Poisson sampling in as many groups as the strategy has bands.
    #[must_use]
    pub fn amplified(&self, groups: usize) -> Self {
        Self { steps: self.steps, scheme: Scheme::Amplified { groups } }
    }
}
