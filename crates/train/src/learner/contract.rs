use std::fmt::Debug;

use crate::Error;
use crate::clip::{Contribution, GradientSum};
use crate::data::Examples;
use crate::model::Evaluation;

/// A model under private training.
///
/// **Privacy rests on [`contribution_sum`](Self::contribution_sum) and [`sum_margin`](Self::sum_margin)**: whoever implements this states
/// a theorem about floating-point sums (`docs/training.md`). To train a model of your own, implement
/// [`Network`](super::Network) instead, and let [`Own`](super::Own) clip and sum.
pub trait Learner: Debug + Sync {
    /// What it is called in a report.
    fn name(&self) -> &str;

    /// Length of the parameter vector.
    fn parameters(&self) -> usize;

    /// What a checkpoint knows it by: all that its gradients are a function of beside parameters and examples.
    fn identity(&self) -> String;

    /// Refuses parameters and examples that are not this model's. A trainer asks once, before the first step.
    ///
    /// # Errors
    /// It names what does not fit.
    fn check(&self, parameters: &[f32], examples: &Examples) -> Result<(), Error>;

    /// The sum over `batch` of what `contribution` makes of the examples' gradients, in double precision, as
    /// [`clip::contribution_sum`](crate::clip::contribution_sum): an example whose gradient is not finite adds nothing, and neither
    /// threads nor the others of its batch change what it adds.
    ///
    /// # Errors
    /// When the clip norm or a number of `contribution` is out of range, parameters or examples do not fit, or an index is beyond the examples or twice in
    /// the batch.
    fn contribution_sum(
        &self,
        contribution: Contribution,
        parameters: &[f32],
        examples: &Examples,
        batch: &[usize],
        clip_norm: f64,
    ) -> Result<GradientSum, Error>;

    /// The sum over `batch` of g_i min(1, clip_norm / |g_i|): that of [`Contribution::Gradient`].
    ///
    /// # Errors
    /// As [`contribution_sum`](Self::contribution_sum).
    fn clipped_sum(
        &self,
        parameters: &[f32],
        examples: &Examples,
        batch: &[usize],
        clip_norm: f64,
    ) -> Result<GradientSum, Error> {
        self.contribution_sum(Contribution::Gradient, parameters, examples, batch, clip_norm)
    }

    /// The sum over `batch` of the gradients as they are: no privacy, for comparison.
    ///
    /// # Errors
    /// As [`clipped_sum`](Self::clipped_sum).
    fn plain_sum(
        &self,
        parameters: &[f32],
        examples: &Examples,
        batch: &[usize],
    ) -> Result<GradientSum, Error>;

    /// What rounding adds to the sensitivity of such a sum of at most `examples` examples, in clip norms, rounded up: see [`clip::sum_margin`](crate::clip::sum_margin).
    ///
    /// # Errors
    /// When there is no such bound.
    fn sum_margin(&self, examples: usize) -> Result<f64, Error>;

    /// How well `parameters` do on `examples`; NaN of no examples at all.
    ///
    /// # Errors
    /// When parameters or examples are not this model's, or an operation fails.
    fn evaluate(&self, parameters: &[f32], examples: &Examples) -> Result<Evaluation, Error>;
}
