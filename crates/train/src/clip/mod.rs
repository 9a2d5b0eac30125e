//! Sums of clipped per-example gradients without a pass for each example.
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
//! A linear layer has one position, so |dW_i|^2 = |X_i|^2 |G_i|^2 and the clipped sum is one product of the
//! scaled G with X: no per-example gradient is ever made. A convolution has many positions; its dW_i are
//! small and are made by one batched product. (The other way to their norm, the products of X_i X_i^T and
//! G_i G_i^T, costs more at these sizes, and its cancellation can understate a norm.)
//!
//! # Rounding
//! X_i, G_i and a convolution's dW_i are made in single precision, of example i alone: every product has the shape
//! of a full chunk, so that neither an example's place nor the others of its chunk change a bit of them. Lengths,
//! factors and sums are made of these numbers in double precision, where what an example adds and what rounding
//! makes of the others are bounded: see [`sum_margin`] and `docs/training.md`.
//!
//! # Source
//! I. Goodfellow, Efficient Per-Example Gradient Computations, arXiv:1510.01799; Z. Bu et al., Differentially
//! Private Optimization on Large Model at Small Cost, arXiv:2210.00038.

mod kernel;
mod layer;
mod margin;
#[cfg(test)]
mod tests;

use antinoise_input::{InvalidParameter, positive};
use candle_core::Result as TensorResult;

use crate::Error;
use crate::data::Examples;
use crate::model::{Captured, Model, Record};
use layer::{Factors, LayerGradients};
pub use margin::sum_margin;

/// The sum of a batch's gradients, clipped or not.
#[derive(Debug, Clone, PartialEq)]
pub struct GradientSum {
    /// One number a parameter. Rounded to single precision it would lose its bound on sensitivity: it is to be
    /// released as it is.
    pub gradient: Vec<f64>,
    /// Sum of the examples' losses, in nats.
    pub loss: f64,
    /// Number of examples whose gradient was longer than the clip norm.
    pub clipped: usize,
}

/// The sum over `batch` of g_i min(1, clip_norm / |g_i|), for gradients g_i of the examples' cross entropies.
///
/// No example moves the sum by more than clip_norm (1 + [`sum_margin`]): one whose gradient is not finite adds
/// nothing. A batch may be empty. The result does not depend on the number of threads.
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
/// When `clip_norm` is below 2^-1000 or not finite, parameters or examples are not the model's, or an index of
/// `batch` is beyond the examples or there twice.
pub fn clipped_sum(
    model: &Model,
    parameters: &[f32],
    examples: &Examples,
    batch: &[usize],
    clip_norm: f64,
) -> Result<GradientSum, Error> {
    Pass { model, parameters, examples, clip: Some(Clip::new(clip_norm)?) }.sum(batch)
}

/// The sum over `batch` of the gradients as they are: no privacy, for comparison.
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

/// Keeps what rounding adds to lengths and factors from lengthening a clipped gradient beyond the clip norm.
const MARGIN: f64 = 1.0 - 1.0 / (1 << 20) as f64;

/// A clip norm, and the power of two in whose units sums are made: no factor or product then leaves the range of
/// double precision, whatever numbers of single precision the gradients hold.
#[derive(Debug, Clone, Copy)]
struct Clip {
    norm: f64,
    unit: f64,
}

impl Clip {
    fn new(norm: f64) -> Result<Self, InvalidParameter> {
        if positive("clip_norm", norm)? < 2f64.powi(-1000) {
            return Err(InvalidParameter::new("clip_norm", norm, "at least 2^-1000"));
        }
        // No gradient in single precision is as long as 2^300.
        Ok(Self { norm, unit: 2f64.powi((norm.log2().floor() as i32).clamp(-1000, 300)) })
    }

    /// What a gradient of length `norm` is multiplied by; 0 when the length is not a finite number.
    fn factor(self, norm: f64) -> f64 {
        let limit = self.norm * MARGIN;
        match norm {
            norm if norm <= limit => 1.0 / self.unit,
            norm if norm.is_finite() => limit / self.unit / norm,
            _ => 0.0,
        }
    }
}

/// What a sum is a function of, apart from its batch.
#[derive(Clone, Copy)]
struct Pass<'a> {
    model: &'a Model,
    parameters: &'a [f32],
    examples: &'a Examples,
    clip: Option<Clip>,
}

impl Pass<'_> {
    fn sum(self, batch: &[usize]) -> Result<GradientSum, Error> {
        self.model.check(self.parameters, self.examples)?;
        check_batch(batch, self.examples.len())?;
        let mut sum = self.chunks_sum(batch)?;
        if let Some(Clip { unit, .. }) = self.clip {
            sum.gradient.iter_mut().for_each(|x| *x *= unit);
        }
        Ok(sum)
    }

    /// The sum of chunk sums, joined in halves: the order of additions follows from the length of the batch alone,
    /// a number takes part in few of them, and few sums are in memory at a time.
    fn chunks_sum(self, batch: &[usize]) -> Result<GradientSum, Error> {
        let chunk = self.model.chunk();
        if batch.len() <= chunk {
            return self.chunk_sum(batch);
        }
        let (left, right) = batch.split_at(batch.len().div_ceil(chunk).div_ceil(2) * chunk);
        let (left, right) = rayon::join(|| self.chunks_sum(left), || self.chunks_sum(right));
        let (mut sum, right) = (left?, right?);
        sum.gradient.iter_mut().zip(&right.gradient).for_each(|(sum, x)| *sum += x);
        sum.loss += right.loss;
        sum.clipped += right.clipped;
        Ok(sum)
    }

    /// The sum of one chunk, in units of the clip norm's power of two.
    fn chunk_sum(self, chunk: &[usize]) -> Result<GradientSum, Error> {
        let count = chunk.len();
        if count == 0 {
            return Ok(GradientSum { gradient: vec![0.0; self.parameters.len()], loss: 0.0, clipped: 0 });
        }
        let (losses, layers) = self.capture(chunk)?;
        let layers = layers.iter().map(LayerGradients::new).collect::<TensorResult<Vec<_>>>()?;
        let mut factors = vec![0.0; self.model.chunk()];
        let mut clipped = 0;
        match self.clip {
            Some(clip) => {
                let norms = norms(&layers, self.model.chunk())?;
                factors
                    .iter_mut()
                    .zip(&norms[..count])
                    .for_each(|(factor, &norm)| *factor = clip.factor(norm));
                clipped = count - norms[..count].iter().filter(|norm| **norm <= clip.norm).count();
            }
            None => factors[..count].fill(1.0),
        }
        let factors = Factors::new(factors);
        let mut gradient = Vec::with_capacity(self.parameters.len());
        layers.iter().try_for_each(|layer| layer.append_sum(&mut gradient, &factors))?;
        let loss = losses[..count].iter().map(|&loss| f64::from(loss)).sum();
        Ok(GradientSum { gradient, loss, clipped })
    }

    /// Each example's loss, and each layer's X and G, from one forward and one backward pass. A chunk that is not
    /// full is filled up with its first example: products of another shape may round in another order.
    fn capture(self, chunk: &[usize]) -> Result<(Vec<f32>, Vec<Captured>), Error> {
        let mut full = chunk.to_vec();
        full.resize(self.model.chunk(), chunk[0]);
        let mut record = Record::new()?;
        let logits = self.model.logits(self.parameters, self.examples, &full, Some(&mut record))?;
        let losses = Model::losses(&logits, self.examples, &full)?;
        losses.sum_all()?.backward()?;
        Ok((losses.flatten_all()?.to_vec1()?, record.layers))
    }
}

/// The lengths of a chunk's gradients.
fn norms(layers: &[LayerGradients], chunk: usize) -> TensorResult<Vec<f64>> {
    let mut squares = vec![0.0; chunk];
    layers.iter().try_for_each(|layer| layer.add_norms_squared(&mut squares))?;
    Ok(squares.into_iter().map(f64::sqrt).collect())
}

/// An example that is in a batch twice would move the sum by twice the clip norm.
fn check_batch(batch: &[usize], examples: usize) -> Result<(), InvalidParameter> {
    let mut sorted = batch.to_vec();
    sorted.sort_unstable();
    if let Some(index) = sorted.last().filter(|&&index| index >= examples) {
        let must_be = format!("below {examples}, the number of examples");
        return Err(InvalidParameter::new("example of a batch", index, must_be));
    }
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => {
            let got = format!("{} twice", pair[0]);
            Err(InvalidParameter::new("example of a batch", got, "different from every other one"))
        }
        None => Ok(()),
    }
}
