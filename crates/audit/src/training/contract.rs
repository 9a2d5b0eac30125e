//! The training as a black box: its steps.

use super::ground::Ground;
use crate::Error;

/// A training under audit, by SGD with the ground's momentum and learning rate.
pub trait TrainingUnderAudit {
    /// The plan that it states, and what it is trained on.
    fn ground(&self) -> &Ground;

    /// Begins run number `run`. Where `noise_only` is true each gradient counts as 0, which changes neither
    /// batches nor noise.
    ///
    /// # Errors
    /// When the training cannot be built.
    fn begin(&mut self, run: u64, noise_only: bool) -> Result<(), Error>;

    /// Ends the process; a new one continues from what it saved in files. Nothing of the following steps
    /// changes.
    ///
    /// # Errors
    /// When nothing could be saved or resumed.
    fn interrupt(&mut self) -> Result<(), Error>;

    /// The next step.
    ///
    /// # Errors
    /// When there is none, or it fails.
    fn step(&mut self) -> Result<Seen, Error>;
}

/// What an observer who holds the key sees of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// The examples whose gradients were summed.
    pub batch: Vec<usize>,
    /// The noisy sum.
    pub release: Vec<f32>,
    /// The parameters after the step.
    pub parameters: Vec<f32>,
}
