//! How much is run.

use antinoise_input::{InvalidParameter, at_least, between, in_open_unit};

use crate::Error;

/// Most steps that are run. C is lower triangular, so the first steps of a longer run are a mechanism of their own.
pub(crate) const MOST_STEPS: usize = 1 << 15;
/// Numbers that are released at most to find out how far neighbours are apart: a minute or two of one core.
const MOST_NUMBERS: u64 = 3_000_000_000;

/// How much is run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// The most probability that a correct mechanism is rejected, over all tests.
    pub alpha: f64,
    /// Runs of the whole mechanism whose noise is tested, an even number.
    pub runs: usize,
    /// Further runs, as many as `mu_lower` needs to be 0.9 of the stated mu, release no more numbers than
    /// this.
    pub most_numbers: u64,
    /// Units, each an experiment of its own in every run; 16 or more.
    pub units: usize,
    /// Examples in the test of sums, which tries to move a sum too far.
    pub examples: usize,
    /// The seed for patterns and signs.
    pub seed: u64,
}

impl Settings {
    /// Enough for `mu_lower` to be 0.9 of the stated mu, or as much as a minute or two shows: seconds, for up
    /// to a thousand steps and mu from 0.5 to 5.
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
