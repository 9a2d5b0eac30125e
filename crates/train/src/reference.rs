//! Training without clipping and noise, as a baseline for the cost of privacy. NOT PRIVATE.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use antinoise_input::at_least;
use antinoise_plan::{Batches, Sampler};
use rand_core::Rng;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::data::Dataset;
use crate::optimizer::{Optimizer, OptimizerConfig};
use crate::private_model::PrivateModel;

/// A training run without privacy.
#[derive(Debug, Clone, Copy)]
pub struct Reference<'a> {
    /// The model.
    pub model: &'a dyn PrivateModel,
    /// The training and test data.
    pub dataset: &'a Dataset,
    /// The optimizer, which sees the mean of the unclipped gradients.
    pub optimizer: OptimizerConfig,
    /// Number of examples in a batch; if the data set has users, number of users, each with all examples.
    /// Batches are cyclic.
    pub batch_size: usize,
    /// Number of steps.
    pub steps: usize,
    /// Steps from one test to the next; the last step is always tested.
    pub test_every: usize,
}

/// Measurements of the run. No privacy statement covers them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Measured {
    /// (steps done, test accuracy), in the order of steps.
    pub accuracies: Vec<(usize, f64)>,
    /// Seconds spent in steps and tests.
    pub seconds: f64,
}

impl Measured {
    /// Whether all accuracies are fractions and the time is not negative.
    pub fn is_plausible(&self) -> bool {
        self.seconds >= 0.0 && self.accuracies.iter().all(|(_, share)| (0.0..=1.0).contains(share))
    }
}

impl Reference<'_> {
    /// The numbers of steps after which the model is tested.
    pub fn tested(&self) -> Vec<usize> {
        (1..=self.steps).filter(|&done| self.is_tested(done)).collect()
    }

    fn is_tested(&self, done: usize) -> bool {
        done == self.steps || done.is_multiple_of(self.test_every)
    }

    /// Trains from `start`, in an order of the examples drawn from `rng`, and calls `progress` after each
    /// step. Returns `None` if `stop` becomes true.
    ///
    /// ```
    /// use std::sync::atomic::AtomicBool;
    /// use antinoise_noise::{Key, KeyedRng, Purpose, RunId};
    /// use antinoise_train::{data, model::Model, optimizer::UpdateRule, reference::Reference};
    /// let dataset = data::digits();
    /// let model = Model::logistic(dataset.shape, dataset.classes)?;
    /// let rule = UpdateRule::Sgd { learning_rate: 0.1, momentum: 0.9 };
    /// let (batch_size, steps, test_every) = (144, 30, 30);
    /// let optimizer = rule.into();
    /// let reference = Reference { model: &model, dataset: &dataset, optimizer, batch_size, steps, test_every };
    /// let mut rng = KeyedRng::new(&Key::from_os()?, &RunId::default(), Purpose::DataOrder, 0);
    /// let start = vec![0.0; model.parameters()];
    /// let found = reference.train(start, &mut rng, &AtomicBool::new(false), || ())?.unwrap();
    /// assert!(found.accuracies[0].0 == 30 && found.accuracies[0].1 > 0.8);
    /// # Ok::<(), antinoise_train::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a number is 0, the optimizer's are out of range, or a step fails.
    pub fn train(
        &self,
        start: Vec<f32>,
        rng: &mut impl Rng,
        stop: &AtomicBool,
        mut progress: impl FnMut(),
    ) -> Result<Option<Measured>, Error> {
        at_least("test_every", self.test_every, 1)?;
        let Dataset { train, users, .. } = self.dataset;
        let units = self.dataset.units();
        let groups = units.div_ceil(at_least("batch_size", self.batch_size, 1)?);
        let batches = Batches::new(Sampler::Cyclic { groups }, units, self.batch_size, self.steps, rng)?;
        let (mut parameters, mut optimizer) =
            (start, Optimizer::of_run(self.optimizer, self.model.parameters(), self.steps)?);
        let mut found = Measured { accuracies: Vec::new(), seconds: 0.0 };
        let clock = Instant::now();
        for step in 0..self.steps {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let mut batch = batches.at(step, rng);
            if let Some(users) = users {
                batch = batch.iter().flat_map(|&user| users.of(user)).copied().collect();
            }
            let sum = self.model.plain_sum(&parameters, train, &batch)?.gradient;
            let mean: Vec<f32> = sum.iter().map(|x| (x / batch.len() as f64) as f32).collect();
            optimizer.step(&mut parameters, &mean);
            let done = step + 1;
            if self.is_tested(done) {
                let accuracy = self.model.evaluate(&parameters, &self.dataset.test)?.accuracy;
                found.accuracies.push((done, accuracy));
            }
            progress();
        }
        found.seconds = clock.elapsed().as_secs_f64();
        Ok(Some(found))
    }
}
