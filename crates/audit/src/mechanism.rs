//! The mechanism as a black box: its inputs and outputs.

use std::sync::atomic::{AtomicU64, Ordering};

use antinoise_train::data::Examples;
use antinoise_train::model::Model;

use crate::Error;

/// The inputs of gradients, all chosen by the audit: it acts as an adversary who knows everything except the
/// noise.
#[derive(Debug)]
pub struct Data {
    model: Model,
    parameters: Vec<f32>,
    examples: Examples,
    number: u64,
}

/// Number of [`Data`] values made so far.
static DATA: AtomicU64 = AtomicU64::new(0);

impl Data {
    pub(crate) fn new(model: Model, parameters: Vec<f32>, examples: Examples) -> Self {
        Self { model, parameters, examples, number: DATA.fetch_add(1, Ordering::Relaxed) }
    }

    /// A linear model of two classes: each example's gradient is determined by its features and label.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The parameters.
    pub fn parameters(&self) -> &[f32] {
        &self.parameters
    }

    /// The examples of which batches consist.
    pub fn examples(&self) -> &Examples {
        &self.examples
    }

    /// A number that is unique within the process.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

/// A mechanism under audit: it clips and sums gradients, and releases the sums with noise.
pub trait UnderAudit {
    /// The sum of a batch's clipped gradients to which the noise is added.
    ///
    /// # Errors
    /// If it cannot be computed.
    fn sum(&mut self, data: &Data, batch: &[usize]) -> Result<Vec<f64>, Error>;

    /// Starts run number `run` over `dim` coordinates, which are divided among `processes` processes. Runs
    /// are independent of each other; the number of processes does not change a bit of a release.
    ///
    /// # Errors
    /// If the mechanism cannot be built.
    fn begin(&mut self, run: u64, dim: usize, processes: usize) -> Result<(), Error>;

    /// Whether a repeated run with the same number has the same noise; such runs are compared bit for bit.
    /// Return false for a mechanism that takes a new key for each run.
    fn repeats(&self) -> bool {
        true
    }

    /// Ends every process of the run; new processes continue from saved files. This changes no bit of later
    /// releases.
    ///
    /// # Errors
    /// If a state cannot be saved or resumed.
    fn interrupt(&mut self) -> Result<(), Error>;

    /// The release of the run's next step: the sum over `batch`, plus noise.
    ///
    /// # Errors
    /// If there is no further step.
    fn release(&mut self, data: &Data, batch: &[usize]) -> Result<Vec<f64>, Error>;
}
