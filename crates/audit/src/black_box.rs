//! The mechanism as a black box: its inputs and outputs.

use antinoise_train::data::Examples;
use antinoise_train::model::Model;

use crate::Error;

/// The inputs of gradients. The audit chooses all of them, as an adversary who knows everything but the noise.
#[derive(Debug)]
pub struct Data {
    /// A linear model of two classes: each example's gradient is determined by its features and label.
    pub model: Model,
    /// One number a parameter.
    pub parameters: Vec<f32>,
    /// The examples that batches are taken from.
    pub examples: Examples,
}

/// A mechanism under audit: it clips and sums gradients, and releases the sums with noise.
pub trait UnderAudit {
    /// The sum of a batch's clipped gradients to which the noise is added.
    ///
    /// # Errors
    /// When it cannot be made.
    fn sum(&mut self, data: &Data, batch: &[usize]) -> Result<Vec<f64>, Error>;

    /// Begins run number `run`, over `dim` coordinates. Runs are independent of each other.
    ///
    /// # Errors
    /// When the mechanism cannot be built.
    fn begin(&mut self, run: u64, dim: usize) -> Result<(), Error>;

    /// The release of the run's next step: the sum over `batch`, and noise.
    ///
    /// # Errors
    /// When there is no further step.
    fn release(&mut self, data: &Data, batch: &[usize]) -> Result<Vec<f64>, Error>;
}
