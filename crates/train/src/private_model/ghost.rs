//! Private training of this crate's models, whose per-example gradients are never computed explicitly.

use super::contract::PrivateModel;
use crate::Error;
use crate::clip::{self, Clipping, GradientSum};
use crate::data::Examples;
use crate::model::{Evaluation, Model};

impl PrivateModel for Model {
    fn name(&self) -> &str {
        self.name()
    }

    fn parameters(&self) -> usize {
        self.parameters()
    }

    fn layers(&self) -> Vec<usize> {
        self.layers()
    }

    fn identity(&self) -> String {
        format!("{self:?}")
    }

    fn check(&self, parameters: &[f32], examples: &Examples) -> Result<(), Error> {
        Ok(self.check(parameters, examples)?)
    }

    fn clipped_sum(
        &self,
        parameters: &[f32],
        examples: &Examples,
        batch: &[usize],
        clipping: Clipping,
    ) -> Result<GradientSum, Error> {
        clip::clipped_sum(self, parameters, examples, batch, clipping)
    }

    fn clipped_user_sum(
        &self,
        parameters: &[f32],
        examples: &Examples,
        users: &[&[usize]],
        clipping: Clipping,
    ) -> Result<GradientSum, Error> {
        clip::clipped_user_sum(self, parameters, examples, users, clipping)
    }

    fn plain_sum(
        &self,
        parameters: &[f32],
        examples: &Examples,
        batch: &[usize],
    ) -> Result<GradientSum, Error> {
        clip::plain_sum(self, parameters, examples, batch)
    }

    fn sum_margin(&self, examples: usize) -> Result<f64, Error> {
        Ok(clip::sum_margin(examples, self.chunk())?)
    }

    fn user_sum_margin(&self, users: usize) -> Result<f64, Error> {
        Ok(clip::user_sum_margin(users, self.chunk())?)
    }

    fn evaluate(&self, parameters: &[f32], examples: &Examples) -> Result<Evaluation, Error> {
        self.evaluate(parameters, examples)
    }
}
