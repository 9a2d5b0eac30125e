//! What is claimed.

use antinoise_accounting::{BMinSep, BallsInBins};
use antinoise_mechanism::{Adjacency, PrivacyUnit};
use serde::{Deserialize, Serialize};

/// How epsilon was computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accountant {
    /// 1/sigma-GDP, exact: no amplification is claimed.
    Gdp,
    /// Privacy loss distributions of the DP-SGD run that banded noise under block-cyclic Poisson sampling is at
    /// least as private as: amplified.
    SampledGaussian,
    /// Balls-in-bins sampling of non-negative correlated noise, by Monte Carlo: amplified, and wrong with a stated
    /// probability.
    BallsInBins,
    /// b-min-sep sampling of banded non-negative correlated noise, by Monte Carlo: amplified, and wrong with a stated
    /// probability.
    BMinSep,
}

impl Accountant {
    /// Of a statistical accountant: the probability that it errs.
    pub fn failure(self) -> Option<f64> {
        match self {
            Self::Gdp | Self::SampledGaussian => None,
            Self::BallsInBins => Some(BallsInBins::CLAIM_FAILURE),
            Self::BMinSep => Some(BMinSep::CLAIM_FAILURE),
        }
    }
}

/// The privacy claim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Privacy {
    /// Never below the truth.
    pub epsilon: f64,
    /// No epsilon below it follows by this accountant at this noise multiplier.
    pub epsilon_lower: f64,
    /// Failure probability.
    pub delta: f64,
    /// Whose data are protected.
    pub unit: PrivacyUnit,
    /// Which datasets are compared.
    pub adjacency: Adjacency,
    /// How epsilon was computed.
    pub accountant: Accountant,
    /// Of a statistical accountant: the probability that it errs, which delta contains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<f64>,
}
