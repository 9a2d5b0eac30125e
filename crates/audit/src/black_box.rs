//! The mechanism as a black box: its inputs and outputs.

use std::sync::atomic::{AtomicU64, Ordering};

use antinoise_train::data::Examples;
use antinoise_train::model::Model;

use crate::Error;

/// The inputs of gradients. The audit chooses all of them, as an adversary who knows everything but the noise.
#[derive(Debug)]
pub struct Data {
    model: Model,
    parameters: Vec<f32>,
    examples: Examples,
    number: u64,
}

/// How many [`Data`] there were.
static DATA: AtomicU64 = AtomicU64::new(0);

impl Data {
    pub(crate) fn new(model: Model, parameters: Vec<f32>, examples: Examples) -> Self {
        Self { model, parameters, examples, number: DATA.fetch_add(1, Ordering::Relaxed) }
    }

    /// A linear model of two classes: each example's gradient is determined by its features and label.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// One number a parameter.
    pub fn parameters(&self) -> &[f32] {
        &self.parameters
    }

    /// The examples that batches are taken from.
    pub fn examples(&self) -> &Examples {
        &self.examples
    }

    /// No two of a process have the same number.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

/// A mechanism under audit: it clips and sums gradients, and releases the sums with noise.
pub trait UnderAudit {
    /// The sum of a batch's clipped gradients to which the noise is added.
    ///
    /// # Errors
    /// When it cannot be made.
    fn sum(&mut self, data: &Data, batch: &[usize]) -> Result<Vec<f64>, Error>;

    /// Begins run number `run`, over `dim` coordinates, shared out among so many processes. Runs are
    /// independent of each other; the number of processes changes no bit of a release.
    ///
    /// # Errors
    /// When the mechanism cannot be built.
    fn begin(&mut self, run: u64, dim: usize, processes: usize) -> Result<(), Error>;

    /// Whether a run of the same number has the same noise when it is begun again: such runs are compared bit
    /// for bit. A mechanism that takes a new key for each run does not repeat itself.
    fn repeats(&self) -> bool {
        true
    }

    /// Ends every process of the run; new ones continue from what they saved in files. No bit of the
    /// following releases changes.
    ///
    /// # Errors
    /// When nothing could be saved or resumed.
    fn interrupt(&mut self) -> Result<(), Error>;

    /// The release of the run's next step: the sum over `batch`, and noise.
    ///
    /// # Errors
    /// When there is no further step.
    fn release(&mut self, data: &Data, batch: &[usize]) -> Result<Vec<f64>, Error>;
}
