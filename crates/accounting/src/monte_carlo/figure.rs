use antinoise_input::{at_least, in_open_unit, largest, positive};

use super::estimate::Tally;
use super::tally::PILOT;
use crate::Result;

/// The settings of a Monte Carlo figure.
///
/// ```
/// let settings = antinoise_accounting::MonteCarlo { seed: 7, ..Default::default() };
/// assert_eq!(settings.most_samples, 1_000_000);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MonteCarlo {
    /// The probability that the stated figure is wrong; it is added to every stated delta.
    pub failure: f64,
    /// The half-width of the confidence interval over the estimate that decides the number of samples.
    pub precision: f64,
    /// The most samples in each direction, whatever the precision.
    pub most_samples: usize,
    /// The same seed gives the same figures, on any number of threads.
    pub seed: u64,
}

impl Default for MonteCarlo {
    fn default() -> Self {
        Self { failure: 1e-8, precision: 0.02, most_samples: 1_000_000, seed: 0 }
    }
}

/// A delta found by sampling.
///
/// ```
/// use antinoise_accounting::{BallsInBins, MonteCarlo};
/// let found = BallsInBins::new(&[vec![1.0]], 1, 1.0)?.delta(1.0, &MonteCarlo::default())?;
/// assert!(found.samples > 0 && found.failure == 1e-8);
/// # Ok::<(), antinoise_accounting::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StatisticalDelta {
    /// The mean of the worse direction.
    pub estimate: f64,
    /// Below the truth but for probability `failure`.
    pub lower: f64,
    /// The figure to state: above the truth but for probability `failure`, which is added to it.
    pub upper: f64,
    /// The probability that the truth is not between the bounds.
    pub failure: f64,
    /// Samples in both directions.
    pub samples: usize,
}

impl MonteCarlo {
    pub(crate) fn check(&self) -> Result<()> {
        in_open_unit("failure", self.failure)?;
        positive("precision", self.precision)?;
        at_least("most_samples", self.most_samples, PILOT)?;
        Ok(())
    }

    /// As many samples as bring the half-width to `precision` of the mean, as far as a pilot can tell.
    pub(crate) fn samples(&self, pilot: &Tally, most: f64) -> usize {
        self.samples_for(pilot.mean(), pilot, most)
    }

    /// As many as bring it to `precision` of `mean`.
    pub(crate) fn samples_for(&self, mean: f64, pilot: &Tally, most: f64) -> usize {
        let ln_failures = (8.0 / self.failure).ln();
        let wanted = self.precision * mean;
        let for_variance = 8.0 * pilot.variance() * ln_failures / (wanted * wanted);
        let for_range = 5.0 * most * ln_failures / wanted;
        let samples = for_variance.max(for_range);
        if samples < self.most_samples as f64 { (samples as usize).max(PILOT) } else { self.most_samples }
    }
}

impl StatisticalDelta {
    /// From the two directions' (mean, half-width of its confidence interval, samples).
    pub(crate) fn worse_of(ends: [(f64, f64, usize); 2], failure: f64) -> Self {
        let fold = |f: fn(&(f64, f64, usize)) -> f64| largest(ends.iter().map(f));
        Self {
            estimate: fold(|end| end.0),
            lower: fold(|end| end.0 - end.1),
            upper: (fold(|end| end.0 + end.1) + failure).min(1.0),
            failure,
            samples: ends.iter().map(|end| end.2).sum(),
        }
    }
}
