//! Correlated noise under samplers whose privacy is computed by Monte Carlo.

use crate::b_min_sep::{MinSepPair, SamplingLaw};
use crate::balls_in_bins::BinsPair;
use crate::monte_carlo::simulation;
use crate::{Bounds, MonteCarlo, PrivacyCurve, Result, StatisticalDelta};

/// A lower-triangular C without negative entries, under a sampler whose privacy loss is simulated.
///
/// The dominating pair is the mixture of `N(m_x, noise_std^2)` over the patterns x of participation against
/// `N(0, noise_std^2)`, where m_x is the sum of the columns of C in pattern x. For C >= 0, contributions of
/// norm at most 1 have no larger privacy loss than this pair, even if they depend on earlier releases.
/// Figures cover both directions (removal and addition), and hold under zero-out and add-or-remove.
///
/// ```
/// use antinoise_accounting::{MonteCarlo, MonteCarloMechanism};
/// // Independent noise (C is the identity) over 8 steps; 4 bins, so two participations of each example.
/// let mechanism = MonteCarloMechanism::balls_in_bins(&vec![vec![1.0]; 8], 4, 2.0)?;
/// let found = mechanism.delta(1.0, &MonteCarlo::default())?;
/// assert!(found.lower <= found.estimate && found.estimate <= found.upper);
/// # Ok::<(), antinoise_accounting::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct MonteCarloMechanism {
    pair: Pair,
}

#[derive(Debug, Clone)]
enum Pair {
    BallsInBins(BinsPair),
    BMinSep(MinSepPair),
}

/// Evaluates an expression for either kind of pair.
macro_rules! with_pair {
    ($mechanism:expr, $pair:ident => $value:expr) => {
        match &$mechanism.pair {
            Pair::BallsInBins($pair) => $value,
            Pair::BMinSep($pair) => $value,
        }
    };
}

impl MonteCarloMechanism {
    /// The failure probability of each certified figure.
    ///
    /// The samples of a claim are derived from the claim itself. An adversary who varies the last digits
    /// until the samples happen to support a false claim needs about 10^20 attempts, each of which takes a
    /// second.
    pub const CLAIM_FAILURE: f64 = simulation::CLAIM_FAILURE;

    /// Balls-in-bins sampling: every example is assigned to one of `bins` bins, uniformly, independently and
    /// for the whole run; step t takes the examples of bin `t mod bins`. The assignment is secret.
    ///
    /// `columns` are the columns of C, each from its diagonal entry down; entries past a column's end are 0.
    /// `noise_std` is in clip norms.
    ///
    /// # Errors
    /// When there are no columns or more bins than columns, a column is longer than the steps that
    /// remain, or an entry is negative or not finite.
    ///
    /// # Source
    /// Choquette-Choo, Ganesh, Haque, Steinke and Thakurta, "Near exact privacy amplification for matrix
    /// mechanisms" (2024), for the dominating pair. The importance sampling is our own.
    ///
    /// ```
    /// use antinoise_accounting::MonteCarloMechanism;
    /// assert!(MonteCarloMechanism::balls_in_bins(&[vec![1.0, 0.5], vec![1.0]], 2, 1.0).is_ok());
    /// assert!(MonteCarloMechanism::balls_in_bins(&[vec![1.0, -0.5], vec![1.0]], 2, 1.0).is_err());
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn balls_in_bins<C: AsRef<[f64]>>(columns: &[C], bins: usize, noise_std: f64) -> Result<Self> {
        Ok(Self { pair: Pair::BallsInBins(BinsPair::new(columns, bins, noise_std)?) })
    }

    /// b-min-sep sampling, for at most b = `min_sep` bands: after a participation an example sits out
    /// `min_sep - 1` steps; otherwise it joins a step independently with probability
    /// `p = B / (N - (min_sep - 1) B)`. At the start it sits out j steps with probability B/N for each j from
    /// 1 to `min_sep - 1`, and none otherwise, so that every step takes B = `batch_size` of N = `examples`
    /// examples on average.
    ///
    /// With `min_sep` 1 this is Poisson sampling; with `min_sep` N/B, p is 1, and it is balls-in-bins
    /// sampling. `columns` and `noise_std` are as for [`MonteCarloMechanism::balls_in_bins`].
    ///
    /// # Errors
    /// When there are no columns, `min_sep` batches exceed the number of examples, a column has more than
    /// `min_sep` entries or is longer than the steps that remain, or an entry is negative or not finite.
    ///
    /// # Source
    /// Dong and Ganesh, "Privacy amplification for BandMF via b-min-sep subsampling" (arXiv 2602.09338). The
    /// proof for contributions that depend on earlier releases is our own (`src/b_min_sep/mod.rs`), as is the
    /// importance sampling.
    ///
    /// ```
    /// use antinoise_accounting::MonteCarloMechanism;
    /// let columns = [vec![1.0, 0.5], vec![1.0]];
    /// assert!(MonteCarloMechanism::b_min_sep(&columns, 2, 1.0, 10, 1.0).is_ok());
    /// assert!(MonteCarloMechanism::b_min_sep(&columns, 1, 1.0, 10, 1.0).is_err()); // two bands
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn b_min_sep<C: AsRef<[f64]>>(
        columns: &[C],
        min_sep: usize,
        batch_size: f64,
        examples: usize,
        noise_std: f64,
    ) -> Result<Self> {
        let law = SamplingLaw::new(min_sep, batch_size, examples)?;
        Ok(Self { pair: Pair::BMinSep(MinSepPair::new(columns, law, noise_std)?) })
    }

    /// delta at `epsilon`, with a confidence interval.
    ///
    /// # Errors
    /// When `epsilon` is negative or not finite, or a setting is out of its range.
    ///
    /// ```
    /// use antinoise_accounting::{Composition, Gdp, MonteCarlo, MonteCarloMechanism, PoissonSampledGaussian};
    /// // One bin does not sample: this is a Gaussian release of sensitivity |(1, 0.5)|.
    /// let one_bin = MonteCarloMechanism::balls_in_bins(&[vec![1.0, 0.5], vec![0.0]], 1, 1.0)?;
    /// let found = one_bin.delta(2.0, &MonteCarlo::default())?;
    /// let exact = Gdp::new(1.25f64.sqrt())?.delta_to_nearest(2.0)?;
    /// assert!(found.lower <= exact && exact <= found.upper && found.upper < 1.05 * exact);
    /// // One band and no waiting: Poisson sampling of independent noise.
    /// let poisson = MonteCarloMechanism::b_min_sep(&vec![vec![1.0]; 4], 1, 1.0, 10, 1.0)?;
    /// let found = poisson.delta(1.0, &MonteCarlo::default())?;
    /// let exact = Composition::new([PoissonSampledGaussian::new(1.0, 0.1, 4)?])?.delta(1.0)?;
    /// assert!(found.lower <= exact.upper && exact.lower <= found.upper);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn delta(&self, epsilon: f64, settings: &MonteCarlo) -> Result<StatisticalDelta> {
        Ok(self.curve(epsilon, settings, &|_, _| ())?.central())
    }

    /// delta at `epsilon` and at epsilons around it, each with a confidence interval; the intervals of the
    /// curve hold together with probability `1 - failure_probability`. `progress` is called with the number
    /// of samples drawn so far, and of all.
    ///
    /// # Errors
    /// As [`MonteCarloMechanism::delta`].
    ///
    /// ```
    /// use antinoise_accounting::{Gdp, MonteCarlo, MonteCarloMechanism};
    /// let one_bin = MonteCarloMechanism::balls_in_bins(&[vec![1.0]], 1, 1.0)?;
    /// let curve = one_bin.curve(2.0, &MonteCarlo::default(), &|_, _| ())?;
    /// let (found, exact) = (curve.delta(2.5), Gdp::new(1.0)?.delta_to_nearest(2.5)?);
    /// assert!(found.lower <= exact && exact <= found.upper);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn curve(
        &self,
        epsilon: f64,
        settings: &MonteCarlo,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<PrivacyCurve> {
        with_pair!(self, pair => simulation::curve(pair, epsilon, settings, progress))
    }

    /// Bounds on epsilon at `delta`, each of which holds with probability `1 - failure_probability`; `delta`
    /// includes the failure of the upper one.
    ///
    /// One simulation gives the curve around `guess`, on which both bounds lie; without a guess, pilots
    /// suggest an epsilon. A bad guess makes the bounds wide, never wrong. `progress` is called with the
    /// number of samples drawn so far, and of all.
    ///
    /// # Errors
    /// When `delta` is not between 0 and 1, `guess` is not positive, a setting is out of its range, or the
    /// curve does not resolve `delta`: `failure_probability` must be well below `delta`, and `max_samples`
    /// may be too few.
    ///
    /// ```
    /// use antinoise_accounting::{Gdp, MonteCarlo, MonteCarloMechanism};
    /// let (settings, exact) = (MonteCarlo::default(), Gdp::new(1.0)?.epsilon_upper(1e-5)?);
    /// let one_bin = MonteCarloMechanism::balls_in_bins(&[vec![1.0]], 1, 1.0)?;
    /// let found = one_bin.epsilon(1e-5, &settings, None, &|_, _| ())?;
    /// assert!(found.lower <= exact && exact <= found.upper && found.upper < 1.1 * found.lower);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn epsilon(
        &self,
        delta: f64,
        settings: &MonteCarlo,
        guess: Option<f64>,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Bounds> {
        with_pair!(self, pair => simulation::epsilon(pair, delta, settings, guess, progress))
    }

    /// delta at `epsilon`, from samples that are derived from the claim itself: the central figure of
    /// [`MonteCarloMechanism::certified_curve`].
    ///
    /// # Errors
    /// When `epsilon` is negative or not finite.
    ///
    /// ```
    /// use antinoise_accounting::{Gdp, MonteCarloMechanism};
    /// let mechanism = MonteCarloMechanism::balls_in_bins(&[vec![1.0, 0.5], vec![1.0]], 2, 2.0)?;
    /// let found = mechanism.certified_delta(1.0)?;
    /// assert_eq!(found, mechanism.certified_delta(1.0)?);
    /// // The secret assignment to bins amplifies.
    /// assert!(found.upper < Gdp::new(0.5 * 1.25f64.sqrt())?.delta_to_nearest(1.0)?);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn certified_delta(&self, epsilon: f64) -> Result<StatisticalDelta> {
        Ok(self.certified_curve(epsilon, &|_, _| ())?.central())
    }

    /// delta at `epsilon` and at epsilons around it, from samples that are derived from the claim itself: the
    /// ChaCha20 key is the SHA-256 digest of C, noise, sampling and epsilon. So the figures are reproducible,
    /// and nobody can choose the samples. `progress` is called with the number of samples drawn so far, and
    /// of all.
    ///
    /// Upper bounds include [`MonteCarloMechanism::CLAIM_FAILURE`], the truncated tails of normals, and
    /// rounding errors. The central figure holds but for that probability, and so do all figures of the curve
    /// together.
    ///
    /// # Errors
    /// When `epsilon` is negative or not finite.
    ///
    /// ```
    /// use antinoise_accounting::MonteCarloMechanism;
    /// let mechanism = MonteCarloMechanism::balls_in_bins(&[vec![1.0, 0.5], vec![1.0]], 2, 2.0)?;
    /// let curve = mechanism.certified_curve(1.0, &|_, _| ())?;
    /// let stricter = curve.epsilon(0.5 * curve.central().upper);
    /// assert!(1.0 < stricter.lower && stricter.upper < 1.1 * stricter.lower);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn certified_curve(
        &self,
        epsilon: f64,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<PrivacyCurve> {
        with_pair!(self, pair => simulation::certified(pair, epsilon, progress))
    }

    /// A factor on the noise for which [`MonteCarloMechanism::certified_delta`] at `epsilon` is expected to
    /// be at most `delta`. It is estimated on independent samples, with a margin, and proves nothing. It is
    /// at most the factor that the mechanism without amplification needs.
    ///
    /// # Errors
    /// When epsilon or delta is out of range, or the target is met with almost no noise.
    ///
    /// ```
    /// use antinoise_accounting::MonteCarloMechanism;
    /// let columns = vec![vec![1.0]; 8];
    /// let scale = MonteCarloMechanism::b_min_sep(&columns, 2, 1.0, 4, 1.0)?.noise_scale_for(1.0, 1e-3)?;
    /// let mechanism = MonteCarloMechanism::b_min_sep(&columns, 2, 1.0, 4, scale)?;
    /// assert!(mechanism.certified_delta(1.0)?.upper <= 1e-3);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn noise_scale_for(&self, epsilon: f64, delta: f64) -> Result<f64> {
        with_pair!(self, pair => simulation::noise_scale_for(pair, epsilon, delta))
    }
}
