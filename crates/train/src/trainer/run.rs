use std::sync::atomic::{AtomicBool, Ordering};

use antinoise_input::at_least;

use super::checkpoint::Checkpoints;
use super::steps::Trainer;
use crate::Error;

/// How [`Trainer::run`] goes about it.
#[derive(Debug, Clone, Copy)]
pub struct Options<'a> {
    /// Steps from one test to the next; the last step is always tested.
    pub test_every: usize,
    /// The folder for checkpoints and the steps from one to the next; after the last step it holds the results, and
    /// the key is wiped.
    pub checkpoints: Option<(&'a Checkpoints, usize)>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All steps of the plan are done.
    Finished,
    /// It was told to stop and can be resumed.
    Stopped,
}

impl Trainer<'_> {
    /// Takes the remaining steps, and calls `progress` after each. Once `stop` is true (set by a handler of
    /// Ctrl-C, say) it finishes the step, saves a checkpoint and returns.
    ///
    /// # Errors
    /// When an interval of `options` is 0, or a step or a checkpoint fails.
    pub fn run(
        &mut self,
        options: &Options,
        stop: &AtomicBool,
        mut progress: impl FnMut(&Self),
    ) -> Result<Outcome, Error> {
        at_least("test_every", options.test_every, 1)?;
        at_least("checkpoint_every", options.checkpoints.map_or(1, |(_, every)| every), 1)?;
        let steps = self.setup.plan.steps;
        while self.step_count() < steps {
            let stopped = stop.load(Ordering::Relaxed);
            if !stopped {
                self.step()?;
                if self.step_count() == steps || self.step_count().is_multiple_of(options.test_every) {
                    self.test()?;
                }
                progress(self);
            }
            if let Some((checkpoints, every)) = options.checkpoints
                && (stopped || self.step_count() == steps || self.step_count().is_multiple_of(every))
            {
                self.save(checkpoints)?;
            }
            if stopped {
                return Ok(Outcome::Stopped);
            }
        }
        Ok(Outcome::Finished)
    }
}
