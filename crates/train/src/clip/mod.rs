//! Sums of clipped per-example gradients, from one pass per chunk instead of one per example.
//!
//! One forward and one backward pass of a whole chunk of examples leave, for each affine layer y = x W^T + b,
//! the inputs X_i (positions x inputs) and the gradients G_i (positions x outputs) of the summed loss with
//! respect to y. They determine example i's gradient:
//!
//! ```text
//! dW_i = G_i^T X_i          db_i = G_i^T 1
//! |g_i|^2 = sum over layers of |dW_i|_F^2 + |db_i|^2
//! ```
//!
//! A linear layer has one position, so |dW_i|^2 = |X_i|^2 |G_i|^2, and the clipped sum is one product of the
//! scaled G with X: no per-example gradient is ever computed. A convolution has many positions; its dW_i are
//! small and are computed by one batched product. (Norms from the products X_i X_i^T and G_i G_i^T would cost
//! more at these sizes, and their cancellation can understate a norm.)
//!
//! # Rounding
//! X_i, G_i and a convolution's dW_i are computed in single precision from example i only: every product has
//! the shape of a full chunk, so that neither an example's position in the chunk nor the other examples
//! change a bit of them. Lengths, factors and sums are computed from these numbers in double precision, where
//! an example's contribution and its effect on the rounding of others are bounded: see [`sum_margin`] and
//! `docs/training.md`.
//!
//! # Source
//! I. Goodfellow, Efficient Per-Example Gradient Computations, arXiv:1510.01799; Z. Bu et al., Differentially
//! Private Optimization on Large Model at Small Cost, arXiv:2210.00038.

mod factor;
mod groups;
mod kernel;
mod layer;
mod pass;
mod sum;
mod sum_margin;
#[cfg(test)]
mod tests;
mod users;
mod vectors;

use crate::Error;
use crate::data::Examples;
use crate::model::Model;
use factor::Clip;
pub use groups::{Clipping, Groups};
pub use kernel::{add_weighted, squared_lengths};
use pass::Pass;
pub use sum::GradientSum;
pub use sum_margin::{sum_margin, user_sum_margin};
#[cfg(feature = "candle")]
pub(crate) use users::check_users;
pub use users::clipped_user_sum;
pub use vectors::sum_clipped_vectors;
#[cfg(test)]
use {layer::LayerGradients, pass::norms_squared};

/// The sum over `batch` of g_i min(1, clip_norm / |g_i|), for gradients g_i of the examples' cross entropies.
/// `clipping` is a clip norm, or one with [`Groups`] of layers that are clipped apart.
///
/// No example changes the sum by more than clip_norm (1 + [`sum_margin`]); an example whose gradient is not
/// finite adds nothing. A batch may be empty. The result does not depend on the number of threads.
///
/// ```
/// use antinoise_train::{clip, data, model::Model};
/// let digits = data::digits();
/// let model = Model::logistic(digits.shape, digits.classes)?;
/// let start = vec![0.0; model.parameters()];
/// let sum = clip::clipped_sum(&model, &start, &digits.train, &[3, 1, 4], 0.5)?;
/// let norm = sum.gradient.iter().map(|x| x * x).sum::<f64>().sqrt();
/// assert!(norm <= 1.5 && sum.clipped == 3);
/// # Ok::<(), antinoise_train::Error>(())
/// ```
///
/// # Errors
/// If the clip norm is below 2^-1000 or not finite, the groups are of other layers than the model's,
/// parameters or examples do not fit the model, or an index of `batch` is out of range or occurs twice.
pub fn clipped_sum<'a>(
    model: &Model,
    parameters: &[f32],
    examples: &Examples,
    batch: &[usize],
    clipping: impl Into<Clipping<'a>>,
) -> Result<GradientSum, Error> {
    let clipping = clipping.into();
    if let Some(groups) = clipping.groups {
        groups.check(&model.layers())?;
    }
    let clip = Some(Clip::new(clipping)?);
    Pass { model, parameters, examples, clip }.sum(batch)
}

/// The sum over `batch` of the unclipped gradients: no privacy, for comparison.
///
/// ```
/// use antinoise_train::{clip, data, model::Model};
/// let digits = data::digits();
/// let model = Model::logistic(digits.shape, digits.classes)?;
/// let start = vec![0.0; model.parameters()];
/// let sum = clip::plain_sum(&model, &start, &digits.train, &[])?;
/// assert!(sum.gradient == vec![0.0; 650] && sum.loss == 0.0);
/// # Ok::<(), antinoise_train::Error>(())
/// ```
///
/// # Errors
/// As [`clipped_sum`].
pub fn plain_sum(
    model: &Model,
    parameters: &[f32],
    examples: &Examples,
    batch: &[usize],
) -> Result<GradientSum, Error> {
    Pass { model, parameters, examples, clip: None }.sum(batch)
}
