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
//! # Source
//! I. Goodfellow, Efficient Per-Example Gradient Computations, arXiv:1510.01799; Z. Bu et al., Differentially
//! Private Optimization on Large Model at Small Cost, arXiv:2210.00038.

use antinoise_input::{InvalidParameter, positive};
use candle_core::{Device, Result as TensorResult, Tensor};
use rayon::prelude::*;

use crate::Error;
use crate::data::Examples;
use crate::model::{Captured, Model, Record};
use crate::tensor::with_values;

/// The sum of a batch's gradients, clipped or not.
#[derive(Debug, Clone, PartialEq)]
pub struct GradientSum {
    /// One number a parameter.
    pub gradient: Vec<f32>,
    /// Sum of the examples' losses, in nats.
    pub loss: f64,
    /// Number of examples whose gradient was longer than the clip norm.
    pub clipped: usize,
}

/// Keeps what rounding adds from lengthening a clipped gradient beyond the clip norm.
const MARGIN: f64 = 1.0 - 1.0 / (1 << 20) as f64;

/// The sum over `batch` of g_i min(1, clip_norm / |g_i|), for gradients g_i of the examples' cross entropies.
///
/// No example moves the sum by more than `clip_norm`: one whose gradient is not finite adds nothing. A batch
/// may be empty. The result does not depend on the number of threads.
///
/// ```
/// use antinoise_train::{clip, data, model::Model};
/// let digits = data::digits();
/// let model = Model::logistic(digits.shape, digits.classes)?;
/// let start = vec![0.0; model.parameters()];
/// let sum = clip::clipped_sum(&model, &start, &digits.train, &[3, 1, 4], 0.5)?;
/// let norm = sum.gradient.iter().map(|x| x * x).sum::<f32>().sqrt();
/// assert!(norm <= 1.5 && sum.clipped == 3);
/// # Ok::<(), antinoise_train::Error>(())
/// ```
///
/// # Errors
/// When `clip_norm` is not positive, parameters or examples are not the model's, or an index of `batch` is
/// beyond the examples or there twice.
pub fn clipped_sum(
    model: &Model,
    parameters: &[f32],
    examples: &Examples,
    batch: &[usize],
    clip_norm: f64,
) -> Result<GradientSum, Error> {
    let clip_norm = positive("clip_norm", clip_norm)?;
    sum(model, parameters, examples, batch, Some(clip_norm))
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
    sum(model, parameters, examples, batch, None)
}

fn sum(
    model: &Model,
    parameters: &[f32],
    examples: &Examples,
    batch: &[usize],
    clip_norm: Option<f64>,
) -> Result<GradientSum, Error> {
    model.check(parameters, examples)?;
    check_batch(batch, examples.len())?;
    let chunks: Result<Vec<GradientSum>, Error> = batch
        .par_chunks(model.chunk())
        .map(|chunk| chunk_sum(model, parameters, examples, chunk, clip_norm))
        .collect();
    let mut total = GradientSum { gradient: vec![0.0; parameters.len()], loss: 0.0, clipped: 0 };
    for chunk in chunks? {
        add(&mut total.gradient, 1.0, &chunk.gradient);
        total.loss += chunk.loss;
        total.clipped += chunk.clipped;
    }
    Ok(total)
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

fn chunk_sum(
    model: &Model,
    parameters: &[f32],
    examples: &Examples,
    chunk: &[usize],
    clip_norm: Option<f64>,
) -> Result<GradientSum, Error> {
    let mut record = Record::new()?;
    let logits = model.logits(parameters, examples, chunk, Some(&mut record))?;
    let loss = Model::loss(&logits, examples, chunk)?;
    loss.backward()?;
    let loss = f64::from(loss.to_scalar::<f32>()?);
    let mut gradient = Vec::with_capacity(parameters.len());
    let Some(clip_norm) = clip_norm else {
        for layer in &record.layers {
            LayerGradients::OneEach(Rows::of(layer)?).add_to(&mut gradient, None)?;
        }
        return Ok(GradientSum { gradient, loss, clipped: 0 });
    };
    let layers = record.layers.iter().map(LayerGradients::new).collect::<TensorResult<Vec<_>>>()?;
    let mut norms_squared = vec![0.0; chunk.len()];
    layers.iter().try_for_each(|layer| layer.add_norms_squared(&mut norms_squared))?;
    let factors: Vec<f32> = norms_squared.iter().map(|&square| factor(square.sqrt(), clip_norm)).collect();
    layers.iter().try_for_each(|layer| layer.add_to(&mut gradient, Some(&factors)))?;
    let within = norms_squared.iter().filter(|square| square.sqrt() <= clip_norm).count();
    Ok(GradientSum { gradient, loss, clipped: chunk.len() - within })
}

/// What a gradient of length `norm` is multiplied by; 0 when the length is not a finite number.
fn factor(norm: f64, clip_norm: f64) -> f32 {
    let limit = clip_norm * MARGIN;
    match norm {
        norm if norm <= limit => 1.0,
        norm if norm.is_finite() => (limit / norm) as f32,
        _ => 0.0,
    }
}

/// Rows of inputs and output gradients: X and G of one layer, examples' positions one below the other.
struct Rows {
    x: Tensor,
    g: Tensor,
}

impl Rows {
    fn of(layer: &Captured) -> TensorResult<Self> {
        Ok(Self { x: layer.input.flatten_to(1)?, g: layer.output_gradient().flatten_to(1)? })
    }
}

/// One layer's per-example gradients, in the cheaper of two forms.
enum LayerGradients {
    /// One row of X and G each.
    OneEach(Rows),
    /// dW_i (examples x outputs * inputs) and db_i (examples x outputs).
    Made { weights: Tensor, biases: Vec<f32>, outputs: usize },
}

impl LayerGradients {
    fn new(layer: &Captured) -> TensorResult<Self> {
        let g = layer.output_gradient();
        let (examples, positions, outputs) = g.dims3()?;
        if positions == 1 {
            return Ok(Self::OneEach(Rows::of(layer)?));
        }
        let weights = g.transpose(1, 2)?.matmul(&layer.input)?.flatten_from(1)?;
        let biases = with_values(g, |g| {
            let mut biases = vec![0.0; examples * outputs];
            let each = g.chunks_exact(positions * outputs);
            for (g, bias) in each.zip(biases.chunks_exact_mut(outputs)) {
                g.chunks_exact(outputs).for_each(|row| add(bias, 1.0, row));
            }
            biases
        })?;
        Ok(Self::Made { weights, biases, outputs })
    }

    /// Adds each example's |dW_i|^2 + |db_i|^2.
    fn add_norms_squared(&self, sums: &mut [f64]) -> TensorResult<()> {
        let squares = |tensor: &Tensor| {
            with_values(tensor, |values| -> Vec<f64> {
                values.chunks_exact(values.len() / sums.len()).map(norm_squared).collect()
            })
        };
        let norms: Vec<f64> = match self {
            // |g|^2 |x|^2 + |g|^2 for the bias.
            Self::OneEach(Rows { x, g }) => {
                squares(x)?.iter().zip(squares(g)?).map(|(x, g)| g * (x + 1.0)).collect()
            }
            Self::Made { weights, biases, outputs } => {
                let biases = biases.chunks_exact(*outputs).map(norm_squared);
                squares(weights)?.iter().zip(biases).map(|(weight, bias)| weight + bias).collect()
            }
        };
        sums.iter_mut().zip(norms).for_each(|(sum, norm)| *sum += norm);
        Ok(())
    }

    /// Appends the sum over i of factors\[i\] times dW_i, then db_i; factors are 1 when not given. Where a
    /// factor is 0 nothing is added, whatever the gradient: 0 times infinity would be NaN.
    fn add_to(&self, gradient: &mut Vec<f32>, factors: Option<&[f32]>) -> TensorResult<()> {
        match self {
            Self::OneEach(Rows { x, g }) => {
                let (x, g) = match factors {
                    Some(factors) => (without_zeros(x, factors)?, scaled(g, factors)?),
                    None => (x.clone(), g.clone()),
                };
                with_values(&g.t()?.matmul(&x)?, |weight| gradient.extend(weight))?;
                let outputs = g.dim(1)?;
                let bias = gradient.len();
                gradient.resize(bias + outputs, 0.0);
                with_values(&g, |g| {
                    g.chunks_exact(outputs).for_each(|row| add(&mut gradient[bias..], 1.0, row))
                })
            }
            Self::Made { weights, biases, outputs } => {
                let factors = factors.unwrap_or(&[]);
                let weight = gradient.len();
                let each = weights.dim(1)?;
                gradient.resize(weight + each + outputs, 0.0);
                let (weight, bias) = gradient[weight..].split_at_mut(each);
                with_values(weights, |weights| add_scaled(weight, factors, weights))?;
                add_scaled(bias, factors, biases);
                Ok(())
            }
        }
    }
}

/// sum += the sum over i of factors\[i\] rows\[i\].
fn add_scaled(sum: &mut [f32], factors: &[f32], rows: &[f32]) {
    for (row, &factor) in rows.chunks_exact(sum.len()).zip(factors).filter(|(_, factor)| **factor != 0.0) {
        add(sum, factor, row);
    }
}

fn add(sum: &mut [f32], factor: f32, x: &[f32]) {
    sum.iter_mut().zip(x).for_each(|(sum, x)| *sum += factor * x);
}

/// Each row times its factor; rows of zeros where the factor is 0.
fn scaled(rows: &Tensor, factors: &[f32]) -> TensorResult<Tensor> {
    let each = rows.dim(1)?;
    let scaled = with_values(rows, |rows| -> Vec<f32> {
        let rows = rows.chunks_exact(each).zip(factors);
        rows.flat_map(|(row, &f)| row.iter().map(move |x| if f == 0.0 { 0.0 } else { f * x })).collect()
    })?;
    Tensor::from_vec(scaled, rows.shape(), &Device::Cpu)
}

/// The rows, but zeros where the factor is 0.
fn without_zeros(rows: &Tensor, factors: &[f32]) -> TensorResult<Tensor> {
    if factors.iter().all(|&factor| factor != 0.0) {
        return Ok(rows.clone());
    }
    let kept: Vec<f32> = factors.iter().map(|&factor| if factor == 0.0 { 0.0 } else { 1.0 }).collect();
    scaled(rows, &kept)
}

/// |x|^2, summed in double precision: no rounding shortens it noticeably.
fn norm_squared(x: &[f32]) -> f64 {
    // Eight sums side by side: the order of additions is fixed, yet they run in vector registers.
    let mut sums = [0f64; 8];
    let chunks = x.chunks_exact(sums.len());
    let rest: f64 = chunks.remainder().iter().map(|&x| f64::from(x).powi(2)).sum();
    for chunk in chunks {
        for (sum, &x) in sums.iter_mut().zip(chunk) {
            *sum += f64::from(x).powi(2);
        }
    }
    rest + sums.iter().sum::<f64>()
}
