//! A run: the plan's batches, clipping, the plan's noise, an optimiser.

mod checkpoint;
mod noise;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use antinoise_input::{InvalidParameter, at_least};
use antinoise_noise::{Key, NoiseStream, Purpose, RunId};
use antinoise_plan::{Batches, Plan, Release, SUM_ALLOWANCE, Sampler, VerifiedPlan};

use crate::Error;
use crate::clip::{clipped_sum, sum_margin};
use crate::data::Dataset;
use crate::model::Model;
use crate::optimizer::{Optimizer, Rule};
use checkpoint::{Identity, Lineage};
use noise::{Noise, NoiseBuilder};

pub use checkpoint::{Checkpoints, Committed, Finished, FolderLock};

/// What a run is a function of, apart from its key and the parameters that it starts from.
#[derive(Debug, Clone, Copy)]
pub struct Setup<'a> {
    /// Steps, sampler, clip norm, noise and the privacy that they give.
    pub plan: &'a VerifiedPlan,
    /// What is trained.
    pub model: &'a Model,
    /// What it is trained on and tested with.
    pub dataset: &'a Dataset,
    /// How a step follows from a noisy gradient.
    pub rule: Rule,
}

/// What was measured on the way.
///
/// Losses and clipped shares come from the private examples without noise: the privacy statement does not
/// cover them. They are for the eyes of whoever may see the data.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    /// Mean training loss of each step's batch, in nats; NaN for an empty batch.
    pub losses: Vec<f64>,
    /// Share of each step's batch that was clipped; NaN for an empty batch.
    pub clipped_shares: Vec<f64>,
    /// (steps done, test accuracy), in the order of steps.
    pub accuracies: Vec<(usize, f64)>,
    /// Seconds spent in steps and tests, over all resumptions.
    pub seconds: f64,
    /// Seconds of these in making and adding noise.
    pub seconds_in_noise: f64,
}

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

/// A run of private training.
///
/// The same key, start and setup give the same parameters bit for bit on the same machine, whatever the number
/// of threads and however often the run was interrupted.
///
/// ```
/// use antinoise_noise::{Key, RunId};
/// use antinoise_plan::{Length, Request, Setting, choose};
/// use antinoise_train::{data, model::Model, optimizer::Rule, trainer::{Setup, Trainer}};
/// let dataset = data::digits();
/// let model = Model::logistic(dataset.shape, dataset.classes)?;
/// let plan = choose(&Request::new(dataset.train.len(), 144, Length::Epochs(1), Setting::Cyclic))?.plan;
/// let rule = Rule::Sgd { learning_rate: 1.0, momentum: 0.9 };
/// let setup = Setup { plan: &plan, model: &model, dataset: &dataset, rule };
/// let mut trainer = Trainer::new(setup, RunId::default(), vec![0.0; model.parameters()], Key::from_os()?)?;
/// trainer.step()?;
/// assert_eq!((trainer.step_count(), trainer.history().losses.len()), (1, 1));
/// # Ok::<(), antinoise_train::Error>(())
/// ```
pub struct Trainer<'a> {
    setup: Setup<'a>,
    batches: Batches,
    noise: Noise,
    optimizer: Optimizer,
    parameters: Vec<f32>,
    history: History,
    lineage: Lineage,
}

impl<'a> Trainer<'a> {
    /// The run called `run` from the parameters `start`, its noise and batches from `key`. Under one key, runs of other
    /// names share no bit.
    ///
    /// # Errors
    /// When plan, model, data, optimiser and `start` do not fit each other.
    pub fn new(setup: Setup<'a>, run: RunId, start: Vec<f32>, key: Key) -> Result<Self, Error> {
        setup.check(&start)?;
        let identity = setup.identity();
        let noise = setup.noise(run, &identity)?.build(key)?;
        let lineage = Lineage::new(identity, noise.commitment());
        let optimizer = Optimizer::new(setup.rule, start.len())?;
        let batches = setup.batches(&noise)?;
        Ok(Self { setup, batches, noise, optimizer, parameters: start, history: History::default(), lineage })
    }

    /// Steps done.
    pub fn step_count(&self) -> usize {
        self.noise.step()
    }

    /// The parameters after the steps done: what the privacy statement covers.
    pub fn parameters(&self) -> &[f32] {
        &self.parameters
    }

    /// What was measured so far.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// One step: the clipped sum, noise on the sum, the mean, the optimiser.
    ///
    /// # Errors
    /// When all steps of the plan are done.
    pub fn step(&mut self) -> Result<(), Error> {
        let start = Instant::now();
        let Setup { plan, model, dataset, .. } = self.setup;
        let step = self.step_count();
        if step == plan.steps {
            return Err(antinoise_noise::NoiseError::Exhausted { steps: plan.steps }.into());
        }
        let batch = self.batches.at(step, &mut self.noise.rng(Purpose::BatchSampling, step as u64));
        let sum = clipped_sum(model, &self.parameters, &dataset.train, &batch, plan.clip_norm)?;
        let noise_start = Instant::now();
        let mut update = self.noise.release(&sum.gradient)?;
        self.history.seconds_in_noise += noise_start.elapsed().as_secs_f64();
        let share = (1.0 / plan.expected_batch_size()) as f32;
        update.iter_mut().for_each(|x| *x *= share);
        self.optimizer.step(&mut self.parameters, &update);
        let count = batch.len() as f64;
        self.history.losses.push(sum.loss / count);
        self.history.clipped_shares.push(sum.clipped as f64 / count);
        self.history.seconds += start.elapsed().as_secs_f64();
        Ok(())
    }

    /// Measures the accuracy on the test examples and writes it into the history.
    ///
    /// # Errors
    /// When a tensor operation fails.
    pub fn test(&mut self) -> Result<f64, Error> {
        let start = Instant::now();
        let accuracy = self.setup.model.evaluate(&self.parameters, &self.setup.dataset.test)?.accuracy;
        self.history.accuracies.push((self.step_count(), accuracy));
        self.history.seconds += start.elapsed().as_secs_f64();
        Ok(accuracy)
    }

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

impl Setup<'_> {
    /// Refuses plan, model, data, optimiser and `start` that do not fit each other: what [`Trainer::new`] would refuse.
    ///
    /// # Errors
    /// It names what does not fit.
    pub fn check(&self, start: &[f32]) -> Result<(), Error> {
        self.rule.check()?;
        let examples = self.dataset.train.len();
        if self.plan.examples != examples {
            let must_be = format!("{examples}, the training examples of {}", self.dataset.name);
            return Err(InvalidParameter::new("examples of the plan", self.plan.examples, must_be).into());
        }
        for part in [&self.dataset.train, &self.dataset.test] {
            self.model.check(start, part)?;
        }
        self.check_sensitivity()
    }

    /// Refuses sums that one example may move further than the plan's noise is for.
    fn check_sensitivity(&self) -> Result<(), Error> {
        let Plan { examples, sampler, release, .. } = **self.plan;
        let parameters = self.model.parameters();
        if let Release::Grid { dim, .. } = release
            && parameters > dim
        {
            let must_be = format!("at most {dim}, the coordinates that the plan's grid is for");
            return Err(InvalidParameter::new("number of parameters", parameters, must_be).into());
        }
        // Every group may come whole.
        let largest = match sampler {
            Sampler::Cyclic { groups } | Sampler::Poisson { groups } => examples.div_ceil(groups),
            Sampler::External => return Err(external().into()),
        };
        let margin = sum_margin(largest, self.model.chunk())?;
        if margin > SUM_ALLOWANCE {
            let got =
                format!("{largest}, whose sum in double precision has a margin of {margin:.2e} clip norms");
            let must_be =
                format!("so few that it is at most {SUM_ALLOWANCE:.2e}, which the plan's noise covers");
            return Err(InvalidParameter::new("examples of the largest batch", got, must_be).into());
        }
        Ok(())
    }

    fn noise(&self, run: RunId, identity: &Identity) -> Result<NoiseBuilder, antinoise_plan::Error> {
        let recursion = self.plan.strategy.recursion()?;
        let dim = self.model.parameters();
        let builder = NoiseStream::builder(recursion, self.plan.steps, dim, self.plan.noise_std())
            .run(run)
            .context(identity.digest());
        Ok(NoiseBuilder { builder, grid: self.plan.release.grid()? })
    }

    fn batches(&self, noise: &Noise) -> Result<Batches, InvalidParameter> {
        let Plan { examples, batch_size, sampler, .. } = **self.plan;
        Batches::new(sampler, examples, batch_size, &mut noise.rng(Purpose::DataOrder, 0))
    }
}

fn external() -> InvalidParameter {
    let must_be = "cyclic or Poisson: this trainer forms its own batches";
    InvalidParameter::new("sampler of the plan", "external", must_be)
}
