//! A claim that a stranger may have written, shown by sampling that nobody could choose.

use super::mechanism::BallsInBins;
use crate::monte_carlo::simulation::{self, Simulation};
use crate::monte_carlo::{Normals, Source};
use crate::{Result, StatisticalDelta};

/// Samples on which noise is searched for, and on which tilts are.
const SEARCHED: usize = 16_384;
const FEW: usize = 1024;

impl BallsInBins {
    /// The probability that a figure of [`BallsInBins::claimed_delta`] errs: one in 10^20.
    ///
    /// Whoever writes a claim may write it again with other last digits, until some samples happen to show what is not true. That
    /// takes 10^20 claims, of a second each.
    pub const CLAIM_FAILURE: f64 = simulation::CLAIM_FAILURE;

    /// delta at `epsilon`, on samples that follow from the claim itself: from SHA-256 of C, noise, bins and epsilon, expanded by
    /// ChaCha20. So it is the same whenever it is asked for, and nobody could choose the samples, not even who wrote the claim.
    ///
    /// `upper` contains [`BallsInBins::CLAIM_FAILURE`], and what missing tails of the normals and rounding may do.
    ///
    /// # Errors
    /// When `epsilon` is negative or not finite.
    ///
    /// ```
    /// use antinoise_accounting::{BallsInBins, Gdp};
    /// let mechanism = BallsInBins::new(&[vec![1.0, 0.5], vec![1.0]], 2, 2.0)?;
    /// let found = mechanism.claimed_delta(1.0)?;
    /// assert_eq!(found, mechanism.claimed_delta(1.0)?);
    /// // Nobody knows the bin: that is worth something.
    /// assert!(found.upper < Gdp::new(0.5 * 1.25f64.sqrt())?.delta_to_nearest(1.0)?);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn claimed_delta(&self, epsilon: f64) -> Result<StatisticalDelta> {
        simulation::claimed(&self.sampler, epsilon, false)
    }

    /// A lower bound on delta at `epsilon`, on such samples, but fewer: how tight a claim is.
    ///
    /// # Errors
    /// When `epsilon` is negative or not finite.
    ///
    /// ```
    /// use antinoise_accounting::BallsInBins;
    /// let mechanism = BallsInBins::new(&[vec![1.0, 0.5], vec![1.0]], 2, 2.0)?;
    /// assert!(mechanism.claimed_delta_lower(0.9)? > mechanism.claimed_delta(1.2)?.upper);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn claimed_delta_lower(&self, epsilon: f64) -> Result<f64> {
        Ok(simulation::claimed(&self.sampler, epsilon, true)?.lower)
    }

    /// What the noise has to be multiplied by for [`BallsInBins::claimed_delta`] at `epsilon` to be at most `delta`, as far as
    /// other samples can tell: it proves nothing, and leaves a margin for what the claim's own samples may differ by. Never more
    /// than what needs no sampling.
    ///
    /// # Errors
    /// When epsilon or delta is out of range, or no such noise is found.
    ///
    /// ```
    /// use antinoise_accounting::BallsInBins;
    /// let columns = vec![vec![1.0]; 8];
    /// let factor = BallsInBins::new(&columns, 4, 1.0)?.noise_factor(1.0, 1e-3)?;
    /// assert!(BallsInBins::new(&columns, 4, factor)?.claimed_delta(1.0)?.upper <= 1e-3);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn noise_factor(&self, epsilon: f64, delta: f64) -> Result<f64> {
        let mut normals = Normals::new(&Source::of_seed(0), 0, 0);
        let draws: Vec<_> = self.sampler.draws(&mut normals, SEARCHED).collect();
        let few = &draws[..draws.len() * FEW / SEARCHED];
        simulation::noise_factor(epsilon, delta, self.sampler.largest_norm(), |ln_factor: f64| {
            let sampler = self.sampler.scaled((-ln_factor).exp());
            simulation::likely_end(&sampler, epsilon, |direction, &tilt, is_rough| {
                sampler.tally_of(direction, epsilon, tilt, if is_rough { few } else { &draws })
            })
        })
    }
}
