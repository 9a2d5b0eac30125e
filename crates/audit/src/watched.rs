//! A learner whose sums an audit observes, and may replace.

use std::fmt::Debug;

use antinoise_train::Error;
use antinoise_train::clip::{Clipping, GradientSum};
use antinoise_train::data::Examples;
use antinoise_train::learner::Learner;
use antinoise_train::model::{Evaluation, Model};

/// Replacement of the sums of a training by an audit.
pub(crate) trait Watch: Debug + Sync {
    /// Part of the identity in checkpoints, after the learner's own.
    const IDENTITY: &'static str;

    /// The sum that the training is given for `batch`; `sum_of` makes the learner's own sum of any batch.
    fn sum(
        &self,
        batch: &[usize],
        clipping: Clipping,
        sum_of: &dyn Fn(&[usize]) -> Result<GradientSum, Error>,
    ) -> Result<GradientSum, Error>;
}

/// A learner, owned or not.
pub(crate) trait Inner: Debug + Sync {
    fn learner(&self) -> &dyn Learner;
}

impl Inner for Model {
    fn learner(&self) -> &dyn Learner {
        self
    }
}

impl Inner for &dyn Learner {
    fn learner(&self) -> &dyn Learner {
        *self
    }
}

/// The learner `inner` with its clipped sums as `watch` gives them.
#[derive(Debug)]
pub(crate) struct Watched<L, W> {
    pub(crate) inner: L,
    pub(crate) watch: W,
}

impl<L: Inner, W: Watch> Learner for Watched<L, W> {
    fn name(&self) -> &str {
        self.inner.learner().name()
    }

    fn parameters(&self) -> usize {
        self.inner.learner().parameters()
    }

    fn layers(&self) -> Vec<usize> {
        self.inner.learner().layers()
    }

    fn identity(&self) -> String {
        format!("{}{}", self.inner.learner().identity(), W::IDENTITY)
    }

    fn check(&self, parameters: &[f32], examples: &Examples) -> Result<(), Error> {
        self.inner.learner().check(parameters, examples)
    }

    fn clipped_sum(
        &self,
        parameters: &[f32],
        examples: &Examples,
        batch: &[usize],
        clipping: Clipping,
    ) -> Result<GradientSum, Error> {
        self.watch.sum(batch, clipping, &|batch| {
            self.inner.learner().clipped_sum(parameters, examples, batch, clipping)
        })
    }

    fn plain_sum(
        &self,
        parameters: &[f32],
        examples: &Examples,
        batch: &[usize],
    ) -> Result<GradientSum, Error> {
        self.inner.learner().plain_sum(parameters, examples, batch)
    }

    fn sum_margin(&self, examples: usize) -> Result<f64, Error> {
        self.inner.learner().sum_margin(examples)
    }

    fn evaluate(&self, parameters: &[f32], examples: &Examples) -> Result<Evaluation, Error> {
        self.inner.learner().evaluate(parameters, examples)
    }
}
