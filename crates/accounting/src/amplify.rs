//! Amplification by sampling for correlated noise.

use antinoise_input::{InvalidParameter, at_least, positive};

use crate::{Result, SampledGaussian, calibrate};

/// How the batches of a banded mechanism are drawn so that sampling amplifies its privacy.
///
/// The data are split once into `bands` groups, without looking at them; step t takes every example of group
/// `t mod bands` with probability `bands batch_size / examples`, independently. The noise is `C^-1 Z` for a
/// lower-triangular C with at most `bands` bands.
///
/// ```
/// use antinoise_accounting::BlockCyclicPoisson;
/// let sampling = BlockCyclicPoisson { bands: 8, steps: 2000, batch_size: 500.0, examples: 60_000 };
/// let few_bands = sampling.noise_multiplier(1.0, 1e-6)?;
/// let many_bands = BlockCyclicPoisson { bands: 120, ..sampling }.noise_multiplier(1.0, 1e-6)?;
/// assert!(few_bands < many_bands); // what more bands save in correlation, less amplification takes back
/// # Ok::<(), antinoise_accounting::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BlockCyclicPoisson {
    /// Bands of C, and groups of examples.
    pub bands: usize,
    /// Steps.
    pub steps: usize,
    /// Expected batch size.
    pub batch_size: f64,
    /// Examples.
    pub examples: usize,
}

impl BlockCyclicPoisson {
    /// Steps in which one example's group comes up, at most, and the probability that it then takes part,
    /// rounded up.
    ///
    /// # Errors
    /// As [`banded_to_sampled`].
    fn turns_and_rate(&self) -> Result<(u64, f64)> {
        let bands = at_least("bands", self.bands, 1)?;
        let steps = at_least("steps", self.steps, 1)?;
        let examples = at_least("examples", self.examples, 1)?;
        let batch_size = positive("batch_size", self.batch_size)?;
        if bands > steps {
            return Err(InvalidParameter::new("bands", bands, format!("from 1 to steps = {steps}")).into());
        }
        let rate = bands as f64 * batch_size / examples as f64;
        if rate > 1.0 {
            let most = format!(
                "at most examples / batch_size = {}: a group would have fewer examples than a batch",
                examples as f64 / batch_size
            );
            return Err(InvalidParameter::new("bands", bands, most).into());
        }
        Ok((steps.div_ceil(bands) as u64, rate.next_up().min(1.0)))
    }

    /// The least noise multiplier, standard deviation of an entry of Z over the largest column norm of C (and
    /// over the clip norm), with which the run is `(epsilon, delta)`-private.
    ///
    /// # Errors
    /// As [`banded_to_sampled`] and [`calibrate::noise_multiplier`].
    pub fn noise_multiplier(&self, epsilon: f64, delta: f64) -> Result<f64> {
        let (turns, rate) = self.turns_and_rate()?;
        // Above what the reduction takes off again.
        Ok(calibrate::noise_multiplier(rate, turns, epsilon, delta)?.next_up())
    }
}

/// The DP-SGD run, independent noise and Poisson sampling, that is no more private than the banded mechanism:
/// `ceil(steps / bands)` steps at rate `bands batch_size / examples` with `noise_multiplier`, the standard
/// deviation of an entry of Z over the largest l2 norm of a column of C.
///
/// One example is in one group; its contributions are `bands` steps apart, so that in C they touch disjoint
/// rows, and each is one subsampled Gaussian release whose sensitivity is the column's norm. With steps that are
/// no multiple of the bands, the first groups have one participation more than the last, and count for all.
/// One band is DP-SGD itself; `bands = examples / batch_size` samples everything, and is the unamplified
/// multi-epoch mechanism. Under zero-out; under add-or-remove as well where neither an example's group nor the rate
/// depends on the other examples, which a shuffled and cut data set does not give for more than one band.
///
/// # Errors
/// When a parameter is out of its range; when there are more bands than steps; when the rate would exceed 1:
/// a group then has fewer examples than a batch.
///
/// # Source
/// Choquette-Choo et al., "(Amplified) banded matrix factorization" (2023); theorem 3.21 of
/// Pillutla et al., "Correlated noise mechanisms for differentially private learning" (2025).
///
/// ```
/// use antinoise_accounting::{BlockCyclicPoisson, Composition, banded_to_sampled};
/// let sampling = BlockCyclicPoisson { bands: 8, steps: 2000, batch_size: 500.0, examples: 60_000 };
/// let run = banded_to_sampled(&sampling, 1.5)?;
/// assert!(Composition::new([run])?.epsilon(1e-6)?.upper < 10.0);
/// # Ok::<(), antinoise_accounting::Error>(())
/// ```
pub fn banded_to_sampled(sampling: &BlockCyclicPoisson, noise_multiplier: f64) -> Result<SampledGaussian> {
    let (turns, rate) = sampling.turns_and_rate()?;
    let noise_multiplier = positive("noise_multiplier", noise_multiplier)?;
    // Rounded to less noise, as the rate was to more sampling.
    SampledGaussian::new(noise_multiplier.next_down(), rate, turns)
}
