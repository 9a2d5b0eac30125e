//! What is compared.

use antinoise_plan::VerifiedPlan;
use serde::{Deserialize, Serialize};

/// A mechanism's name and the plan that runs it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NamedPlan {
    /// As the command line names it.
    pub mechanism: String,
    /// What it stands for in a comparison, if it is there to compare with.
    pub baseline: Option<Baseline>,
    /// What is run and accounted.
    pub plan: VerifiedPlan,
}

/// What others are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Baseline {
    /// No privacy: neither clipping nor noise.
    None,
    /// Independent noise without amplification.
    Independent,
    /// Independent noise that sampling amplifies: DP-SGD.
    IndependentAmplified,
}

/// What training without clipping and noise is called.
pub const WITHOUT_NOISE: &str = "no noise";
