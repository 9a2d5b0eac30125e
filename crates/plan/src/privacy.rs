//! The privacy claim of a plan, and its accountants.

use antinoise_accounting::MonteCarloMechanism;
use antinoise_mechanism::{Adjacency, PrivacyUnit};
use serde::{Deserialize, Serialize};

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

    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gdp => "gdp",
            Self::SampledGaussian => "sampled-gaussian",
            Self::BallsInBins => "balls-in-bins",
            Self::BMinSep => "b-min-sep",
        }
    }
}

/// The privacy claim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Privacy {
    /// Never below the true epsilon.
    pub epsilon: f64,
    /// No smaller epsilon can be shown by this accountant at this noise multiplier.
    pub epsilon_lower: f64,
    /// delta of the claim.
    pub delta: f64,
    /// Whose data are protected.
    pub unit: PrivacyUnit,
    /// Which data sets are compared.
    pub adjacency: Adjacency,
    /// How epsilon was computed.
    pub accountant: Accountant,
    /// The failure probability of a statistical accountant, which delta includes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<f64>,
}
