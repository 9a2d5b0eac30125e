//! Canaries: examples that an auditor inserts into a training run, and a model for training with them.

use std::sync::{Mutex, PoisonError};

use antinoise_input::{InvalidParameter, between};
use antinoise_train::Error;
use antinoise_train::clip::{Contribution, GradientSum};
use antinoise_train::data::{Dataset, Examples};
use antinoise_train::learner::Learner;
use antinoise_train::model::Evaluation;
use serde::{Deserialize, Serialize};

use crate::random::Random;

/// The kind of canaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Canary {
    /// Gradients of the clip norm's length, each along a different parameter. The auditor sees every release.
    Gradient,
    /// Examples with a wrong label. The auditor sees the final model.
    Input,
}

/// The canaries of one run: they replace the examples `slots[i]` of the training set, and each is included
/// with probability 1/2.
#[derive(Debug)]
pub(crate) struct Canaries {
    pub(crate) kind: Canary,
    pub(crate) slots: Vec<usize>,
    pub(crate) included: Vec<bool>,
    /// The parameter along which each gradient lies.
    pub(crate) coordinates: Vec<usize>,
    /// The canary of each example, if it is one.
    of_example: Vec<Option<usize>>,
}

impl Canaries {
    /// Draws `count` canaries in place of random examples.
    pub(crate) fn draw(
        kind: Canary,
        count: usize,
        examples: usize,
        parameters: usize,
        random: &mut Random,
    ) -> Result<Self, InvalidParameter> {
        between("canaries", count, 1, examples, "examples")?;
        if kind == Canary::Gradient {
            between("canaries", count, 1, parameters, "parameters, of which each has one of its own")?;
        }
        let slots = distinct(count, examples, random);
        let coordinates =
            if kind == Canary::Gradient { distinct(count, parameters, random) } else { Vec::new() };
        let mut of_example = vec![None; examples];
        slots.iter().enumerate().for_each(|(i, &slot)| of_example[slot] = Some(i));
        let included = slots.iter().map(|_| random.sign() > 0.0).collect();
        Ok(Self { kind, slots, included, coordinates, of_example })
    }

    /// The data set with the canaries in place.
    pub(crate) fn planted(
        &self,
        dataset: &Dataset,
        random: &mut Random,
    ) -> Result<Dataset, InvalidParameter> {
        let mut planted = dataset.clone();
        if self.kind == Canary::Input && dataset.classes > 1 {
            let mut labels = dataset.train.labels().to_vec();
            for &slot in &self.slots {
                let shift = 1 + random.below(dataset.classes - 1);
                labels[slot] = ((labels[slot] as usize + shift) % dataset.classes) as u32;
            }
            let features = (0..labels.len()).flat_map(|i| dataset.train.features(i)).copied().collect();
            planted.train = Examples::new(features, labels, dataset.train.features_each())?;
        }
        Ok(planted)
    }
}

/// `count` different numbers below `bound`.
fn distinct(count: usize, bound: usize, random: &mut Random) -> Vec<usize> {
    let mut all: Vec<usize> = (0..bound).collect();
    for i in 0..count {
        all.swap(i, i + random.below(bound - i));
    }
    all.truncate(count);
    all
}

/// A model whose training contains canaries: included canaries add their gradients, excluded ones nothing.
#[derive(Debug)]
pub(crate) struct Canaried<'a> {
    pub(crate) inner: &'a dyn Learner,
    pub(crate) canaries: &'a Canaries,
    /// The last step's sum of clipped gradients of all other examples, at each canary's parameter: known to
    /// the auditor in addition to the release.
    others: Mutex<Vec<f64>>,
}

impl<'a> Canaried<'a> {
    pub(crate) fn new(inner: &'a dyn Learner, canaries: &'a Canaries) -> Self {
        Self { inner, canaries, others: Mutex::default() }
    }

    /// Takes the last step's contributions of all other examples at the canaries' parameters.
    pub(crate) fn take_others(&self) -> Vec<f64> {
        std::mem::take(&mut self.others.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn is_included(&self, example: usize) -> bool {
        self.canaries.of_example[example].is_none_or(|canary| self.canaries.included[canary])
    }

    fn gradients(&self, batch: &[usize], clip_norm: f64, sum: &mut GradientSum) {
        let others = self.canaries.coordinates.iter().map(|&at| sum.gradient[at]).collect();
        *self.others.lock().unwrap_or_else(PoisonError::into_inner) = others;
        for canary in batch.iter().filter_map(|&example| self.canaries.of_example[example]) {
            if self.canaries.included[canary] {
                sum.gradient[self.canaries.coordinates[canary]] += clip_norm;
            }
        }
    }
}

impl Learner for Canaried<'_> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn parameters(&self) -> usize {
        self.inner.parameters()
    }

    fn identity(&self) -> String {
        format!("{} with canaries", self.inner.identity())
    }

    fn check(&self, parameters: &[f32], examples: &Examples) -> Result<(), Error> {
        self.inner.check(parameters, examples)
    }

    fn contribution_sum(
        &self,
        contribution: Contribution,
        parameters: &[f32],
        examples: &Examples,
        batch: &[usize],
        clip_norm: f64,
    ) -> Result<GradientSum, Error> {
        let trained: Vec<usize> = match self.canaries.kind {
            Canary::Gradient => {
                batch.iter().copied().filter(|&example| self.canaries.of_example[example].is_none()).collect()
            }
            Canary::Input => batch.iter().copied().filter(|&example| self.is_included(example)).collect(),
        };
        let mut sum = self.inner.contribution_sum(contribution, parameters, examples, &trained, clip_norm)?;
        if self.canaries.kind == Canary::Gradient {
            self.gradients(batch, clip_norm, &mut sum);
        }
        Ok(sum)
    }

    fn plain_sum(
        &self,
        parameters: &[f32],
        examples: &Examples,
        batch: &[usize],
    ) -> Result<GradientSum, Error> {
        self.inner.plain_sum(parameters, examples, batch)
    }

    fn sum_margin(&self, examples: usize) -> Result<f64, Error> {
        self.inner.sum_margin(examples)
    }

    fn evaluate(&self, parameters: &[f32], examples: &Examples) -> Result<Evaluation, Error> {
        self.inner.evaluate(parameters, examples)
    }
}
