//! A claim that a stranger may have written, shown by sampling that nobody could choose.

use super::mechanism::BMinSep;
use crate::monte_carlo::Source;
use crate::monte_carlo::simulation::{self, Simulation};
use crate::{Result, StatisticalDelta};

/// Samples on which noise is searched for, and on which proposals are.
const SEARCHED: usize = 8192;
const FEW: usize = 1024;

impl BMinSep {
    /// The probability that a figure of [`BMinSep::claimed_delta`] errs: one in 10^20, as for
    /// [`BallsInBins`](crate::BallsInBins::CLAIM_FAILURE).
    pub const CLAIM_FAILURE: f64 = simulation::CLAIM_FAILURE;

    /// delta at `epsilon`, on samples that follow from the claim itself: from SHA-256 of C, noise, sampling and epsilon, expanded by
    /// ChaCha20. So it is the same whenever it is asked for, and nobody could choose the samples, not even who wrote the claim.
    ///
    /// `upper` contains [`BMinSep::CLAIM_FAILURE`], and what missing tails of the normals and rounding may do.
    ///
    /// # Errors
    /// When `epsilon` is negative or not finite.
    ///
    /// ```
    /// use antinoise_accounting::{BMinSep, Gdp};
    /// let mechanism = BMinSep::new(&[vec![1.0, 0.5], vec![1.0]], 2, 1.0, 8, 2.0)?;
    /// let found = mechanism.claimed_delta(1.0)?;
    /// assert_eq!(found, mechanism.claimed_delta(1.0)?);
    /// // Nobody knows the step: that is worth something.
    /// assert!(found.upper < Gdp::new(0.5 * 1.25f64.sqrt())?.delta_to_nearest(1.0)?);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn claimed_delta(&self, epsilon: f64) -> Result<StatisticalDelta> {
        simulation::claimed(&self.pair, epsilon, false)
    }

    /// A lower bound on delta at `epsilon`, on such samples, but fewer: how tight a claim is.
    ///
    /// # Errors
    /// When `epsilon` is negative or not finite.
    ///
    /// ```
    /// use antinoise_accounting::BMinSep;
    /// let mechanism = BMinSep::new(&[vec![1.0, 0.5], vec![1.0]], 2, 1.0, 3, 2.0)?;
    /// assert!(mechanism.claimed_delta_lower(0.9)? > mechanism.claimed_delta(1.4)?.upper);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn claimed_delta_lower(&self, epsilon: f64) -> Result<f64> {
        Ok(simulation::claimed(&self.pair, epsilon, true)?.lower)
    }

    /// What the noise has to be multiplied by for [`BMinSep::claimed_delta`] at `epsilon` to be at most `delta`, as far as
    /// other samples can tell: it proves nothing, and leaves a margin for what the claim's own samples may differ by. Never more
    /// than what needs no sampling.
    ///
    /// # Errors
    /// When epsilon or delta is out of range, or no such noise is found.
    ///
    /// ```
    /// use antinoise_accounting::BMinSep;
    /// let columns = vec![vec![1.0]; 8];
    /// let factor = BMinSep::new(&columns, 2, 1.0, 4, 1.0)?.noise_factor(1.0, 1e-3)?;
    /// assert!(BMinSep::new(&columns, 2, 1.0, 4, factor)?.claimed_delta(1.0)?.upper <= 1e-3);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn noise_factor(&self, epsilon: f64, delta: f64) -> Result<f64> {
        let source = Source::of_seed(0);
        simulation::noise_factor(epsilon, delta, self.pair.largest_norm(), |ln_factor: f64| {
            let pair = self.pair.scaled((-ln_factor).exp());
            simulation::likely_end(&pair, epsilon, |direction, tilt, is_rough| {
                let count = if is_rough { FEW } else { SEARCHED };
                pair.tally(direction, epsilon, tilt, count, &source)
            })
        })
    }
}
