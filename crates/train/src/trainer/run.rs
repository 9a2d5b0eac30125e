use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use antinoise_input::at_least;

use super::steps::Trainer;
use crate::Error;
use crate::checkpoint::Checkpoints;

/// Options of [`Trainer::run`].
#[derive(Debug, Clone, Copy)]
pub struct Options<'a> {
    /// Steps from one test to the next; the last step is always tested.
    pub test_every: usize,
    /// The folder for checkpoints and when to save them. After the last step the folder holds the results,
    /// and the key is wiped.
    pub checkpoints: Option<(&'a Checkpoints, CheckpointInterval)>,
}

/// The interval at which a run saves checkpoints before its last step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CheckpointInterval {
    /// Steps from one checkpoint to the next.
    pub max_steps: usize,
    /// Time after which a checkpoint is due even before that number of steps.
    pub max_time: Duration,
    /// Minimum time between two saves, in multiples of the time that a save took: with 20, saves take at most
    /// 1/21 of the time.
    pub min_rest: u32,
}

impl CheckpointInterval {
    /// A checkpoint every `steps` steps, however long steps and saves take.
    pub fn every(steps: usize) -> Self {
        Self { max_steps: steps, max_time: Duration::MAX, min_rest: 0 }
    }

    /// Whether a checkpoint is due: `steps` steps and the time `since` have passed since the last one, and
    /// saving it took `took`.
    fn is_due(self, steps: usize, since: Duration, took: Duration) -> bool {
        (steps >= self.max_steps || since >= self.max_time) && since >= took * self.min_rest
    }
}

/// How a call of [`Trainer::run`] ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All steps of the plan are done.
    Finished,
    /// The run was asked to stop, and can be resumed.
    Stopped,
}

impl Trainer<'_> {
    /// Takes the remaining steps, and calls `progress` after each. When `stop` becomes true (for example by a
    /// handler of Ctrl-C), finishes the step, saves a checkpoint and returns.
    ///
    /// # Errors
    /// If an interval of steps in `options` is 0, or a step or a checkpoint fails.
    pub fn run(
        &mut self,
        options: &Options,
        stop: &AtomicBool,
        mut progress: impl FnMut(&Self),
    ) -> Result<Outcome, Error> {
        at_least("test_every", options.test_every, 1)?;
        at_least("max_steps", options.checkpoints.map_or(1, |(_, interval)| interval.max_steps), 1)?;
        let steps = self.setup.plan.steps;
        let mut saved = (self.step_count(), Instant::now(), Duration::ZERO);
        while self.step_count() < steps {
            let stopped = stop.load(Ordering::Relaxed);
            if !stopped {
                self.step()?;
                if self.step_count() == steps || self.step_count().is_multiple_of(options.test_every) {
                    self.test()?;
                }
                progress(self);
            }
            let (step, (saved_step, at, took)) = (self.step_count(), saved);
            if let Some((checkpoints, interval)) = options.checkpoints
                && (stopped || step == steps || interval.is_due(step - saved_step, at.elapsed(), took))
            {
                let begun = Instant::now();
                self.save(checkpoints)?;
                saved = (step, Instant::now(), begun.elapsed());
            }
            if stopped {
                return Ok(Outcome::Stopped);
            }
        }
        Ok(Outcome::Finished)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saves_are_as_often_as_asked_and_no_more_than_their_share_of_the_time() {
        let interval = CheckpointInterval { max_steps: 60, max_time: Duration::from_secs(30), min_rest: 20 };
        // Seconds of a step and of a save.
        for (of_step, of_save) in
            [(0.001, 0.0), (0.01, 0.001), (0.01, 0.25), (1.0, 0.25), (1.0, 10.0), (40.0, 1.0), (0.01, 100.0)]
        {
            let (mut last, mut apart, mut lost) = (0, 0.0, 0.0_f64);
            let (mut took, mut saves) = (0.0, 0);
            for step in 1..=5000 {
                apart += of_step;
                lost = lost.max(apart);
                let seconds = Duration::from_secs_f64;
                if interval.is_due(step - last, seconds(apart), seconds(took)) {
                    (last, apart, took, saves) = (step, 0.0, of_save, saves + 1);
                }
            }
            let (trained, saved) = (5000.0 * of_step, f64::from(saves) * of_save);
            assert!(saved <= trained / 20.0 + of_save, "{of_step} {of_save}: {saved} s of {trained} s");
            // The work lost by a kill: 60 steps or 30 seconds, or 20 saves if these take longer.
            let most = (60.0 * of_step).min(30.0).max(20.0 * of_save) + 1.01 * of_step;
            assert!(lost <= most, "{of_step} {of_save}: {lost} s lost, {most} s at most");
        }
        let every = CheckpointInterval::every(3);
        assert!(every.is_due(3, Duration::ZERO, Duration::from_secs(9)));
        assert!(!every.is_due(2, Duration::from_secs(1 << 40), Duration::ZERO));
    }
}
