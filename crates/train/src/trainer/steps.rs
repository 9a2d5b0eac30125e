use std::time::Instant;

use antinoise_noise::{AnyStream, Key, Purpose, RunId};
use antinoise_plan::Batches;

use super::checkpoint::Lineage;
use super::history::History;
use super::setup::Setup;
use super::turns::Turns;
use crate::Error;
use crate::optimizer::Optimizer;

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
/// let setup = Setup { plan: &plan, model: &model, dataset: &dataset, recipe: rule.into() };
/// let mut trainer = Trainer::new(setup, RunId::default(), vec![0.0; model.parameters()], Key::from_os()?)?;
/// trainer.step()?;
/// assert_eq!((trainer.step_count(), trainer.history().losses.len()), (1, 1));
/// # Ok::<(), antinoise_train::Error>(())
/// ```
pub struct Trainer<'a> {
    pub(super) setup: Setup<'a>,
    pub(super) batches: Batches,
    pub(super) turns: Turns,
    pub(super) noise: AnyStream,
    pub(super) optimizer: Optimizer,
    pub(super) parameters: Vec<f32>,
    pub(super) buffers: Buffers,
    pub(super) history: History,
    pub(super) lineage: Lineage,
}

/// Vectors of as many numbers as a step releases, which it fills.
pub(super) struct Buffers {
    released: Vec<f32>,
    mean: Vec<f32>,
}

impl Buffers {
    pub(super) fn new(dim: usize) -> Self {
        Self { released: vec![0.0; dim], mean: vec![0.0; dim] }
    }
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
        let (builder, grid) = setup.noise(run, identity.digest())?;
        let noise = builder.build_any(grid, key)?;
        let lineage = Lineage::new(identity, noise.commitment());
        let optimizer = Optimizer::of_run(setup.recipe, start.len(), setup.plan.steps)?;
        let (batches, turns) = (setup.batches(&noise)?, Turns::none(setup.plan));
        let buffers = Buffers::new(setup.released());
        let history = History::default();
        Ok(Self { setup, batches, turns, noise, optimizer, parameters: start, buffers, history, lineage })
    }

    /// Steps done.
    pub fn step_count(&self) -> usize {
        self.noise.step()
    }

    /// The parameters after the steps done: what the privacy statement covers.
    pub fn parameters(&self) -> &[f32] {
        &self.parameters
    }

    /// The noisy sum of the last step, as the plan releases it: of gradients, scaled where the optimizer says so, and after them their
    /// squares where it needs them; zeros before the first.
    pub fn release(&self) -> &[f32] {
        &self.buffers.released
    }

    /// The examples whose turn step `step` is: its batch, or those from which it is drawn. Where sampling amplifies privacy, who
    /// was drawn is a secret, and so is whose turn it is where examples were put in bins.
    pub fn turn(&self, step: usize) -> &[usize] {
        self.batches.turn(step)
    }

    /// What was measured so far.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// One step: the clipped sum, noise on the sum, the mean, the optimiser.
    ///
    /// # Errors
    /// When all steps of the plan are done, or an example of the batch has had the turns that the plan accounts for: nothing of the batch is then used.
    pub fn step(&mut self) -> Result<(), Error> {
        let start = Instant::now();
        let Setup { plan, model, dataset, .. } = self.setup;
        let step = self.step_count();
        if step == plan.steps {
            return Err(antinoise_noise::Error::Exhausted { steps: plan.steps }.into());
        }
        let batch = self.batches.at(step, &mut self.noise.rng(Purpose::BatchSampling, step as u64));
        self.turns.take(step, &batch)?;
        let scales = self.optimizer.scales();
        let contribution = self.setup.contribution(scales.as_deref());
        let (parameters, examples) = (&self.parameters, &dataset.train);
        let sum = model.contribution_sum(contribution, parameters, examples, &batch, plan.clip_norm)?;
        let noise_start = Instant::now();
        let Buffers { released, mean } = &mut self.buffers;
        self.noise.release(&sum.gradient, released)?;
        self.history.seconds_in_noise += noise_start.elapsed().as_secs_f64();
        let share = (1.0 / plan.expected_batch_size()) as f32;
        mean.iter_mut().zip(&*released).for_each(|(mean, sum)| *mean = sum * share);
        if let Some(lambda) = contribution.share_of_squares(plan.clip_norm) {
            mean[parameters.len()..]
                .iter_mut()
                .for_each(|square| *square = (f64::from(*square) / lambda) as f32);
        }
        self.optimizer.step(&mut self.parameters, mean);
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
}
