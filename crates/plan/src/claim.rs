//! What is claimed.

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
}
