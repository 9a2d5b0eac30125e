//! The mechanism, and its delta and epsilon on samples from a seed.

use super::chances::Chances;
use super::pair::Pair;
use crate::monte_carlo::simulation;
use crate::{MonteCarlo, Result, StatisticalDelta};

/// A lower-triangular non-negative C with at most b bands under b-min-sep sampling.
///
/// An example that took part sits out the next `min_sep - 1` steps; else it joins a step with probability
/// `p = B / (N - (min_sep - 1) B)`, on its own. At first it sits out exactly j steps for each j from 1 to `min_sep - 1` with
/// probability B/N, else none: so every step takes B of N examples on average. With m_x the sum of C's columns in pattern x, the
/// privacy loss is that between the mixture of `N(m_x, noise_std^2)` over the patterns and `N(0, noise_std^2)`, in both directions: for
/// a non-negative C no contributions of norm 1, however chosen, are worse. Under add-or-remove and zero-out.
///
/// `min_sep` 1 is Poisson sampling; `min_sep` N/B makes p = 1, which is balls in bins.
///
/// # Source
/// Dong and Ganesh, "Privacy amplification for BandMF via b-min-sep subsampling" (arXiv 2602.09338). The proof, for
/// contributions that follow from earlier releases, is on the first page of `src/b_min_sep`, and is our own, as is the importance sampling.
///
/// ```
/// use antinoise_accounting::{BMinSep, MonteCarlo};
/// // Two bands; 8 steps, each of 5 of 40 examples.
/// let columns: Vec<Vec<f64>> = (0..8).map(|t| vec![1.0, 0.5][..2.min(8 - t)].to_vec()).collect();
/// let found = BMinSep::new(&columns, 2, 5.0, 40, 2.0)?.delta(1.0, &MonteCarlo::default())?;
/// assert!(found.lower <= found.estimate && found.estimate <= found.upper);
/// # Ok::<(), antinoise_accounting::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct BMinSep {
    pub(super) pair: Pair,
}

impl BMinSep {
    /// The mechanism with the columns of C, each from its diagonal entry down, `batch_size` of `examples` examples in a step on average,
    /// and noise of standard deviation `noise_std` (over the clip norm). Entries past a column's end are 0.
    ///
    /// # Errors
    /// When there are no columns, `min_sep` batches have more examples than there are, a column has more than `min_sep` entries or is longer
    /// than the steps that remain, or an entry is negative or not finite.
    ///
    /// ```
    /// use antinoise_accounting::BMinSep;
    /// assert!(BMinSep::new(&[vec![1.0, 0.5], vec![1.0]], 2, 1.0, 10, 1.0).is_ok());
    /// assert!(BMinSep::new(&[vec![1.0, 0.5], vec![1.0]], 1, 1.0, 10, 1.0).is_err());
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn new<C: AsRef<[f64]>>(
        columns: &[C],
        min_sep: usize,
        batch_size: f64,
        examples: usize,
        noise_std: f64,
    ) -> Result<Self> {
        let chances = Chances::new(min_sep, batch_size, examples)?;
        Ok(Self { pair: Pair::new(columns, chances, noise_std)? })
    }

    /// delta at `epsilon`, with a confidence interval.
    ///
    /// # Errors
    /// When `epsilon` is negative or not finite, or a setting is out of its range.
    ///
    /// ```
    /// use antinoise_accounting::{BMinSep, Composition, MonteCarlo, SampledGaussian};
    /// // Steps that are not correlated and nobody sits out are Poisson steps.
    /// let found = BMinSep::new(&vec![vec![1.0]; 4], 1, 1.0, 10, 1.0)?.delta(1.0, &MonteCarlo::default())?;
    /// let exact = Composition::new([SampledGaussian::new(1.0, 0.1, 4)?])?.delta(1.0)?;
    /// assert!(found.lower <= exact.upper && exact.lower <= found.upper);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn delta(&self, epsilon: f64, settings: &MonteCarlo) -> Result<StatisticalDelta> {
        simulation::delta(&self.pair, epsilon, settings)
    }

    /// An epsilon at `delta`: with probability `1 - failure` a true one, and `delta` contains the failure. It is found as
    /// [`BallsInBins::epsilon_upper`](crate::BallsInBins::epsilon_upper) finds it.
    ///
    /// # Errors
    /// When `delta` is not between 0 and 1, a setting is out of its range, or no epsilon is shown to do:
    /// `failure` must be well below `delta`, and `most_samples` may be too few.
    ///
    /// ```
    /// use antinoise_accounting::{BMinSep, Gdp, MonteCarlo};
    /// let one = BMinSep::new(&[vec![1.0]], 1, 1.0, 1, 1.0)?;
    /// let (found, exact) = (one.epsilon_upper(1e-4, &MonteCarlo::default())?, Gdp::new(1.0)?.epsilon_upper(1e-4)?);
    /// assert!(found >= exact && found < 1.1 * exact);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn epsilon_upper(&self, delta: f64, settings: &MonteCarlo) -> Result<f64> {
        simulation::epsilon_upper(&self.pair, delta, settings)
    }

    /// The same from the other side: with probability `1 - failure` the truth is not below it.
    ///
    /// # Errors
    /// When `delta` is not between 0 and 1, or a setting is out of its range.
    ///
    /// ```
    /// use antinoise_accounting::{BMinSep, Gdp, MonteCarlo};
    /// let one = BMinSep::new(&[vec![1.0]], 1, 1.0, 1, 1.0)?;
    /// let (found, exact) = (one.epsilon_lower(1e-4, &MonteCarlo::default())?, Gdp::new(1.0)?.epsilon_upper(1e-4)?);
    /// assert!(found <= exact && found > 0.9 * exact);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn epsilon_lower(&self, delta: f64, settings: &MonteCarlo) -> Result<f64> {
        simulation::epsilon_lower(&self.pair, delta, settings)
    }
}
