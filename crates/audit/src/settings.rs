//! How much is run.

use antinoise_input::{at_least, between, in_open_unit};

use crate::Error;

/// Most steps that are run. C is lower triangular, so the first steps of a longer run are a mechanism of their own.
pub(crate) const MOST_STEPS: usize = 1 << 15;
/// How much is run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// The most probability that a correct mechanism is rejected, over all tests.
    pub alpha: f64,
    /// Runs of the whole mechanism, two or more.
    pub runs: usize,
    /// Units, each an experiment of its own in every run; 16 or more.
    pub units: usize,
    /// Examples in the test of sums, which tries to move a sum too far.
    pub examples: usize,
    /// The seed for patterns and signs.
    pub seed: u64,
}

impl Settings {
    /// Enough for `steps` steps to take seconds.
    ///
    /// ```
    /// let settings = antinoise_audit::Settings::new(1e-3, 4000);
    /// assert_eq!((settings.runs, settings.examples), (8, 60_000));
    /// ```
    pub fn new(alpha: f64, steps: usize) -> Self {
        let units = (1_000_000 / steps.clamp(1, MOST_STEPS)).clamp(32, 256);
        Self { alpha, runs: 8, units, examples: 60_000, seed: 1 }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        in_open_unit("alpha", self.alpha)?;
        between("runs", self.runs, 2, 1 << 12, "2^12")?;
        between("units", self.units, 16, 1 << 12, "2^12")?;
        at_least("examples", self.examples, 8)?;
        Ok(())
    }
}
