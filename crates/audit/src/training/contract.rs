//! A training run under audit as a black box.

use super::inputs::TrainingInputs;
use crate::Error;

/// A training run under audit: SGD with the momentum and learning rate of its [`TrainingInputs`].
pub trait Training {
    /// The plan that the training states, and its data.
    fn inputs(&self) -> &TrainingInputs;

    /// Starts run number `run`. If `noise_only` is true, every gradient is replaced by 0, which changes
    /// neither batches nor noise.
    ///
    /// # Errors
    /// If the training cannot be built.
    fn begin(&mut self, run: u64, noise_only: bool) -> Result<(), Error>;

    /// Ends the process of the run, and starts a new one that continues from saved files. This must not
    /// change later steps.
    ///
    /// # Errors
    /// If the state cannot be saved or resumed.
    fn interrupt(&mut self) -> Result<(), Error>;

    /// Takes the next step.
    ///
    /// # Errors
    /// If there is no further step, or it fails.
    fn step(&mut self) -> Result<StepRecord, Error>;
}

/// What an observer who holds the key knows about a step.
#[derive(Debug, Clone, PartialEq)]
pub struct StepRecord {
    /// The examples whose gradients were summed.
    pub batch: Vec<usize>,
    /// The noisy sum.
    pub noisy_sum: Vec<f32>,
    /// The parameters after the step.
    pub parameters: Vec<f32>,
}
