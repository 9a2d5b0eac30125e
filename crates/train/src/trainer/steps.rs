use std::time::Instant;

use antinoise_noise::{Key, Purpose, RunId};
use antinoise_plan::{Batches, Participations};

use super::setup::Setup;
use crate::Error;
use crate::checkpoint::{Checkpoints, History, RunState};

/// A run of private training.
///
/// The same key, start and setup give the same parameters bit for bit on the same machine, for any number of
/// threads and after any number of interruptions.
///
/// ```
/// use antinoise_noise::{Key, RunId};
/// use antinoise_plan::{Length, Request, Setting, choose};
/// use antinoise_train::{data, model::Model, optimizer::UpdateRule, trainer::{Setup, Trainer}};
/// let dataset = data::digits();
/// let model = Model::logistic(dataset.shape, dataset.classes)?;
/// let plan = choose(&Request::new(dataset.train.len(), 144, Length::Epochs(1), Setting::Cyclic))?.plan;
/// let rule = UpdateRule::Sgd { learning_rate: 1.0, momentum: 0.9 };
/// let setup = Setup { plan: &plan, model: &model, dataset: &dataset, optimizer: rule.into(), groups: None };
/// let mut trainer = Trainer::new(setup, RunId::default(), vec![0.0; model.parameters()], Key::from_os()?)?;
/// trainer.step()?;
/// assert_eq!((trainer.step_count(), trainer.history().losses.len()), (1, 1));
/// # Ok::<(), antinoise_train::Error>(())
/// ```
pub struct Trainer<'a> {
    pub(super) setup: Setup<'a>,
    pub(super) batches: Batches,
    participations: Participations,
    pub(super) run: RunState,
    buffers: Buffers,
}

/// Vectors of a step, with one number for each parameter.
struct Buffers {
    noisy_sum: Vec<f32>,
    mean: Vec<f32>,
}

impl Buffers {
    fn new(dim: usize) -> Self {
        Self { noisy_sum: vec![0.0; dim], mean: vec![0.0; dim] }
    }
}

impl<'a> Trainer<'a> {
    /// Starts a run called `run` from the parameters `start`, with noise and batches from `key`. Under one
    /// key, runs with different names share no bit.
    ///
    /// # Errors
    /// If plan, model, data, optimizer and `start` do not fit each other.
    pub fn new(setup: Setup<'a>, run: RunId, start: Vec<f32>, key: Key) -> Result<Self, Error> {
        setup.check(&start)?;
        let run = RunState::begin(setup.identity(), setup.plan, setup.optimizer, run, start, key)?;
        let (batches, participations) = (setup.batches(&run.noise)?, Participations::none(setup.plan));
        let buffers = Buffers::new(setup.model.parameters());
        Ok(Self { setup, batches, participations, run, buffers })
    }

    /// Resumes the run of the committed checkpoint; it continues as if it had not been interrupted.
    ///
    /// Steps after the checkpoint are repeated, with the same key, batches, noise and bits.
    ///
    /// # Errors
    /// If `checkpoints` hold no unfinished run, its files were not committed together, or it belongs to
    /// another plan, model, data set, optimizer or version of this program.
    pub fn resume(setup: Setup<'a>, checkpoints: &Checkpoints) -> Result<Self, Error> {
        let run = RunState::resume(setup.identity(), setup.plan, setup.optimizer, checkpoints)?;
        setup.check(&run.parameters)?;
        let batches = setup.batches(&run.noise)?;
        let batch = |step| batches.at(step, &mut run.noise.rng(Purpose::BatchSampling, step as u64));
        let participations =
            Participations::of_steps(setup.plan, run.noise.step(), |step| Ok::<_, Error>(batch(step)))?;
        let buffers = Buffers::new(setup.model.parameters());
        Ok(Self { setup, batches, participations, run, buffers })
    }

    /// Commits a checkpoint. If this fails or is killed at any moment, either the previous checkpoint or this
    /// one can be resumed. After the last step, commits the results and wipes the key and everything that
    /// could reproduce the noise.
    ///
    /// # Errors
    /// If a file cannot be written, or `checkpoints` belong to a run with another key or to a later step.
    pub fn save(&self, checkpoints: &Checkpoints) -> Result<(), Error> {
        self.run.save(checkpoints)
    }

    /// Number of steps done.
    pub fn step_count(&self) -> usize {
        self.run.noise.step()
    }

    /// The parameters after the steps done, which the privacy statement covers.
    pub fn parameters(&self) -> &[f32] {
        &self.run.parameters
    }

    /// The noisy sum of the last step's clipped gradients, in the plan's arithmetic; zeros before the first
    /// step.
    pub fn noisy_sum(&self) -> &[f32] {
        &self.buffers.noisy_sum
    }

    /// The examples, or users of a plan for users, that may take part in step `step`: its batch, or the set
    /// from which its batch is sampled. If sampling amplifies privacy, the sampled batch is secret; if
    /// examples are assigned to secret bins, this set is secret too.
    pub fn turn(&self, step: usize) -> &[usize] {
        self.batches.turn(step)
    }

    /// The measurements so far.
    pub fn history(&self) -> &History {
        &self.run.history
    }

    /// Takes one step: the clipped sum, its noise, the mean, the optimizer.
    ///
    /// # Errors
    /// If all steps of the plan are done, or an example of the batch has already taken part as often as the
    /// plan accounts for: the batch is then not used at all.
    pub fn step(&mut self) -> Result<(), Error> {
        let start = Instant::now();
        let (plan, step) = (self.setup.plan, self.step_count());
        if step == plan.steps {
            return Err(antinoise_noise::Error::Exhausted { steps: plan.steps }.into());
        }
        let batch = self.batches.at(step, &mut self.run.noise.rng(Purpose::BatchSampling, step as u64));
        self.participations.record(step, &batch)?;
        let sum = self.setup.sum(&self.run.parameters, (step, &batch), &self.run.noise)?;
        let noise_start = Instant::now();
        let Buffers { noisy_sum, mean } = &mut self.buffers;
        self.run.noise.add_to_sum(&sum.gradient, noisy_sum)?;
        self.run.history.seconds_in_noise += noise_start.elapsed().as_secs_f64();
        let share = (1.0 / plan.expected_batch_size()) as f32;
        mean.iter_mut().zip(&*noisy_sum).for_each(|(mean, sum)| *mean = sum * share);
        self.run.optimizer.step(&mut self.run.parameters, mean);
        let count = batch.len() as f64;
        self.run.history.losses.push(sum.loss / count);
        self.run.history.clipped_shares.push(sum.clipped as f64 / count);
        self.run.history.seconds += start.elapsed().as_secs_f64();
        Ok(())
    }

    /// Measures the accuracy on the test examples and records it in the history.
    ///
    /// # Errors
    /// If the model cannot be evaluated.
    pub fn test(&mut self) -> Result<f64, Error> {
        let start = Instant::now();
        let accuracy = self.setup.model.evaluate(&self.run.parameters, &self.setup.dataset.test)?.accuracy;
        self.run.history.accuracies.push((self.step_count(), accuracy));
        self.run.history.seconds += start.elapsed().as_secs_f64();
        Ok(accuracy)
    }
}

#[cfg(test)]
mod tests {
    use antinoise_plan::{Length, Request, Setting, choose};

    use super::*;
    use crate::checkpoint::noise_of;
    use crate::data::digits;
    use crate::model::Model;
    use crate::optimizer::{OptimizerConfig, Schedule, UpdateRule};

    fn optimizers() -> Vec<OptimizerConfig> {
        let (learning_rate, beta1, beta2) = (0.1, 0.9, 0.99);
        let rules = [
            UpdateRule::Sgd { learning_rate, momentum: 0.0 },
            UpdateRule::Sgd { learning_rate, momentum: 0.9 },
            UpdateRule::Nesterov { learning_rate, momentum: 0.9 },
            UpdateRule::Ftrl { learning_rate, radius: 1.0 },
            UpdateRule::Adam { learning_rate, beta1, beta2, epsilon: 1e-8 },
        ];
        let schedule = Schedule { warm_up: 2, decay: "linear:0.5".parse().unwrap() };
        let with_all = |rule| {
            // FTRL refuses weight decay.
            let weight_decay = if matches!(rule, UpdateRule::Ftrl { .. }) { 0.0 } else { 0.1 };
            OptimizerConfig { rule, schedule, weight_decay, zero_beyond: Some(1e3) }
        };
        rules.into_iter().flat_map(|rule| [rule.into(), with_all(rule)]).collect()
    }

    /// A noisy sum minus the step's noise is the clipped sum of the batch, bit for bit on the grid: momentum,
    /// decay and moments act on noisy sums, never on sums without noise.
    #[test]
    fn the_noisy_sum_less_its_own_noise_is_the_clipped_sum_whatever_the_optimizer() {
        let dataset = digits();
        let model = Model::logistic(dataset.shape, dataset.classes).unwrap();
        let request = Request::new(dataset.train.len(), 120, Length::Epochs(1), Setting::Cyclic);
        let request = Request { dim: model.parameters(), ..request };
        let plan = choose(&request).unwrap().plan;
        let mut compared = 0;
        for optimizer in optimizers() {
            let setup = Setup { plan: &plan, model: &model, dataset: &dataset, optimizer, groups: None };
            let key = || Key::from_seed_insecure(3);
            let mut trainer =
                Trainer::new(setup, RunId::default(), vec![0.0; model.parameters()], key()).unwrap();
            let identity = setup.identity().digest();
            let builder = noise_of(&plan, model.parameters(), RunId::default(), identity).unwrap();
            let grid = plan.arithmetic.grid().unwrap().expect("plans use a grid");
            let mut own = builder.build(key()).unwrap();
            let mut points = vec![0; model.parameters()];
            for step in 0..plan.steps {
                let (batch, parameters) = (trainer.turn(step), &trainer.run.parameters);
                let sum = setup.model.clipped_sum(parameters, &dataset.train, batch, setup.clipping());
                let sum = sum.unwrap().gradient;
                trainer.step().unwrap();
                own.next_points_into(&mut points).unwrap();
                for ((noisy_sum, points), sum) in trainer.noisy_sum().iter().zip(&points).zip(&sum) {
                    let sum = (sum / grid.spacing()).round_ties_even();
                    let wanted = ((sum + f64::from(*points)) * grid.spacing()) as f32;
                    assert_eq!(noisy_sum.to_bits(), wanted.to_bits(), "{optimizer:?}, step {step}");
                    compared += usize::from(sum != 0.0);
                }
            }
        }
        assert!(compared > 60_000, "{compared} coordinates of a sum are not 0");
    }
}
