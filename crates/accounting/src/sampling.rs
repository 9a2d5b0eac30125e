//! The privacy of noise from its multiplier and the way in which batches are drawn.

use antinoise_input::{InvalidParameter, at_least, between};

use crate::{
    BlockCyclicPoisson, Bounds, Composition, FixedSizeBatches, Gdp, Neighbours, PoissonSampledGaussian,
    RandomAllocation, Result, block_cyclic_poisson_reduction, fixed_size_reduction,
    gaussian_noise_multiplier_upper,
};

/// How the examples of each step are drawn. Noise multipliers are standard deviations over the sensitivity
/// under the adjacency, which replace-one doubles.
///
/// ```
/// use antinoise_accounting::{BlockCyclicPoisson, Neighbours, Sampling};
/// let batches = BlockCyclicPoisson { bands: 1, steps: 1000, batch_size: 500.0, examples: 50_000 };
/// let sampling = Sampling::Poisson { batches, max_batch: None };
/// let epsilon = |sampling: Sampling| sampling.epsilon(2.0, 1e-6, 1, Neighbours::ZeroOut);
/// assert!(epsilon(sampling)?.upper < epsilon(Sampling::None)?.upper);
/// # Ok::<(), antinoise_accounting::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sampling {
    /// No amplification: all steps together are one Gaussian mechanism.
    None,
    /// Poisson sampling; with several bands, each step samples from one group of the examples.
    Poisson {
        /// Bands, steps and the sampling rate.
        batches: BlockCyclicPoisson,
        /// The size at which batches are cut.
        max_batch: Option<MaxBatch>,
    },
    /// Batches of a fixed size, drawn without replacement in every step.
    FixedSize(FixedSizeBatches),
    /// Batches by random allocation: in each of `epochs` epochs, every example takes part in one of
    /// `epoch_steps` steps.
    RandomAllocation {
        /// Number of steps of an epoch.
        epoch_steps: usize,
        /// Number of epochs.
        epochs: usize,
    },
}

/// A maximum batch size, and the number of examples, or an upper bound on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaxBatch {
    /// The maximum batch size.
    pub size: usize,
    /// Number of examples of the data set.
    pub examples: usize,
}

impl Sampling {
    /// Returns the steps that are accounted for at `noise_multiplier`.
    ///
    /// # Errors
    /// When a parameter is out of its range, batches have a fixed size and an example is added or removed, or
    /// batches are by random allocation, which is no composition of sampled steps.
    ///
    /// ```
    /// use antinoise_accounting::{FixedSizeBatches, Neighbours, Sampling};
    /// let sampling = Sampling::FixedSize(FixedSizeBatches { batch_size: 5, examples: 20, steps: 10 });
    /// assert_eq!(sampling.run(2.0, Neighbours::ZeroOut)?.noise_multiplier(), 2.0);
    /// assert_eq!(sampling.run(2.0, Neighbours::ReplaceOne)?.noise_multiplier(), 2.0);
    /// assert!(sampling.run(2.0, Neighbours::AddOrRemove).is_err());
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn run(&self, noise_multiplier: f64, neighbours: Neighbours) -> Result<PoissonSampledGaussian> {
        // A sampled run is relative to the norm of one contribution.
        let of_one = noise_multiplier * neighbours.sensitivity_factor();
        let (batches, max_batch) = match self {
            Self::None => return PoissonSampledGaussian::new(noise_multiplier, 1.0, 1),
            Self::FixedSize(_) if neighbours == Neighbours::AddOrRemove => {
                let must_be = "zero-out or replace-one for batches of a fixed size";
                return Err(InvalidParameter::new("adjacency", neighbours, must_be).into());
            }
            Self::FixedSize(batches) if neighbours == Neighbours::ZeroOut => return batches.zeroed(of_one),
            Self::FixedSize(batches) => return fixed_size_reduction(batches, of_one),
            Self::RandomAllocation { .. } => {
                let must_be = "other than random allocation, which is no composition of sampled steps";
                return Err(InvalidParameter::new("sampling", "random allocation", must_be).into());
            }
            Self::Poisson { batches, max_batch } => (batches, max_batch),
        };
        let run = block_cyclic_poisson_reduction(batches, of_one)?;
        let run = match max_batch {
            // A batch is drawn from one group.
            Some(most) => run.truncated(most.size as u64, most.examples.div_ceil(batches.bands) as u64)?,
            None => run,
        };
        Ok(if neighbours == Neighbours::ReplaceOne { run.replaced() } else { run })
    }

    /// Returns bounds on the least epsilon at `delta` of `group_size` units that change together.
    ///
    /// Under Poisson sampling with one band they are those of up to 64 members that are sampled
    /// independently; other sampled groups have the upper bound that follows from one member, whose lower
    /// bound is the group's.
    ///
    /// # Errors
    /// As [`Sampling::run`]; when `delta` is not between 0 and 1, or `group_size` is 0 or too large.
    ///
    /// ```
    /// use antinoise_accounting::{Gdp, Neighbours, Sampling};
    /// let three = Sampling::None.epsilon(4.0, 1e-5, 3, Neighbours::ZeroOut)?.upper;
    /// assert!((three / Gdp::new(0.75)?.epsilon_upper(1e-5)? - 1.0).abs() < 1e-9);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn epsilon(
        &self,
        noise_multiplier: f64,
        delta: f64,
        group_size: u64,
        neighbours: Neighbours,
    ) -> Result<Bounds> {
        at_least("group_size", group_size as usize, 1)?;
        if let Some(allocation) = self.allocation(noise_multiplier, neighbours)? {
            if group_size > 1 {
                return Err(InvalidParameter::new("group_size", group_size, "1 for random allocation").into());
            }
            return allocation.epsilon(delta);
        }
        let run = self.run(noise_multiplier, neighbours)?;
        let one = Composition::new([run])?;
        if let Self::FixedSize(batches) = self {
            between("group_size", group_size as usize, 1, batches.examples, "examples")?;
            return match group_size {
                1 => one.epsilon(delta),
                _ => by_conversion(&one, delta, group_size),
            };
        }
        if group_size == 1 {
            return one.epsilon(delta);
        }
        if *self == Self::None {
            let group = Gdp::from_noise_multiplier_upper(noise_multiplier)?.group_upper(group_size)?;
            return Ok(Bounds { lower: group.epsilon_lower(delta)?, upper: group.epsilon_upper(delta)? });
        }
        let are_members_independent = matches!(self, Self::Poisson { batches, .. } if batches.bands == 1);
        match run.of_group(group_size) {
            Ok(all) if are_members_independent => Composition::new([all])?.epsilon(delta),
            _ => by_conversion(&one, delta, group_size),
        }
    }

    /// Returns bounds on the least delta at `epsilon`.
    ///
    /// # Errors
    /// As [`Sampling::run`]; when `epsilon` is negative or not finite.
    ///
    /// ```
    /// use antinoise_accounting::{Neighbours, Sampling};
    /// let delta = Sampling::None.delta(2.23048, 2.0, Neighbours::ZeroOut)?;
    /// assert!(delta.lower <= delta.upper && (delta.upper - 1e-6).abs() < 1e-10);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn delta(&self, noise_multiplier: f64, epsilon: f64, neighbours: Neighbours) -> Result<Bounds> {
        if let Some(allocation) = self.allocation(noise_multiplier, neighbours)? {
            return allocation.delta(epsilon);
        }
        Composition::new([self.run(noise_multiplier, neighbours)?])?.delta(epsilon)
    }

    /// Returns the smallest noise multiplier that is `(epsilon, delta)`-private.
    ///
    /// # Errors
    /// As [`Sampling::run`] and [`PoissonSampledGaussian::noise_multiplier_upper`].
    ///
    /// ```
    /// use antinoise_accounting::{Neighbours, Sampling};
    /// let sigma = Sampling::None.noise_multiplier_upper(2.0, 1e-6, Neighbours::ReplaceOne)?;
    /// assert!((sigma - 2.23048).abs() < 1e-5);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn noise_multiplier_upper(&self, epsilon: f64, delta: f64, neighbours: Neighbours) -> Result<f64> {
        let factor = match self {
            Self::None => return gaussian_noise_multiplier_upper(epsilon, delta),
            Self::Poisson { .. } => 1.0,
            Self::FixedSize(_) if neighbours == Neighbours::ZeroOut => 1.0,
            Self::FixedSize(_) => 2.0,
            Self::RandomAllocation { .. } => 1.0,
        };
        if let Some(allocation) = self.allocation(1.0, neighbours)? {
            return allocation.noise_multiplier_upper(epsilon, delta);
        }
        let accounted = self.run(1.0, neighbours)?.noise_multiplier_upper(epsilon, delta)?;
        // The reduction to Poisson sampling rounds the noise down again.
        Ok(factor * accounted.next_up() / neighbours.sensitivity_factor())
    }

    /// The epochs of random allocation.
    fn allocation(&self, noise_multiplier: f64, neighbours: Neighbours) -> Result<Option<RandomAllocation>> {
        let Self::RandomAllocation { epoch_steps, epochs } = *self else { return Ok(None) };
        if neighbours == Neighbours::ReplaceOne {
            let must_be = "zero-out or add-or-remove for random allocation";
            return Err(InvalidParameter::new("adjacency", neighbours, must_be).into());
        }
        RandomAllocation::new(noise_multiplier, epoch_steps as u64, epochs as u64).map(Some)
    }
}

/// The upper bound on epsilon that follows from one member. A group is protected at most as well as one of
/// them.
fn by_conversion(one: &Composition, delta: f64, group_size: u64) -> Result<Bounds> {
    Ok(Bounds { lower: one.epsilon(delta)?.lower, upper: one.group_epsilon_upper(delta, group_size)? })
}
