//! One affine layer's per-example gradients: their lengths, and their weighted sum.

use super::kernel::{Weighted, norms_squared};
use crate::matmul::{Matrix, multiply};
use crate::model::Captured;

/// The factor of each example's gradient, and the examples with a factor other than 0.
pub(super) struct Factors<'a> {
    factors: &'a [f64],
    kept: Vec<usize>,
}

impl<'a> Factors<'a> {
    pub(super) fn new(factors: &'a [f64]) -> Self {
        // An example with factor 0 adds nothing, whatever its gradient: 0 times infinity would be NaN.
        let kept = (0..factors.len()).filter(|&i| factors[i] != 0.0).collect();
        Self { factors, kept }
    }
}

/// The per-example gradients of one layer, in the cheaper of two forms.
pub(super) enum LayerGradients<'a> {
    /// One row of X (examples x inputs) and of G (examples x outputs) per example: dW_i = G_i^T X_i, db_i =
    /// G_i.
    Factored { x: &'a [f32], g: &'a [f32], inputs: usize, outputs: usize },
    /// Explicit gradients: dW_i (examples x outputs * inputs) and db_i (examples x outputs).
    Explicit { weights: Vec<f32>, biases: Vec<f32>, inputs: usize, outputs: usize },
}

impl<'a> LayerGradients<'a> {
    pub(super) fn new(layer: &'a Captured) -> Self {
        let Captured { input: x, output_gradient: g, inputs, outputs, positions } = layer;
        let (&inputs, &outputs) = (inputs, outputs);
        if *positions == 1 {
            return Self::Factored { x, g, inputs, outputs };
        }
        let examples = x.len() / (positions * inputs);
        let mut weights = vec![0.0; examples * outputs * inputs];
        let mut biases = vec![0.0; examples * outputs];
        let sums = weights.chunks_exact_mut(outputs * inputs).zip(biases.chunks_exact_mut(outputs));
        let each = x.chunks_exact(positions * inputs).zip(g.chunks_exact(positions * outputs));
        for ((weight, bias), (x, g)) in sums.zip(each) {
            multiply(Matrix::of_rows(g, outputs).transpose(), Matrix::of_rows(x, inputs), weight);
            for row in g.chunks_exact(outputs) {
                bias.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
            }
        }
        Self::Explicit { weights, biases, inputs, outputs }
    }

    /// Adds |dW_i|^2 + |db_i|^2 of each example i to `sums`.
    pub(super) fn add_norms_squared(&self, sums: &mut [f64]) {
        let squares = |values: &[f32]| norms_squared(values, sums.len());
        let norms: Vec<f64> = match self {
            // |g|^2 |x|^2 + |g|^2 for the bias.
            Self::Factored { x, g, .. } => {
                squares(x).iter().zip(squares(g)).map(|(x, g)| g * (x + 1.0)).collect()
            }
            Self::Explicit { weights, biases, .. } => {
                squares(weights).iter().zip(squares(biases)).map(|(weight, bias)| weight + bias).collect()
            }
        };
        sums.iter_mut().zip(norms).for_each(|(sum, norm)| *sum += norm);
    }

    /// Appends the sum over i of factors\[i\] dW_i, then of factors\[i\] db_i.
    pub(super) fn append_sum(&self, sum: &mut Vec<f64>, Factors { factors, kept }: &Factors) {
        let (&inputs, &outputs) = match self {
            Self::Factored { inputs, outputs, .. } | Self::Explicit { inputs, outputs, .. } => {
                (inputs, outputs)
            }
        };
        let start = sum.len();
        sum.resize(start + (inputs + 1) * outputs, 0.0);
        let (weight, bias) = sum[start..].split_at_mut(inputs * outputs);
        match self {
            Self::Factored { x, g, .. } => {
                let rows = g.chunks_exact(outputs).zip(*factors);
                let scaled: Vec<f64> =
                    rows.flat_map(|(row, factor)| row.iter().map(move |&g| factor * f64::from(g))).collect();
                for &i in kept {
                    bias.iter_mut().zip(&scaled[i * outputs..]).for_each(|(sum, g)| *sum += g);
                }
                Weighted { rows: x, stride: inputs, factors: &scaled, outputs, kept }.add_to(weight);
            }
            Self::Explicit { weights, biases, .. } => {
                Weighted { rows: biases, stride: outputs, factors, outputs: 1, kept }.add_to(bias);
                Weighted { rows: weights, stride: inputs * outputs, factors, outputs: 1, kept }
                    .add_to(weight);
            }
        }
    }
}
