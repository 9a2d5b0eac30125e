//! The result of an audit.

use serde::Serialize;

/// One test, which rejects if the statistic exceeds the threshold.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
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
        // A comparison with NaN is false, so that NaN is rejected.
        let holds = statistic <= threshold;
        Self { name: name.into(), statistic, threshold, rejected: !holds }
    }
}

/// The verdict of an audit, with all tests.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
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
    /// between neighbours that was found. It is smaller than the stated mu if the claim is an upper bound, or
    /// assumes that the observer knows noise which is never used.
    pub mu_reachable: f64,
    /// Number of audited steps: all steps, or the first steps of a long plan.
    pub steps_audited: usize,
    /// Number of runs, each with its own noise.
    pub runs: usize,
    /// Number of runs with which all but one in 700 audits prove `mu_wanted`. If `runs` is smaller, the limit
    /// of the settings was reached.
    pub runs_wanted: usize,
    /// The lower bound on mu that the runs should prove: 0.91 of the stated mu, or less if `mu_reachable` is
    /// small.
    pub mu_wanted: f64,
    /// The maximum number of noisy numbers, from the settings.
    pub most_numbers: u64,
    /// The tests.
    pub tests: Vec<Test>,
    /// Wall time, in seconds.
    pub seconds: f64,
}

/// If `mu_reachable` is below this fraction of the stated mu, the report says that it limits the power.
const NEARLY: f64 = 0.985;

impl Report {
    /// The reasons, one sentence each, why `mu_lower` may be below nine tenths of the stated mu even for a
    /// correct mechanism.
    pub fn limits(&self) -> Vec<String> {
        let runs = (self.runs < self.runs_wanted).then(|| {
            let share = self.runs as f64 / self.runs_wanted as f64;
            format!(
                "The power is limited by the number of runs: {} were made of the {} that would show a mu of {:.3}, since an audit \
                 draws at most {:.1e} numbers ({share:.1e} of the experiments).",
                self.runs, self.runs_wanted, self.mu_wanted, self.most_numbers as f64
            )
        });
        let reach = (self.mu_reachable < NEARLY * self.mu_stated).then(|| {
            format!(
                "The power is limited by what the noisy sums show: the farthest neighbours that were found are {:.3} apart in them, and no \
                 number of runs shows more.",
                self.mu_reachable
            )
        });
        runs.into_iter().chain(reach).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_of_the_power_is_named_and_no_other() {
        let report = |runs, mu_reachable| Report {
            accepted: true,
            alpha: 1e-3,
            mu_stated: 1.0,
            mu_lower: 0.5,
            mu_reachable,
            steps_audited: 4,
            runs,
            runs_wanted: 200,
            mu_wanted: 0.91,
            most_numbers: 3_000_000_000,
            tests: Vec::new(),
            seconds: 0.0,
        };
        assert!(report(200, 1.0).limits().is_empty() && report(202, 0.99).limits().is_empty());
        let of = |runs, reachable| report(runs, reachable).limits().join(" ");
        assert!(of(50, 1.0).contains(
            "limited by the number of runs: 50 were made of the 200 that would show a mu of 0.910"
        ));
        assert!(
            of(50, 1.0).contains("at most 3.0e9 numbers")
                && !of(50, 1.0).contains("by what the noisy sums show")
        );
        assert!(of(200, 0.8).contains(
            "limited by what the noisy sums show: the farthest neighbours that were found are 0.800 apart"
        ));
        assert_eq!(report(50, 0.8).limits().len(), 2);
    }
}
