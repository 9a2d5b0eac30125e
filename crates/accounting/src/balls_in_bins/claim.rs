//! A claim that a stranger may have written, shown by sampling that nobody could choose.

use antinoise_input::{in_open_unit, non_negative, positive};
use sha2::{Digest, Sha256};

use super::mechanism::{BallsInBins, FIGURE};
use crate::monte_carlo::{Direction, Normals, Source, half_width};
use crate::root::crossing;
use crate::{Error, MonteCarlo, Result, StatisticalDelta, gaussian_noise_multiplier_upper};

/// How a claim is shown; the claim takes the place of a seed.
const SETTINGS: MonteCarlo =
    MonteCarlo { failure: BallsInBins::CLAIM_FAILURE, precision: 0.05, most_samples: 300_000, seed: 0 };
/// How it is shown that a claim is not far from what is true, which takes fewer samples.
const ROUGH: MonteCarlo = MonteCarlo { precision: 0.5, ..SETTINGS };
/// What the rounding of samples may move a figure by.
const EVALUATION: f64 = 1e-9;
/// Samples on which noise is searched for, and on which tilts are.
const SEARCHED: usize = 16_384;
const FEW: usize = 1024;
/// How close to its threshold the logarithm of the noise is brought.
const TOLERANCE: f64 = 5e-4;

impl BallsInBins {
    /// The probability that a figure of [`BallsInBins::claimed_delta`] errs: one in 10^20.
    ///
    /// Whoever writes a claim may write it again with other last digits, until some samples happen to show what is not true. That
    /// takes 10^20 claims, of a second each.
    pub const CLAIM_FAILURE: f64 = 1e-20;

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
        self.claimed(epsilon, &SETTINGS)
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
        Ok(self.claimed(epsilon, &ROUGH)?.lower)
    }

    fn claimed(&self, epsilon: f64, settings: &MonteCarlo) -> Result<StatisticalDelta> {
        let epsilon = non_negative("epsilon", epsilon)?;
        let mut hash = Sha256::new();
        hash.update(b"antinoise balls in bins 1");
        for number in self.sampler.numbers().chain([epsilon, settings.precision]) {
            hash.update(number.to_le_bytes());
        }
        let found = self.measure(epsilon, settings, &Source::of_key(hash.finalize().into()), FIGURE);
        let upper = (found.upper * (1.0 + EVALUATION)).min(1.0);
        Ok(StatisticalDelta { lower: found.lower * (1.0 - EVALUATION), upper, ..found })
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
        let (epsilon, delta) = (positive("epsilon", epsilon)?, in_open_unit("delta", delta)?);
        let mut normals = Normals::new(&Source::of_seed(0), 0, 0);
        let draws: Vec<_> = self.sampler.draws(&mut normals, SEARCHED).collect();
        let few = &draws[..draws.len() * FEW / SEARCHED];
        let excess = |ln_factor: f64| {
            let sampler = self.sampler.scaled((-ln_factor).exp());
            let ends = Direction::BOTH.map(|direction| {
                let tally = |tilt, draws| sampler.tally_of(direction, epsilon, tilt, draws);
                let tilt = sampler.best_tilt(direction, epsilon, &SETTINGS, |tilt| tally(tilt, few));
                let (found, most) = (tally(tilt, &draws), sampler.largest(direction, epsilon, tilt));
                let claim = found.of_as_many(SETTINGS.samples(&found, most));
                // Its own error, and half of the claim's interval more, where the claim's samples may lie.
                let own = 3.0 * (found.variance() / found.count as f64).sqrt();
                found.mean() + own + 1.5 * half_width(&claim, most, 0.25 * SETTINGS.failure)
            });
            ends[0].max(ends[1]).max(f64::MIN_POSITIVE).ln() - delta.ln()
        };
        let unsampled = gaussian_noise_multiplier_upper(epsilon, delta)? * self.sampler.largest_norm();
        let mut works = (unsampled.ln(), excess(unsampled.ln()));
        if works.1 > 0.0 {
            return Ok(unsampled);
        }
        for _ in 0..40 {
            let next = works.0 - 0.25;
            let fails = (next, excess(next));
            if fails.1 > 0.0 {
                return Ok(crossing(fails, works, TOLERANCE, excess).1.exp());
            }
            works = fails;
        }
        Err(Error::OutOfReach { parameter: "noise", reason: "next to no noise would do".into() })
    }
}
