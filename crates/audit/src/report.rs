//! What an audit found.

use serde::Serialize;

/// One test: rejected where the statistic is above the threshold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Test {
    /// What is tested.
    pub name: String,
    /// What was found.
    pub statistic: f64,
    /// The most that the claim allows.
    pub threshold: f64,
    /// The claim does not hold, or the audit was unlucky, with probability alpha over all tests.
    pub rejected: bool,
}

impl Test {
    pub(crate) fn new(name: impl Into<String>, statistic: f64, threshold: f64) -> Self {
        // What is no number is no proof that anything holds.
        let holds = statistic <= threshold;
        Self { name: name.into(), statistic, threshold, rejected: !holds }
    }
}

/// The verdict, with every test that it rests on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// No test rejects.
    pub accepted: bool,
    /// Most probability of a correct mechanism to be rejected, by all tests together.
    pub alpha: f64,
    /// The privacy that is claimed.
    pub mu_stated: f64,
    /// The distance of neighbours that was seen: at confidence 1 - alpha the mechanism is no better than this-GDP.
    pub mu_lower: f64,
    /// Steps that were run: all, or the first ones of a long plan.
    pub steps_audited: usize,
    /// Runs, each with its own noise.
    pub runs: usize,
    /// The tests.
    pub tests: Vec<Test>,
    /// Wall time.
    pub seconds: f64,
}
