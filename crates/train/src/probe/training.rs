//! One training of a probe, with independent noise, that can be continued from any step.

use antinoise_input::{InvalidParameter, at_least};
use antinoise_noise::{Key, KeyedRng, Purpose, RunId};
use antinoise_plan::{Batches, Sampler};
use rand_core::Rng;

use super::definition::Probe;
use crate::Error;
use crate::clip::Clipping;
use crate::optimizer::Optimizer;
use crate::private_model::PrivateModel;

/// Parameters and optimizer before a step.
pub(super) type State = (Vec<f32>, Optimizer);

/// The growth of the loss, as a factor, from which on a training is taken to have diverged. Noise alone
/// raises the loss of a training that ends too early for it to be forgotten by less.
const MOST_GROWTH: f64 = 100.0;

/// A training on public data, whose start, batches and noise are functions of the probe's seed and of the
/// number of the repeat.
pub(super) struct Training<'a> {
    probe: &'a Probe<'a>,
    key: Key,
    batches: Batches,
}

impl<'a> Training<'a> {
    pub(super) fn new(probe: &'a Probe<'a>, repeat: usize) -> Result<Self, Error> {
        let key = Key::from_seed_insecure(probe.seed.wrapping_add(repeat as u64));
        let examples = probe.dataset.train.len();
        let groups = (examples / at_least("batch_size", probe.batch_size, 1)?).max(1);
        let order = &mut KeyedRng::new(&key, &RunId::default(), Purpose::DataOrder, 0);
        let sampler = Sampler::Cyclic { groups };
        let batches = Batches::new(sampler, examples, probe.batch_size, probe.steps, order)?;
        Ok(Self { probe, key, batches })
    }

    fn rng(&self, purpose: Purpose, number: u64) -> KeyedRng {
        KeyedRng::new(&self.key, &RunId::default(), purpose, number)
    }

    /// Before the first step.
    pub(super) fn start(&self) -> Result<State, Error> {
        let Probe { model, optimizer, steps, .. } = *self.probe;
        let parameters = model.initial_parameters(&mut self.rng(Purpose::Initialization, 0));
        Ok((parameters, Optimizer::of_run(optimizer, model.parameters(), steps)?))
    }

    /// A vector of random signs, one for each parameter; another for each `number`.
    pub(super) fn signs(&self, number: usize) -> Vec<f32> {
        let random = &mut self.rng(Purpose::BatchSampling, number as u64);
        let sign = |_| if random.next_u32() >> 31 == 0 { 1.0 } else { -1.0 };
        (0..self.probe.model.parameters()).map(sign).collect()
    }

    /// Does a step, with its noise and `more` times a second draw.
    pub(super) fn step(
        &self,
        step: usize,
        (parameters, optimizer): &mut State,
        more: f32,
    ) -> Result<(), Error> {
        let Probe { model, dataset, clip_norm, noise_multiplier, steps, .. } = *self.probe;
        let batch = self.batches.at(step, &mut self.rng(Purpose::DataOrder, 1));
        let clipping = Clipping { norm: clip_norm, groups: None };
        let sum = model.clipped_sum(parameters, &dataset.train, &batch, clipping)?.gradient;
        // Noise of two signs has the covariance of normal noise, on which a quadratic loss depends.
        let size = (noise_multiplier * clip_norm) as f32;
        let (every, once) =
            (self.signs(step), if more == 0.0 { Vec::new() } else { self.signs(steps + step) });
        let added = |i: usize| size * every[i] + more * size * once.get(i).copied().unwrap_or(0.0);
        let mean = |(i, &sum): (usize, &f64)| ((sum + f64::from(added(i))) / batch.len() as f64) as f32;
        optimizer.step(parameters, &sum.iter().enumerate().map(mean).collect::<Vec<f32>>());
        Ok(())
    }

    /// The loss of the test examples after a training. Refuses a training that diverged.
    pub(super) fn final_loss(&self, state: &State) -> Result<f64, Error> {
        let (first, last) = (self.loss(&self.start()?)?, self.loss(state)?);
        if last < MOST_GROWTH * first {
            return Ok(last);
        }
        let must_be = format!(
            "below {MOST_GROWTH} times that before the training, {first:.3}: probe with a smaller learning rate or noise \
             multiplier"
        );
        Err(InvalidParameter::new("final test loss", last, must_be).into())
    }

    /// The loss of the test examples.
    pub(super) fn loss(&self, (parameters, _): &State) -> Result<f64, Error> {
        let loss = self.probe.model.evaluate(parameters, &self.probe.dataset.test)?.loss;
        if loss.is_finite() {
            return Ok(loss);
        }
        let must_be = "finite: probe with a smaller learning rate or noise multiplier";
        Err(InvalidParameter::new("final test loss", loss, must_be).into())
    }
}
