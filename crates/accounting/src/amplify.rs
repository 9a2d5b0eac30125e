//! Sampled runs as Poisson-sampled steps: banded correlated noise under block-cyclic Poisson sampling, and
//! independent noise on batches of a fixed size.

use antinoise_input::{InvalidParameter, at_least, between, positive};

use crate::{PoissonSampledGaussian, Result};

/// Block-cyclic Poisson sampling, which amplifies the privacy of a mechanism with a banded strategy C.
///
/// The data are split once into `bands` groups, independently of their content. Step t takes each example of
/// group `t mod bands`, independently, with probability `bands batch_size / examples`. The noise is `C^-1 Z`
/// for a lower-triangular C with at most `bands` bands.
///
/// ```
/// use antinoise_accounting::BlockCyclicPoisson;
/// let sampling = BlockCyclicPoisson { bands: 8, steps: 2000, batch_size: 500.0, examples: 60_000 };
/// let few_bands = sampling.noise_multiplier_upper(1.0, 1e-6)?;
/// let many_bands = BlockCyclicPoisson { bands: 120, ..sampling }.noise_multiplier_upper(1.0, 1e-6)?;
/// assert!(few_bands < many_bands); // what more bands save in correlation, less amplification takes back
/// # Ok::<(), antinoise_accounting::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BlockCyclicPoisson {
    /// Number of bands of C, which is also the number of groups of examples.
    pub bands: usize,
    /// Number of steps.
    pub steps: usize,
    /// Expected batch size.
    pub batch_size: f64,
    /// Number of examples.
    pub examples: usize,
}

impl BlockCyclicPoisson {
    /// The maximum number of steps of a group, and the probability that an example takes part in one of them,
    /// rounded up.
    ///
    /// # Errors
    /// As [`block_cyclic_poisson_reduction`].
    fn steps_and_rate_upper(&self) -> Result<(u64, f64)> {
        let bands = at_least("bands", self.bands, 1)?;
        let steps = at_least("steps", self.steps, 1)?;
        let examples = at_least("examples", self.examples, 1)?;
        let batch_size = positive("batch_size", self.batch_size)?;
        if bands > steps {
            return Err(InvalidParameter::new("bands", bands, format!("from 1 to steps = {steps}")).into());
        }
        let rate = quotient_up(product_up(whole_up(bands), batch_size), whole_down(examples));
        if bands as f64 * batch_size / examples as f64 > 1.0 {
            let most = format!(
                "at most examples / batch_size = {}, so that a group has no fewer examples than a batch",
                examples as f64 / batch_size
            );
            return Err(InvalidParameter::new("bands", bands, most).into());
        }
        Ok((steps.div_ceil(bands) as u64, rate.min(1.0)))
    }

    /// The smallest noise multiplier for which the run is `(epsilon, delta)`-private: the standard deviation
    /// of an entry of Z divided by the largest column norm of C and by the clip norm.
    ///
    /// # Errors
    /// As [`block_cyclic_poisson_reduction`] and [`PoissonSampledGaussian::noise_multiplier_upper`].
    pub fn noise_multiplier_upper(&self, epsilon: f64, delta: f64) -> Result<f64> {
        let (steps, rate) = self.steps_and_rate_upper()?;
        let run = PoissonSampledGaussian::new(1.0, rate, steps)?;
        // The reduction rounds the noise multiplier down again.
        Ok(run.noise_multiplier_upper(epsilon, delta)?.next_up())
    }
}

/// For numbers below this bound, the rounding error of a product or quotient may underflow, so that a fused
/// multiply-add does not show it.
const MIN_EXACT: f64 = 1e-280;

/// x y rounded up; a fused multiply-add shows in which direction the product was rounded.
fn product_up(x: f64, y: f64) -> f64 {
    let product = x * y;
    if product < MIN_EXACT || x.mul_add(y, -product) > 0.0 { product.next_up() } else { product }
}

/// x / y rounded up.
fn quotient_up(x: f64, y: f64) -> f64 {
    let quotient = x / y;
    if x.min(quotient) < MIN_EXACT || quotient.mul_add(y, -x) < 0.0 { quotient.next_up() } else { quotient }
}

/// `n` rounded up to a double.
fn whole_up(n: usize) -> f64 {
    let near = n as f64;
    if (near as u128) < n as u128 { near.next_up() } else { near }
}

/// `n` rounded down to a double.
fn whole_down(n: usize) -> f64 {
    let near = n as f64;
    if near as u128 > n as u128 { near.next_down() } else { near }
}

/// Returns a DP-SGD run (independent noise, Poisson sampling) that is no more private than the banded
/// mechanism. It has `ceil(steps / bands)` steps at sampling rate `bands batch_size / examples` and the same
/// `noise_multiplier`, the standard deviation of an entry of Z divided by the largest column norm of C.
///
/// An example is in one group, so that its contributions are `bands` steps apart and affect disjoint rows of
/// C. Each is a subsampled Gaussian release whose sensitivity is a column norm. The same holds of an example
/// that is replaced by another ([`PoissonSampledGaussian::replaced`]), which is in the same group. If the
/// number of steps is not a multiple of the bands, the larger number of participations is counted for all
/// groups. With one band, this is DP-SGD; with `bands = examples / batch_size`, it is the unamplified
/// multi-epoch mechanism. The reduction holds under zero-out and replace-one. It holds under add-or-remove if
/// neither an example's group nor the rate depends on the other examples, which is not the case if a shuffled
/// data set is cut into several groups.
///
/// # Errors
/// When a parameter is out of its range; when there are more bands than steps; when the rate would exceed 1,
/// since a group has fewer examples than a batch.
///
/// # Source
/// Choquette-Choo et al., "(Amplified) banded matrix factorization" (2023); theorem 3.21 of
/// Pillutla et al., "Correlated noise mechanisms for differentially private learning" (2025).
///
/// ```
/// use antinoise_accounting::{BlockCyclicPoisson, Composition, block_cyclic_poisson_reduction};
/// let sampling = BlockCyclicPoisson { bands: 8, steps: 2000, batch_size: 500.0, examples: 60_000 };
/// let run = block_cyclic_poisson_reduction(&sampling, 1.5)?;
/// assert!(Composition::new([run])?.epsilon(1e-6)?.upper < 10.0);
/// # Ok::<(), antinoise_accounting::Error>(())
/// ```
pub fn block_cyclic_poisson_reduction(
    sampling: &BlockCyclicPoisson,
    noise_multiplier: f64,
) -> Result<PoissonSampledGaussian> {
    let (steps, rate) = sampling.steps_and_rate_upper()?;
    let noise_multiplier = positive("noise_multiplier", noise_multiplier)?;
    // The noise multiplier is rounded down, and the rate up, so that the run is not more private.
    PoissonSampledGaussian::new(noise_multiplier.next_down(), rate, steps)
}

/// Batches of a fixed size: every step draws `batch_size` of `examples` examples, uniformly, without
/// replacement and independently of other steps, and adds independent Gaussian noise to the sum of their
/// contributions.
///
/// A loader that shuffles once in an epoch draws otherwise.
///
/// ```
/// use antinoise_accounting::{Composition, FixedSizeBatches, PoissonSampledGaussian, fixed_size_reduction};
/// let sampling = FixedSizeBatches { batch_size: 500, examples: 50_000, steps: 1000 };
/// let fixed = Composition::new([fixed_size_reduction(&sampling, 1.0)?])?.epsilon(1e-6)?;
/// let poisson = Composition::new([PoissonSampledGaussian::new(1.0, 0.01, 1000)?])?.epsilon(1e-6)?;
/// assert!(fixed.lower > 2.0 * poisson.upper);
/// # Ok::<(), antinoise_accounting::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FixedSizeBatches {
    /// Number of examples of a batch.
    pub batch_size: usize,
    /// Number of examples.
    pub examples: usize,
    /// Number of steps.
    pub steps: usize,
}

impl FixedSizeBatches {
    /// The sampling rate, rounded up.
    fn rate_upper(&self) -> f64 {
        quotient_up(whole_up(self.batch_size), whole_down(self.examples)).min(1.0)
    }

    /// Steps at the sampling rate, rounded up, with noise of standard deviation `noise_std` over the norm of
    /// one contribution.
    fn steps(&self, noise_std: f64) -> Result<PoissonSampledGaussian> {
        at_least("examples", self.examples, 2)?;
        at_least("steps", self.steps, 1)?;
        between("batch_size", self.batch_size, 1, self.examples - 1, "examples - 1")?;
        PoissonSampledGaussian::new(noise_std, self.rate_upper(), self.steps as u64)
    }

    /// The steps where the example that changes is zeroed, whose bounds are those of the worst neighbours for
    /// every loss.
    ///
    /// # Errors
    /// As [`fixed_size_reduction`].
    pub(crate) fn zeroed(&self, noise_multiplier: f64) -> Result<PoissonSampledGaussian> {
        Ok(self.steps(positive("noise_multiplier", noise_multiplier)?)?.zeroed())
    }
}

/// Returns Poisson-sampled steps that are no more private than as many steps with `noise_multiplier` on
/// batches of a fixed size: at the sampling rate `batch_size / examples`, with half the noise, each in the
/// direction that is worse for its loss.
///
/// `noise_multiplier` is the standard deviation of the noise over the maximum norm of one contribution. A
/// changed example moves the sum by up to two norms, since its place in a batch may have been that of an
/// example whose contribution is the opposite. Bounds are those under replace-one; under zero-out they are
/// tighter ([`Sampling`](crate::Sampling)). Under add-or-remove the number of examples differs, which this
/// sampling does not hide.
///
/// The proof is in docs/accounting.md.
///
/// # Errors
/// When a parameter is out of its range, or a batch has all examples.
///
/// ```
/// use antinoise_accounting::{FixedSizeBatches, fixed_size_reduction};
/// let sampling = FixedSizeBatches { batch_size: 1, examples: 4, steps: 10 };
/// let run = fixed_size_reduction(&sampling, 3.0)?;
/// assert_eq!((run.noise_multiplier(), run.sampling_rate(), run.steps()), (1.5, 0.25, 10));
/// # Ok::<(), antinoise_accounting::Error>(())
/// ```
pub fn fixed_size_reduction(
    sampling: &FixedSizeBatches,
    noise_multiplier: f64,
) -> Result<PoissonSampledGaussian> {
    let half = 0.5 * positive("noise_multiplier", noise_multiplier)?;
    Ok(sampling.steps(half)?.in_any_direction())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the whole number m < 2^53 and the exponent e with x = m 2^e.
    fn parts(x: f64) -> (u128, i32) {
        let bits = x.to_bits();
        ((u128::from(bits) & ((1 << 52) - 1)) + (1 << 52), ((bits >> 52) as i32) - 1075)
    }

    /// Checks rate * examples >= bands * batch_size in exact whole numbers.
    #[test]
    fn rates_are_never_below_the_true_ones() {
        let mut state = 1u64;
        let mut below = |most: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % most + 1
        };
        let (mut exact, mut tested) = (0, 0);
        for _ in 0..20_000 {
            let (bands, examples) = (below(200) as usize, below(1 << 24) as usize);
            let batch_size = examples as f64 / bands as f64 * below(1 << 30) as f64 / f64::from(1 << 30);
            let sampling = BlockCyclicPoisson { bands, steps: 1000, batch_size, examples };
            let Ok((_, rate)) = sampling.steps_and_rate_upper() else { continue };
            tested += 1;
            let ((size, exponent), (of_rate, its)) = (parts(batch_size), parts(rate));
            let wanted = size * bands as u128;
            // Both are whole numbers times a power of two. A rate is at most the batch size, so that its
            // power is the smaller one.
            let shift = (exponent - its) as u32;
            let got = of_rate * examples as u128;
            assert!(got >= wanted << shift, "{sampling:?}: {rate}");
            let less = (of_rate - 3) * examples as u128;
            assert!(less <= wanted << shift, "{sampling:?}: {rate} is more than three units too large");
            exact += usize::from(got == wanted << shift);
        }
        assert!(tested > 19_000, "{tested} of 20,000 have a rate");
        assert!(exact > 10, "rates that are doubles are kept: {exact}");
    }
}
