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
    /// b-min-sep sampling, which amplifies any C without negative entries that has no more bands than b.
    BMinSep {
        /// b: steps between two turns of an example, at least.
        min_sep: usize,
        /// Pi: the schema that the sampler keeps and the sensitivity is for.
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
            Self::BMinSep { min_sep, .. } => Sampler::BMinSep { min_sep },
        }
    }

    /// Pi: the schema that the sensitivity is for; single where sampling amplifies.
    pub fn participation(&self) -> &Participation {
        match self {
            Self::Unamplified { participation, .. }
            | Self::BallsInBins { participation, .. }
            | Self::BMinSep { participation, .. } => participation,
            Self::Amplified { .. } => &Participation::Single,
        }
    }

    /// What accounts for it.
    pub fn accountant(&self) -> Accountant {
        match self {
            Self::Unamplified { .. } => Accountant::Gdp,
            Self::Amplified { .. } => Accountant::SampledGaussian,
            Self::BallsInBins { .. } => Accountant::BallsInBins,
            Self::BMinSep { .. } => Accountant::BMinSep,
        }
    }

    /// b-min-sep sampling over so many steps.
    pub(crate) fn min_sep(min_sep: usize, steps: usize) -> Self {
        let participation = match steps.div_ceil(min_sep) {
            1 => Participation::Single,
            max_participations => Participation::MinSep { min_sep, max_participations },
        };
        Self::BMinSep { min_sep, participation }
    }

    /// Whether its claim is shown by sampling.
    pub(crate) fn is_simulated(&self) -> bool {
        matches!(self, Self::BallsInBins { .. } | Self::BMinSep { .. })
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
