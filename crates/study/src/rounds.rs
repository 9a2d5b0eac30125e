//! The rounds of a federated run, with tests on the test examples.

use antinoise_federated::{Error, Federation, UserExamples};
use antinoise_train::checkpoint::History;
use antinoise_train::data::Examples;
use antinoise_train::model::Model;
use antinoise_train::trainer::Run;

/// A federated run whose users are always available.
pub struct Rounds<'a> {
    pub federation: Federation<'a, UserExamples<'a>>,
    /// Number of rounds of the plan.
    pub steps: usize,
    pub model: &'a Model,
    /// The test examples.
    pub tests: &'a Examples,
}

impl Rounds<'_> {
    /// The measurements so far.
    pub fn history(&self) -> &History {
        self.federation.history()
    }
}

impl Run for Rounds<'_> {
    type Error = Error;

    fn steps(&self) -> usize {
        self.steps
    }

    fn step_count(&self) -> usize {
        self.federation.step_count()
    }

    fn step(&mut self) -> Result<(), Error> {
        self.federation.round(|_, _| true).map(drop)
    }

    fn test(&mut self) -> Result<(), Error> {
        let found = self.model.evaluate(self.federation.parameters(), self.tests)?;
        self.federation.record_accuracy(found.accuracy);
        Ok(())
    }

    fn save(&self) -> Result<(), Error> {
        self.federation.save()
    }
}
