//! Settings of an audit.

use antinoise_input::{InvalidParameter, at_least, between, in_open_unit};

use crate::Error;

/// Maximum number of audited steps. Since C is lower triangular, the first steps of a longer run are a
/// mechanism too.
pub(crate) const MOST_STEPS: usize = 1 << 15;
/// Default maximum number of noisy numbers that are drawn to distinguish neighbours, which takes a minute or
/// two on one core.
const MOST_NUMBERS: u64 = 3_000_000_000;

/// Settings of an audit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Maximum probability that a correct mechanism is rejected, over all tests.
    pub alpha: f64,
    /// Number of runs whose noise is tested, an even number.
    pub runs: usize,
    /// Maximum number of noisy values, summed over all runs. After the first `runs` runs, the audit adds
    /// runs until `mu_lower` reaches 0.9 of the stated mu or this maximum is reached.
    pub most_numbers: u64,
    /// Number of units, each of which is a separate experiment in every run; at least 16.
    pub units: usize,
    /// Number of examples in the test of sums, which tries to move a sum beyond its bound.
    pub examples: usize,
    /// The seed for patterns and signs.
    pub seed: u64,
}

impl Settings {
    /// Default settings, with which `mu_lower` reaches 0.9 of the stated mu, or as much as a minute or two
    /// allows. For up to a thousand steps and mu from 0.5 to 5 this takes seconds.
    ///
    /// ```
    /// let settings = antinoise_audit::Settings::new(1e-3, 4000);
    /// assert_eq!((settings.runs, settings.examples), (8, 60_000));
    /// ```
    pub fn new(alpha: f64, steps: usize) -> Self {
        let units = (1_000_000 / steps.clamp(1, MOST_STEPS)).clamp(128, 256);
        Self { alpha, runs: 8, most_numbers: MOST_NUMBERS, units, examples: 60_000, seed: 1 }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        in_open_unit("alpha", self.alpha)?;
        between("runs", self.runs, 2, 1 << 12, "2^12")?;
        if !self.runs.is_multiple_of(2) {
            return Err(InvalidParameter::new("runs", self.runs, "an even number").into());
        }
        between("units", self.units, 16, 1 << 12, "2^12")?;
        at_least("examples", self.examples, 8)?;
        Ok(())
    }
}
