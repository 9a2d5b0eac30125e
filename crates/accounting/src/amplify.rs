//! Amplification by sampling for correlated noise.

use antinoise_input::{InvalidParameter, at_least, positive};

use crate::{Result, SampledGaussian};

/// A banded mechanism whose batches are block-cyclic Poisson samples.
///
/// The data are split once into `bands` groups, without looking at them; step t takes every example of group
/// `t mod bands` with probability `bands batch_size / examples`, independently. The noise is `C^-1 Z` for a
/// lower-triangular C with at most `bands` bands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BlockCyclicPoisson {
    /// Bands of C, and groups of examples.
    pub bands: usize,
    /// At least the largest l2 norm of a column of C.
    pub column_norm: f64,
    /// Standard deviation of an entry of Z, over the clip norm.
    pub noise_std: f64,
    /// Steps.
    pub steps: usize,
    /// Expected batch size.
    pub batch_size: f64,
    /// Examples.
    pub examples: usize,
}

/// The DP-SGD run, independent noise and Poisson sampling, that is no more private than `mechanism`:
/// `ceil(steps / bands)` steps at rate `bands batch_size / examples` with noise multiplier
/// `noise_std / column_norm`.
///
/// One example is in one group; its contributions are `bands` steps apart, so that in C they touch disjoint
/// rows, and each is one subsampled Gaussian release of sensitivity `column_norm`. With steps that are no
/// multiple of the bands, the first groups have one participation more than the last, and count for all.
/// One band is DP-SGD itself; `bands = examples / batch_size` samples everything, and is the unamplified
/// multi-epoch mechanism. Under add-or-remove and zero-out.
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
/// let mechanism = BlockCyclicPoisson {
///     bands: 8, column_norm: 1.0, noise_std: 1.5, steps: 2000, batch_size: 500.0, examples: 60_000,
/// };
/// let run = banded_to_sampled(&mechanism)?;
/// assert!(Composition::new([run])?.epsilon(1e-6)?.upper < 10.0);
/// # Ok::<(), antinoise_accounting::Error>(())
/// ```
pub fn banded_to_sampled(mechanism: &BlockCyclicPoisson) -> Result<SampledGaussian> {
    let bands = at_least("bands", mechanism.bands, 1)?;
    let steps = at_least("steps", mechanism.steps, 1)?;
    let examples = at_least("examples", mechanism.examples, 1)?;
    let batch_size = positive("batch_size", mechanism.batch_size)?;
    let column_norm = positive("column_norm", mechanism.column_norm)?;
    let noise_std = positive("noise_std", mechanism.noise_std)?;
    if bands > steps {
        return Err(InvalidParameter::new("bands", bands, format!("from 1 to steps = {steps}")).into());
    }
    let rate = bands as f64 * batch_size / examples as f64;
    if rate > 1.0 {
        let most = format!("at most examples / batch_size = {}", examples as f64 / batch_size);
        return Err(InvalidParameter::new("bands", bands, most).into());
    }
    // Rounded to less noise and more sampling.
    let noise_multiplier = (noise_std / column_norm).next_down();
    SampledGaussian::new(noise_multiplier, rate.next_up().min(1.0), steps.div_ceil(bands) as u64)
}
