use std::fmt::Debug;

use antinoise_input::InvalidParameter;

use crate::Error;
use crate::clip::{Clipping, GradientSum};
use crate::data::Examples;
use crate::model::Evaluation;

/// A model under private training.
///
/// **Privacy rests on [`clipped_sum`](Self::clipped_sum) and [`sum_margin`](Self::sum_margin), and on the
/// same methods for users**: an implementation of this trait states a theorem about floating-point sums
/// (`docs/training.md`). To train a model of your own, implement `candle::ExampleModel` instead, and let
/// `candle::CandleModel` clip and sum.
pub trait PrivateModel: Debug + Sync {
    /// The name in reports.
    fn name(&self) -> &str;

    /// Length of the parameter vector.
    fn parameters(&self) -> usize;

    /// The number of parameters of each layer, in the order of the parameter vector: clipping by layer clips
    /// layers separately.
    fn layers(&self) -> Vec<usize>;

    /// The identity in checkpoints: everything that determines gradients, apart from parameters and examples.
    fn identity(&self) -> String;

    /// Checks that parameters and examples fit this model. A trainer calls this once, before the first step.
    ///
    /// # Errors
    /// Names the part that does not fit.
    fn check(&self, parameters: &[f32], examples: &Examples) -> Result<(), Error>;

    /// The sum over `batch` of the clipped gradients, in double precision, as
    /// [`clip::clipped_sum`](crate::clip::clipped_sum): an example whose gradient is not finite adds nothing,
    /// and neither threads nor the other examples of the batch change an example's term. Its length is at
    /// most `clipping.norm`, and in each group at most that group's norm.
    ///
    /// # Errors
    /// If the clip norm is out of range, the groups are of other layers, parameters or examples do not fit,
    /// or an index is out of range or occurs twice in the batch.
    fn clipped_sum(
        &self,
        parameters: &[f32],
        examples: &Examples,
        batch: &[usize],
        clipping: Clipping,
    ) -> Result<GradientSum, Error>;

    /// The sum over `users`, each a list of examples, of the clipped mean gradients of their examples, as
    /// [`clip::clipped_user_sum`](crate::clip::clipped_user_sum): the claims of [`clipped_sum`] hold for
    /// users in place of examples.
    ///
    /// [`clipped_sum`]: Self::clipped_sum
    ///
    /// # Errors
    /// As [`clipped_sum`], and if a user has no example. A model without such sums refuses all users.
    fn clipped_user_sum(
        &self,
        _parameters: &[f32],
        _examples: &Examples,
        _users: &[&[usize]],
        _clipping: Clipping,
    ) -> Result<GradientSum, Error> {
        Err(no_users(self.name()))
    }

    /// The sum over `batch` of the unclipped gradients: no privacy, for comparison.
    ///
    /// # Errors
    /// As [`clipped_sum`](Self::clipped_sum).
    fn plain_sum(
        &self,
        parameters: &[f32],
        examples: &Examples,
        batch: &[usize],
    ) -> Result<GradientSum, Error>;

    /// Bound on the effect of rounding on the sensitivity of a sum of at most `examples` examples, in clip
    /// norms, rounded up: see [`clip::sum_margin`](crate::clip::sum_margin).
    ///
    /// # Errors
    /// If no bound is known.
    fn sum_margin(&self, examples: usize) -> Result<f64, Error>;

    /// As [`sum_margin`](Self::sum_margin), for sums of at most `users` users: see
    /// [`clip::user_sum_margin`](crate::clip::user_sum_margin).
    ///
    /// # Errors
    /// If no bound is known, as for a model without [`clipped_user_sum`](Self::clipped_user_sum).
    fn user_sum_margin(&self, _users: usize) -> Result<f64, Error> {
        Err(no_users(self.name()))
    }

    /// Accuracy and loss of `parameters` on `examples`; NaN without examples.
    ///
    /// # Errors
    /// If parameters or examples do not fit this model, or an operation fails.
    fn evaluate(&self, parameters: &[f32], examples: &Examples) -> Result<Evaluation, Error>;
}

/// The error of a model that clips no gradients of users.
fn no_users(model: &str) -> Error {
    let must_be = "one whose gradients can be clipped user by user";
    InvalidParameter::new("model", format!("{model:?}"), must_be).into()
}
