//! The result of an audit.

use serde::Serialize;

/// One test, which rejects if the statistic exceeds the threshold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Test {
    /// The name of the test.
    pub name: String,
    /// The statistic.
    pub statistic: f64,
    /// The threshold: an upper bound under the claim.
    pub threshold: f64,
    /// Whether the statistic exceeds the threshold. For a correct mechanism this has probability at most
    /// alpha over all tests.
    pub rejected: bool,
}

impl Test {
    pub(crate) fn new(name: impl Into<String>, statistic: f64, threshold: f64) -> Self {
        // Written so that NaN rejects.
        let holds = statistic <= threshold;
        Self { name: name.into(), statistic, threshold, rejected: !holds }
    }
}

/// The verdict, with all tests.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Whether no test rejects.
    pub accepted: bool,
    /// Maximum probability that a correct mechanism is rejected, over all tests.
    pub alpha: f64,
    /// The claimed mu.
    pub mu_stated: f64,
    /// A lower bound on mu from guesses about neighbours: at confidence 1 - alpha the mechanism is not mu-GDP
    /// for a smaller mu.
    pub mu_lower: f64,
    /// The limit of `mu_lower` for many runs, if the mechanism satisfies its claim: the largest distance
    /// found between neighbours in the releases. Smaller than the stated mu if the claim counts noise as
    /// known that is never released, or is an upper bound.
    pub mu_reachable: f64,
    /// Number of audited steps: all, or the first ones of a long plan.
    pub steps_audited: usize,
    /// Number of runs, each with its own noise.
    pub runs: usize,
    /// The tests.
    pub tests: Vec<Test>,
    /// Wall time, in seconds.
    pub seconds: f64,
}
