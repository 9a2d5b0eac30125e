//! The result of an audit.

use serde::Serialize;

/// One test: rejected where the statistic is above the threshold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Test {
    /// The name of the test.
    pub name: String,
    /// The statistic.
    pub statistic: f64,
    /// The threshold: the most that the claim allows.
    pub threshold: f64,
    /// True if the statistic is above the threshold. For a correct mechanism this has probability at most alpha over all tests.
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
    /// The most probability that a correct mechanism is rejected, over all tests.
    pub alpha: f64,
    /// The privacy that is claimed.
    pub mu_stated: f64,
    /// The lower bound on mu from guesses about neighbours: at confidence 1 - alpha the mechanism is not
    /// mu-GDP for a smaller mu.
    pub mu_lower: f64,
    /// What `mu_lower` approaches as runs grow, if the mechanism is what it claims to be: how far the
    /// farthest neighbours that were found are apart in what is released. Below the stated mu where that
    /// counts noise as known which is never released, or is an upper bound.
    pub mu_reachable: f64,
    /// Steps that were run: all, or the first ones of a long plan.
    pub steps_audited: usize,
    /// Runs, each with its own noise.
    pub runs: usize,
    /// The tests.
    pub tests: Vec<Test>,
    /// Wall time.
    pub seconds: f64,
}
