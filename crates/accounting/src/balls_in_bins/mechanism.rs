//! The mechanism, and its delta and epsilon on samples from a seed.

use antinoise_input::{InvalidParameter, at_least, non_negative, positive};

use super::sample::Sampler;
use crate::monte_carlo::simulation;
use crate::{MonteCarlo, Result, StatisticalDelta};

/// A lower-triangular non-negative C under balls-in-bins sampling.
///
/// Every example is put in one of `bins` bins, uniformly and independently, once and for all; step t takes
/// the examples of bin `t mod bins`. So each example takes part every `bins` steps, from a step that nobody
/// knows. With m_i the sum of the columns i, i + bins, ... of C, the privacy loss is that between the
/// mixture of `N(m_i, noise_std^2)` over all bins and `N(0, noise_std^2)`, in both directions: for a
/// non-negative C, no contributions of norm 1, however chosen, are worse. Under add-or-remove and zero-out.
///
/// # Source
/// Choquette-Choo, Ganesh, Haque, Steinke and Thakurta, "Near exact privacy amplification for matrix
/// mechanisms" (2024), for the dominating pair. The importance sampling is our own.
///
/// ```
/// use antinoise_accounting::{BallsInBins, MonteCarlo};
/// // Independent noise: C is the identity; 8 steps, 4 bins, so two participations.
/// let columns = vec![vec![1.0]; 8];
/// let mechanism = BallsInBins::new(&columns, 4, 2.0)?;
/// let found = mechanism.delta(1.0, &MonteCarlo::default())?;
/// assert!(found.lower <= found.estimate && found.estimate <= found.upper);
/// # Ok::<(), antinoise_accounting::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct BallsInBins {
    pub(super) sampler: Sampler,
}

impl BallsInBins {
    /// The mechanism with the columns of C, each from its diagonal entry down, `bins` bins, and noise of
    /// standard deviation `noise_std` (over the clip norm). Entries past a column's end are 0.
    ///
    /// # Errors
    /// When there are no columns or more bins than columns, a column is longer than the steps that
    /// remain, or an entry is negative or not finite.
    ///
    /// ```
    /// use antinoise_accounting::BallsInBins;
    /// assert!(BallsInBins::new(&[vec![1.0, 0.5], vec![1.0]], 2, 1.0).is_ok());
    /// assert!(BallsInBins::new(&[vec![1.0, -0.5], vec![1.0]], 2, 1.0).is_err());
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn new<C: AsRef<[f64]>>(columns: &[C], bins: usize, noise_std: f64) -> Result<Self> {
        let steps = at_least("columns", columns.len(), 1)?;
        let noise_std = positive("noise_std", noise_std)?;
        antinoise_input::between("bins", bins, 1, steps, "columns")?;
        let mut means = vec![vec![0.0; steps]; bins];
        for (t, column) in columns.iter().enumerate() {
            let column = column.as_ref();
            if column.len() > steps - t {
                let must_be = format!("at most {} entries, the steps that remain", steps - t);
                return Err(InvalidParameter::new(format!("column {t}"), column.len(), must_be).into());
            }
            for (entry, sum) in column.iter().zip(&mut means[t % bins][t..]) {
                *sum += non_negative(&format!("column {t}"), *entry)? / noise_std;
            }
        }
        Ok(Self { sampler: Sampler::new(&means)? })
    }

    /// delta at `epsilon`, with a confidence interval.
    ///
    /// # Errors
    /// When `epsilon` is negative or not finite, or a setting is out of its range.
    ///
    /// ```
    /// use antinoise_accounting::{BallsInBins, Gdp, MonteCarlo};
    /// // One bin samples nothing: this is a Gaussian release of sensitivity |(1, 0.5)|.
    /// let found = BallsInBins::new(&[vec![1.0, 0.5], vec![0.0]], 1, 1.0)?.delta(2.0, &MonteCarlo::default())?;
    /// let exact = Gdp::new(1.25f64.sqrt())?.delta_to_nearest(2.0)?;
    /// assert!(found.lower <= exact && exact <= found.upper && found.upper < 1.05 * exact);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn delta(&self, epsilon: f64, settings: &MonteCarlo) -> Result<StatisticalDelta> {
        simulation::delta(&self.sampler, epsilon, settings)
    }

    /// An epsilon at `delta`: with probability `1 - failure` a true one, and `delta` contains the failure.
    ///
    /// A pilot suggests an epsilon; larger ones are then tested from the top of a fixed ladder down, each on
    /// fresh samples, until one is not shown to be enough. The truth is between two of them, so that only
    /// one test can go wrong: no correction for their number is due.
    ///
    /// # Errors
    /// When `delta` is not between 0 and 1, a setting is out of its range, or no epsilon is shown to do:
    /// `failure` must be well below `delta`, and `most_samples` may be too few.
    ///
    /// ```
    /// use antinoise_accounting::{BallsInBins, Gdp, MonteCarlo};
    /// let found = BallsInBins::new(&[vec![1.0]], 1, 1.0)?.epsilon_upper(1e-4, &MonteCarlo::default())?;
    /// let exact = Gdp::new(1.0)?.epsilon_upper(1e-4)?;
    /// assert!(found >= exact && found < 1.1 * exact);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn epsilon_upper(&self, delta: f64, settings: &MonteCarlo) -> Result<f64> {
        simulation::epsilon_upper(&self.sampler, delta, settings)
    }

    /// The same from the other side: with probability `1 - failure` the truth is not below it.
    ///
    /// # Errors
    /// When `delta` is not between 0 and 1, or a setting is out of its range.
    ///
    /// ```
    /// use antinoise_accounting::{BallsInBins, Gdp, MonteCarlo};
    /// let found = BallsInBins::new(&[vec![1.0]], 1, 1.0)?.epsilon_lower(1e-4, &MonteCarlo::default())?;
    /// let exact = Gdp::new(1.0)?.epsilon_upper(1e-4)?;
    /// assert!(found <= exact && found > 0.9 * exact);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn epsilon_lower(&self, delta: f64, settings: &MonteCarlo) -> Result<f64> {
        simulation::epsilon_lower(&self.sampler, delta, settings)
    }
}
