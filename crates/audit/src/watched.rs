//! A model whose clipped sums an audit observes and may replace.

use std::fmt::Debug;

use antinoise_train::Error;
use antinoise_train::clip::{Clipping, GradientSum};
use antinoise_train::data::Examples;
use antinoise_train::model::{Evaluation, Model};
use antinoise_train::private_model::PrivateModel;

/// An audit that observes the sums of a training, and may replace them.
pub(crate) trait Watch: Debug + Sync {
    /// A suffix of the model's identity in checkpoints.
    const IDENTITY: &'static str;

    /// Returns the sum that the training gets for `batch`; `sum_of` computes the model's own sum of any
    /// batch.
    fn sum(
        &self,
        batch: &[usize],
        clipping: Clipping,
        sum_of: &dyn Fn(&[usize]) -> Result<GradientSum, Error>,
    ) -> Result<GradientSum, Error>;
}

/// A model, owned or not.
pub(crate) trait Inner: Debug + Sync {
    fn model(&self) -> &dyn PrivateModel;
}

impl Inner for Model {
    fn model(&self) -> &dyn PrivateModel {
        self
    }
}

impl Inner for &dyn PrivateModel {
    fn model(&self) -> &dyn PrivateModel {
        *self
    }
}

/// The model `inner` with the clipped sums that `watch` returns.
#[derive(Debug)]
pub(crate) struct Watched<L, W> {
    pub(crate) inner: L,
    pub(crate) watch: W,
}

impl<L: Inner, W: Watch> PrivateModel for Watched<L, W> {
    fn name(&self) -> &str {
        self.inner.model().name()
    }

    fn parameters(&self) -> usize {
        self.inner.model().parameters()
    }

    fn layers(&self) -> Vec<usize> {
        self.inner.model().layers()
    }

    fn identity(&self) -> String {
        format!("{}{}", self.inner.model().identity(), W::IDENTITY)
    }

    fn check(&self, parameters: &[f32], examples: &Examples) -> Result<(), Error> {
        self.inner.model().check(parameters, examples)
    }

    fn clipped_sum(
        &self,
        parameters: &[f32],
        examples: &Examples,
        batch: &[usize],
        clipping: Clipping,
    ) -> Result<GradientSum, Error> {
        self.watch.sum(batch, clipping, &|batch| {
            self.inner.model().clipped_sum(parameters, examples, batch, clipping)
        })
    }

    fn plain_sum(
        &self,
        parameters: &[f32],
        examples: &Examples,
        batch: &[usize],
    ) -> Result<GradientSum, Error> {
        self.inner.model().plain_sum(parameters, examples, batch)
    }

    fn sum_margin(&self, examples: usize) -> Result<f64, Error> {
        self.inner.model().sum_margin(examples)
    }

    fn evaluate(&self, parameters: &[f32], examples: &Examples) -> Result<Evaluation, Error> {
        self.inner.model().evaluate(parameters, examples)
    }
}
