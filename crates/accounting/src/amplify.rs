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
/// let few_bands = sampling.noise_multiplier_upper(1.0, 1e-6)?;
/// let many_bands = BlockCyclicPoisson { bands: 120, ..sampling }.noise_multiplier_upper(1.0, 1e-6)?;
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
    /// As [`banded_to_sampled_upper`].
    fn turns_and_rate_upper(&self) -> Result<(u64, f64)> {
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
                "at most examples / batch_size = {}: a group would have fewer examples than a batch",
                examples as f64 / batch_size
            );
            return Err(InvalidParameter::new("bands", bands, most).into());
        }
        Ok((steps.div_ceil(bands) as u64, rate.min(1.0)))
    }

    /// The least noise multiplier, standard deviation of an entry of Z over the largest column norm of C (and
    /// over the clip norm), with which the run is `(epsilon, delta)`-private.
    ///
    /// # Errors
    /// As [`banded_to_sampled_upper`] and [`calibrate::noise_multiplier_upper`].
    pub fn noise_multiplier_upper(&self, epsilon: f64, delta: f64) -> Result<f64> {
        let (turns, rate) = self.turns_and_rate_upper()?;
        // Above what the reduction takes off again.
        Ok(calibrate::noise_multiplier_upper(rate, turns, epsilon, delta)?.next_up())
    }
}

/// Products and quotients below this may have lost digits that the fused difference would show.
const LEAST_EXACT: f64 = 1e-280;

/// x y, not below it: the fused difference says which way the product was rounded.
fn product_up(x: f64, y: f64) -> f64 {
    let product = x * y;
    if product < LEAST_EXACT || x.mul_add(y, -product) > 0.0 { product.next_up() } else { product }
}

/// x / y, not below it.
fn quotient_up(x: f64, y: f64) -> f64 {
    let quotient = x / y;
    if x.min(quotient) < LEAST_EXACT || quotient.mul_add(y, -x) < 0.0 { quotient.next_up() } else { quotient }
}

/// A whole number as a double, not below it.
fn whole_up(n: usize) -> f64 {
    let near = n as f64;
    if (near as u128) < n as u128 { near.next_up() } else { near }
}

/// A whole number as a double, not above it.
fn whole_down(n: usize) -> f64 {
    let near = n as f64;
    if near as u128 > n as u128 { near.next_down() } else { near }
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
/// use antinoise_accounting::{BlockCyclicPoisson, Composition, banded_to_sampled_upper};
/// let sampling = BlockCyclicPoisson { bands: 8, steps: 2000, batch_size: 500.0, examples: 60_000 };
/// let run = banded_to_sampled_upper(&sampling, 1.5)?;
/// assert!(Composition::new([run])?.epsilon(1e-6)?.upper < 10.0);
/// # Ok::<(), antinoise_accounting::Error>(())
/// ```
pub fn banded_to_sampled_upper(
    sampling: &BlockCyclicPoisson,
    noise_multiplier: f64,
) -> Result<SampledGaussian> {
    let (turns, rate) = sampling.turns_and_rate_upper()?;
    let noise_multiplier = positive("noise_multiplier", noise_multiplier)?;
    // Rounded to less noise, as the rate was to more sampling.
    SampledGaussian::new(noise_multiplier.next_down(), rate, turns)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// m 2^e with whole m below 2^53.
    fn parts(x: f64) -> (u128, i32) {
        let bits = x.to_bits();
        ((u128::from(bits) & ((1 << 52) - 1)) + (1 << 52), ((bits >> 52) as i32) - 1075)
    }

    /// rate examples >= bands batch_size, in whole numbers.
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
            let Ok((_, rate)) = sampling.turns_and_rate_upper() else { continue };
            tested += 1;
            let ((size, exponent), (of_rate, its)) = (parts(batch_size), parts(rate));
            let wanted = size * bands as u128;
            // A rate is no larger than the batch size: its unit is the smaller one.
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
