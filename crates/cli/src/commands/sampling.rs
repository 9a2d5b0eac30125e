//! The sampling options of `account` and `calibrate`.

use antinoise_accounting::{BlockCyclicPoisson, FixedSizeBatches, MaxBatch, Sampling};
use antinoise_input::{InvalidParameter, at_least, between};
use antinoise_mechanism::Adjacency;
use clap::Args;

use crate::failure::Result;
use crate::numbers::{count, real};

/// Options of the ways to draw batches that amplify privacy.
#[derive(Debug, Args)]
pub struct SamplingOptions {
    /// Poisson sampling: the probability that an example joins a step's batch, independently of others (batch
    /// size over examples).
    #[arg(long, value_name = "Q", value_parser = real)]
    pub sampling_rate: Option<f64>,
    /// Number of steps.
    #[arg(long, value_name = "N", value_parser = count)]
    pub steps: Option<usize>,
    /// Number of bands of C, under block-cyclic Poisson sampling; the noise multiplier is then relative to
    /// the largest column norm of C.
    #[arg(long, value_name = "B", value_parser = count, requires = "sampling_rate")]
    pub bands: Option<usize>,
    /// Truncated Poisson batches: a batch of more than this many examples is cut to this size, uniformly at
    /// random, so that all batches can be padded to one size. Delta includes the cost.
    #[arg(long, value_name = "SIZE", value_parser = count, requires_all = ["sampling_rate", "examples"])]
    pub max_batch_size: Option<usize>,
    /// Batches of a fixed size: every step draws this many examples, uniformly and without replacement. A
    /// loader that shuffles once in an epoch does not.
    #[arg(long, value_name = "SIZE", value_parser = count, requires_all = ["steps", "examples"], conflicts_with_all = ["sampling_rate", "bands", "max_batch_size"])]
    pub fixed_batch_size: Option<usize>,
    /// Batches by random allocation: in every STEPS steps, an epoch, each example takes part in one step,
    /// chosen uniformly, independently of other examples and anew in each epoch; noise is independent. A
    /// loader that shuffles and cuts batches of a fixed size does not do this.
    #[arg(long, value_name = "STEPS", value_parser = count, requires = "steps", conflicts_with_all = ["sampling_rate", "bands", "max_batch_size", "fixed_batch_size", "examples"])]
    pub random_allocation: Option<usize>,
    /// With --max-batch-size: the number of examples, or an upper bound on it. With --fixed-batch-size: the
    /// number of examples.
    #[arg(long, value_name = "N", value_parser = count)]
    pub examples: Option<usize>,
}

/// Refuses replace-one adjacency, `because`.
pub fn refuse_replace_one(adjacency: Adjacency, because: &str) -> Result<()> {
    if adjacency == Adjacency::ReplaceOne {
        return Err(InvalidParameter::new("adjacency", adjacency, format!("zero-out, {because}")).into());
    }
    Ok(())
}

/// Checks a sampling rate: the probability that an example takes part.
pub fn checked_rate(rate: f64) -> Result<f64> {
    if rate > 0.0 && rate <= 1.0 {
        return Ok(rate);
    }
    Err(InvalidParameter::new("sampling_rate", format!("{rate:?}"), "above 0 and at most 1").into())
}

impl SamplingOptions {
    /// The sampling that the options describe.
    pub fn read(&self) -> Result<Sampling> {
        if let (Some(batch_size), Some(examples), Some(steps)) =
            (self.fixed_batch_size, self.examples, self.steps)
        {
            at_least("examples", examples, 2)?;
            between("fixed_batch_size", batch_size, 1, examples - 1, "examples - 1")?;
            return Ok(Sampling::FixedSize(FixedSizeBatches { batch_size, examples, steps }));
        }
        if let (Some(epoch_steps), Some(steps)) = (self.random_allocation, self.steps) {
            return allocation(epoch_steps, steps);
        }
        if let (Some(examples), None) = (self.examples, self.max_batch_size) {
            let must_be = "left out, or given with --max-batch-size or --fixed-batch-size";
            return Err(InvalidParameter::new("examples", examples, must_be).into());
        }
        let (rate, steps) = match (self.sampling_rate, self.steps) {
            (None, None) => return Ok(Sampling::None),
            (Some(rate), Some(steps)) => (rate, steps),
            (Some(_), None) => return Err(absent("steps", "--sampling-rate").into()),
            (None, Some(_)) => return Err(absent("sampling_rate", "--steps").into()),
        };
        at_least("steps", steps, 1)?;
        checked_rate(rate)?;
        let bands = self.bands.unwrap_or(1);
        let most = steps.min((1.0 / rate * (1.0 + 1e-12)) as usize);
        between("bands", bands, 1, most, "the steps, and 1 / sampling_rate")?;
        let max_batch = match (self.max_batch_size, self.examples) {
            (Some(size), Some(examples)) => Some(MaxBatch { size, examples }),
            _ => None,
        };
        Ok(Sampling::Poisson { batches: poisson(rate, steps, bands), max_batch })
    }
}

/// Random allocation over `steps` steps, which are whole epochs.
fn allocation(epoch_steps: usize, steps: usize) -> Result<Sampling> {
    at_least("steps", steps, 1)?;
    between("random_allocation", epoch_steps, 1, steps, "steps")?;
    if !steps.is_multiple_of(epoch_steps) {
        let must_be = format!("a multiple of random_allocation = {epoch_steps}, so that epochs are whole");
        return Err(InvalidParameter::new("steps", steps, must_be).into());
    }
    Ok(Sampling::RandomAllocation { epoch_steps, epochs: steps / epoch_steps })
}

fn absent(name: &str, with: &str) -> InvalidParameter {
    InvalidParameter::new(name, "absent", format!("given with {with}"))
}

/// Poisson sampling at `rate`: of batches of that expected size out of one example.
pub fn poisson(rate: f64, steps: usize, bands: usize) -> BlockCyclicPoisson {
    BlockCyclicPoisson { bands, steps, batch_size: rate, examples: 1 }
}
