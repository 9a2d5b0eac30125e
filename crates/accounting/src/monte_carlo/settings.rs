use antinoise_input::{at_least, in_open_unit, largest, positive};

use super::estimate::Tally;
use super::tally::PILOT;
use crate::Result;

/// The settings of a Monte Carlo figure.
///
/// ```
/// let settings = antinoise_accounting::MonteCarlo { seed: 7, ..Default::default() };
/// assert_eq!(settings.max_samples, 1_000_000);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MonteCarlo {
    /// The probability that the stated figure is wrong. It is added to every stated delta.
    pub failure_probability: f64,
    /// Target half-width of the confidence interval, relative to the estimate. The number of samples follows
    /// from it.
    pub precision: f64,
    /// Largest number of samples in each direction, whatever the precision.
    pub max_samples: usize,
    /// Seed of the random numbers. The same seed gives the same figures on any number of threads.
    pub seed: u64,
}

impl Default for MonteCarlo {
    fn default() -> Self {
        Self { failure_probability: 1e-8, precision: 0.02, max_samples: 1_000_000, seed: 0 }
    }
}

/// A delta estimated by sampling, with confidence bounds.
///
/// ```
/// use antinoise_accounting::{MonteCarlo, MonteCarloMechanism};
/// let found = MonteCarloMechanism::balls_in_bins(&[vec![1.0]], 1, 1.0)?;
/// let found = found.delta(1.0, &MonteCarlo::default())?;
/// assert!(found.samples > 0 && found.failure_probability == 1e-8);
/// # Ok::<(), antinoise_accounting::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct StatisticalDelta {
    /// The estimate for the direction (removal or addition) with the larger delta.
    pub estimate: f64,
    /// Lower bound; it exceeds the true delta with probability at most `failure_probability`.
    pub lower: f64,
    /// The figure to state: an upper bound, plus `failure_probability`, the probability that it is wrong.
    pub upper: f64,
    /// The probability that the true delta is outside of the bounds.
    pub failure_probability: f64,
    /// Number of samples in both directions together.
    pub samples: usize,
}

impl MonteCarlo {
    pub(crate) fn check(&self) -> Result<()> {
        in_open_unit("failure_probability", self.failure_probability)?;
        positive("precision", self.precision)?;
        at_least("max_samples", self.max_samples, PILOT)?;
        Ok(())
    }

    /// The number of samples for which the half-width is expected to be `precision` times the mean of the
    /// pilot.
    pub(crate) fn samples(&self, pilot: &Tally, largest: f64) -> usize {
        self.samples_for(self.precision * pilot.mean(), pilot, largest)
    }

    /// The number of samples for which the half-width is expected to be `wanted`, at most the maximum.
    pub(crate) fn samples_for(&self, wanted: f64, pilot: &Tally, largest: f64) -> usize {
        let samples = self.effort(wanted, pilot, largest) / wanted;
        if samples < self.max_samples as f64 { (samples as usize).max(PILOT) } else { self.max_samples }
    }

    /// That number times `wanted`, without the maximum; finite even if all samples of the pilot are 0.
    pub(crate) fn effort(&self, wanted: f64, pilot: &Tally, largest: f64) -> f64 {
        let ln_failures = (8.0 / self.failure_probability).ln();
        let for_variance = 8.0 * pilot.variance() / wanted;
        ln_failures * for_variance.max(5.0 * largest)
    }
}

impl StatisticalDelta {
    /// The larger delta of the two directions, each given as (mean, half-width of its confidence interval,
    /// samples).
    pub(crate) fn max_of(ends: [(f64, f64, usize); 2], failure_probability: f64) -> Self {
        let fold = |f: fn(&(f64, f64, usize)) -> f64| largest(ends.iter().map(f));
        Self {
            estimate: fold(|end| end.0),
            lower: fold(|end| end.0 - end.1),
            upper: (fold(|end| end.0 + end.1) + failure_probability).min(1.0),
            failure_probability,
            samples: ends.iter().map(|end| end.2).sum(),
        }
    }
}
