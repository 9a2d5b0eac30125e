//! One affine layer's per-example gradients: their lengths, and their weighted sum.

use candle_core::{Result as TensorResult, Tensor};

use super::kernel::{Weighted, norms_squared};
use crate::model::Captured;
use crate::product::product;
use crate::tensor::with_values;

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
pub(super) enum LayerGradients {
    /// One row of X (examples x inputs) and of G (examples x outputs) per example: dW_i = G_i^T X_i, db_i =
    /// G_i.
    OneEach { x: Tensor, g: Tensor },
    /// Explicit gradients: dW_i (examples x outputs * inputs) and db_i (examples x outputs).
    Made { weights: Tensor, biases: Vec<f32>, outputs: usize },
}

impl LayerGradients {
    pub(super) fn new(layer: &Captured) -> TensorResult<Self> {
        let g = layer.output_gradient();
        let (examples, positions, outputs) = g.dims3()?;
        if positions == 1 {
            return Ok(Self::OneEach { x: layer.input.flatten_to(1)?, g: g.flatten_to(1)? });
        }
        let weights = product(&g.transpose(1, 2)?, &layer.input)?.flatten_from(1)?;
        let biases = with_values(g, |g| {
            let mut biases = vec![0.0; examples * outputs];
            let each = g.chunks_exact(positions * outputs);
            for (g, bias) in each.zip(biases.chunks_exact_mut(outputs)) {
                for row in g.chunks_exact(outputs) {
                    bias.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
                }
            }
            biases
        })?;
        Ok(Self::Made { weights, biases, outputs })
    }

    /// Adds each example's |dW_i|^2 + |db_i|^2.
    pub(super) fn add_norms_squared(&self, sums: &mut [f64]) -> TensorResult<()> {
        let squares = |tensor: &Tensor| with_values(tensor, |values| norms_squared(values, sums.len()));
        let norms: Vec<f64> = match self {
            // |g|^2 |x|^2 + |g|^2 for the bias.
            Self::OneEach { x, g } => {
                squares(x)?.iter().zip(squares(g)?).map(|(x, g)| g * (x + 1.0)).collect()
            }
            Self::Made { weights, biases, .. } => {
                let biases = norms_squared(biases, sums.len());
                squares(weights)?.iter().zip(biases).map(|(weight, bias)| weight + bias).collect()
            }
        };
        sums.iter_mut().zip(norms).for_each(|(sum, norm)| *sum += norm);
        Ok(())
    }

    /// Appends the sum over i of factors\[i\] dW_i, then of factors\[i\] db_i.
    pub(super) fn append_sum(
        &self,
        sum: &mut Vec<f64>,
        Factors { factors, kept }: &Factors,
    ) -> TensorResult<()> {
        let start = sum.len();
        match self {
            Self::OneEach { x, g } => {
                let ((_, inputs), (_, outputs)) = (x.dims2()?, g.dims2()?);
                sum.resize(start + (inputs + 1) * outputs, 0.0);
                let (weight, bias) = sum[start..].split_at_mut(inputs * outputs);
                let scaled: Vec<f64> = with_values(g, |g| {
                    let rows = g.chunks_exact(outputs).zip(*factors);
                    rows.flat_map(|(row, factor)| row.iter().map(move |&g| factor * f64::from(g))).collect()
                })?;
                for &i in kept {
                    bias.iter_mut().zip(&scaled[i * outputs..]).for_each(|(sum, g)| *sum += g);
                }
                with_values(x, |rows| Weighted { rows, factors: &scaled, outputs, kept }.add_to(weight))
            }
            Self::Made { weights, biases, outputs } => {
                let (_, each) = weights.dims2()?;
                sum.resize(start + each + outputs, 0.0);
                let (weight, bias) = sum[start..].split_at_mut(each);
                Weighted { rows: biases, factors, outputs: 1, kept }.add_to(bias);
                with_values(weights, |rows| Weighted { rows, factors, outputs: 1, kept }.add_to(weight))
            }
        }
    }
}
