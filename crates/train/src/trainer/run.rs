use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use antinoise_input::{InvalidParameter, at_least};

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

/// A run that [`run`] takes to its end: of a [`Trainer`] with its checkpoints, or of rounds of users.
pub trait Run {
    /// What a step, a test or a checkpoint fails with.
    type Error: From<InvalidParameter>;

    /// Number of steps of the whole run.
    fn steps(&self) -> usize;

    /// Number of steps done.
    fn step_count(&self) -> usize;

    /// Takes one step.
    ///
    /// # Errors
    /// If the step fails.
    fn step(&mut self) -> Result<(), Self::Error>;

    /// Measures the accuracy on test examples and records it in the history.
    ///
    /// # Errors
    /// If the model cannot be evaluated.
    fn test(&mut self) -> Result<(), Self::Error>;

    /// Commits a checkpoint or, after the last step, the results without the key.
    ///
    /// # Errors
    /// If a file cannot be written.
    fn save(&self) -> Result<(), Self::Error>;
}

/// Takes the remaining steps of `run`, tests every `test_every` steps and after the last one, saves when
/// `interval` says so, and calls `progress` after each step. When `stop` becomes true (for example by a
/// handler of Ctrl-C), finishes the step, saves a checkpoint and returns.
///
/// # Errors
/// If an interval of steps is 0, or a step or a checkpoint fails.
pub fn run<R: Run>(
    run: &mut R,
    (test_every, interval): (usize, CheckpointInterval),
    stop: &AtomicBool,
    mut progress: impl FnMut(&R),
) -> Result<Outcome, R::Error> {
    at_least("test_every", test_every, 1)?;
    at_least("max_steps", interval.max_steps, 1)?;
    let steps = run.steps();
    let mut saved = (run.step_count(), Instant::now(), Duration::ZERO);
    while run.step_count() < steps {
        let stopped = stop.load(Ordering::Relaxed);
        if !stopped {
            run.step()?;
            if run.step_count() == steps || run.step_count().is_multiple_of(test_every) {
                run.test()?;
            }
            progress(run);
        }
        let (step, (saved_step, at, took)) = (run.step_count(), saved);
        if stopped || step == steps || interval.is_due(step - saved_step, at.elapsed(), took) {
            let begun = Instant::now();
            run.save()?;
            saved = (step, Instant::now(), begun.elapsed());
        }
        if stopped {
            return Ok(Outcome::Stopped);
        }
    }
    Ok(Outcome::Finished)
}

impl Trainer<'_> {
    /// Takes the remaining steps, and calls `progress` after each, as [`run`] does.
    ///
    /// # Errors
    /// If an interval of steps in `options` is 0, or a step or a checkpoint fails.
    pub fn run(
        &mut self,
        options: &Options,
        stop: &AtomicBool,
        mut progress: impl FnMut(&Self),
    ) -> Result<Outcome, Error> {
        let (checkpoints, interval) = options.checkpoints.unzip();
        let interval = interval.unwrap_or(CheckpointInterval::every(usize::MAX));
        run(&mut Kept { trainer: self, checkpoints }, (options.test_every, interval), stop, |kept| {
            progress(kept.trainer);
        })
    }
}

/// A trainer and the folder that keeps its checkpoints; `None`: none are kept.
struct Kept<'r, 'a> {
    trainer: &'r mut Trainer<'a>,
    checkpoints: Option<&'r Checkpoints>,
}

impl Run for Kept<'_, '_> {
    type Error = Error;

    fn steps(&self) -> usize {
        self.trainer.setup.plan.steps
    }

    fn step_count(&self) -> usize {
        self.trainer.step_count()
    }

    fn step(&mut self) -> Result<(), Error> {
        self.trainer.step()
    }

    fn test(&mut self) -> Result<(), Error> {
        self.trainer.test().map(drop)
    }

    fn save(&self) -> Result<(), Error> {
        self.checkpoints.map_or(Ok(()), |checkpoints| self.trainer.save(checkpoints))
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
