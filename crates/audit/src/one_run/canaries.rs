//! Canaries: examples that an auditor inserts into a training run, and a model for training with them.

use std::sync::{Mutex, PoisonError};

use antinoise_input::{InvalidParameter, between};
use antinoise_train::Error;
use antinoise_train::clip::{Clipping, GradientSum};
use antinoise_train::data::{Dataset, Examples};
use serde::{Deserialize, Serialize};

use crate::random::Random;
use crate::watched::Watch;

/// The kind of canaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Canary {
    /// Gradients, each along a parameter of its own and as long as clipping allows: the clip norm, or the
    /// clip norm of the parameter's group. The auditor sees every noisy sum.
    Gradient,
    /// Examples with a wrong label. The auditor sees the final model.
    Input,
}

/// The canaries of one run. Canary i replaces the example `slots[i]` of the training set, and is included
/// with probability 1/2.
#[derive(Debug)]
pub(crate) struct Canaries {
    pub(crate) kind: Canary,
    pub(crate) slots: Vec<usize>,
    pub(crate) included: Vec<bool>,
    /// The parameter along which each canary's gradient lies.
    pub(crate) coordinates: Vec<usize>,
    /// The index of the canary that replaces each example; `None` for ordinary examples.
    of_example: Vec<Option<usize>>,
}

impl Canaries {
    /// Draws `count` canaries, which replace random examples.
    pub(crate) fn draw(
        kind: Canary,
        count: usize,
        examples: usize,
        parameters: usize,
        random: &mut Random,
    ) -> Result<Self, InvalidParameter> {
        between("canaries", count, 1, examples, "examples")?;
        if kind == Canary::Gradient {
            between("canaries", count, 1, parameters, "parameters, of which each canary needs its own")?;
        }
        let slots = distinct(count, examples, random);
        let coordinates =
            if kind == Canary::Gradient { distinct(count, parameters, random) } else { Vec::new() };
        let mut of_example = vec![None; examples];
        slots.iter().enumerate().for_each(|(i, &slot)| of_example[slot] = Some(i));
        let included = slots.iter().map(|_| random.sign() > 0.0).collect();
        Ok(Self { kind, slots, included, coordinates, of_example })
    }

    /// Returns the data set in which canaries replace their examples.
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

/// Returns `count` different random numbers below `bound`.
fn distinct(count: usize, bound: usize, random: &mut Random) -> Vec<usize> {
    let mut all: Vec<usize> = (0..bound).collect();
    for i in 0..count {
        all.swap(i, i + random.below(bound - i));
    }
    all.truncate(count);
    all
}

/// Adds the gradients of included canaries to the sums of a training; other canaries add nothing.
#[derive(Debug)]
pub(crate) struct Planted<'a> {
    canaries: &'a Canaries,
    /// The entry of each canary's parameter in the last step's sum of clipped gradients of all other
    /// examples, which an auditor knows in addition to the noisy sums.
    others: Mutex<Vec<f64>>,
}

impl<'a> Planted<'a> {
    pub(crate) fn new(canaries: &'a Canaries) -> Self {
        Self { canaries, others: Mutex::default() }
    }

    /// Takes the entries at the canaries' parameters of the last step's sum over all other examples.
    pub(crate) fn take_others(&self) -> Vec<f64> {
        std::mem::take(&mut self.others.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn is_included(&self, example: usize) -> bool {
        self.canaries.of_example[example].is_none_or(|canary| self.canaries.included[canary])
    }

    fn add_gradients(&self, batch: &[usize], clipping: Clipping, sum: &mut GradientSum) {
        let others = self.canaries.coordinates.iter().map(|&at| sum.gradient[at]).collect();
        *self.others.lock().unwrap_or_else(PoisonError::into_inner) = others;
        for canary in batch.iter().filter_map(|&example| self.canaries.of_example[example]) {
            if self.canaries.included[canary] {
                let at = self.canaries.coordinates[canary];
                sum.gradient[at] += clipping.norm_along(at);
            }
        }
    }
}

impl Watch for Planted<'_> {
    const IDENTITY: &'static str = " with canaries";

    fn sum(
        &self,
        batch: &[usize],
        clipping: Clipping,
        sum_of: &dyn Fn(&[usize]) -> Result<GradientSum, Error>,
    ) -> Result<GradientSum, Error> {
        let trains = |example: usize| match self.canaries.kind {
            Canary::Gradient => self.canaries.of_example[example].is_none(),
            Canary::Input => self.is_included(example),
        };
        let trained: Vec<usize> = batch.iter().copied().filter(|&example| trains(example)).collect();
        let mut sum = sum_of(&trained)?;
        if self.canaries.kind == Canary::Gradient {
            self.add_gradients(batch, clipping, &mut sum);
        }
        Ok(sum)
    }
}
