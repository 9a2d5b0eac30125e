//! Mechanisms of a comparison, and their baselines.

use antinoise_plan::VerifiedPlan;
use serde::{Deserialize, Serialize};

/// A mechanism's name and the plan that runs it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NamedPlan {
    /// Name of the mechanism.
    pub mechanism: String,
    /// Kind of baseline; `None` if the mechanism is not a baseline.
    pub baseline: Option<Baseline>,
    /// Plan that is run and accounted.
    pub plan: VerifiedPlan,
}

/// Baselines of a comparison.
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

/// Name of training without clipping and noise.
pub const WITHOUT_NOISE: &str = "no noise";
