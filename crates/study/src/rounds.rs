//! The rounds of a federated run, with tests on the test examples.

use antinoise_federated::{Federation, Population};
use antinoise_train::checkpoint::History;
use antinoise_train::trainer::Run;

use crate::error::Error;
use crate::task::Task;

/// A federated run whose users are always available.
pub struct Rounds<'a, P: Population> {
    pub federation: Federation<'a, P>,
    /// Number of rounds of the plan.
    pub steps: usize,
    /// The test examples, with the model.
    pub task: &'a Task,
}

impl<P: Population> Rounds<'_, P> {
    /// The measurements so far.
    pub fn history(&self) -> &History {
        self.federation.history()
    }
}

impl<P: Population> Run for Rounds<'_, P> {
    type Error = Error;

    fn steps(&self) -> usize {
        self.steps
    }

    fn step_count(&self) -> usize {
        self.federation.step_count()
    }

    fn step(&mut self) -> Result<(), Error> {
        self.federation.round(|_, _| true)?;
        Ok(())
    }

    fn test(&mut self) -> Result<(), Error> {
        let accuracy = self.task.accuracy(self.federation.parameters())?;
        self.federation.record_accuracy(accuracy);
        Ok(())
    }

    fn save(&self) -> Result<(), Error> {
        Ok(self.federation.save()?)
    }
}
