//! Passes over a chunk of examples: through the layers forward, and back with the gradient of the losses.

use std::mem;

use super::network::Model;
use super::softmax::cross_entropy;
use super::stage::Stage;
use crate::data::Examples;

/// One affine layer of one pass: the factors of its per-example weight gradients G_i^T X_i.
pub(crate) struct Captured {
    /// X: examples x positions x inputs.
    pub(crate) input: Vec<f32>,
    /// G: examples x positions x outputs.
    pub(crate) output_gradient: Vec<f32>,
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
    /// Rows of an example: the windows of a convolution; 1 for a linear layer.
    pub(crate) positions: usize,
}

impl Model {
    /// Logits (examples x classes) of the examples at `batch`.
    pub(crate) fn logits(&self, parameters: &[f32], examples: &Examples, batch: &[usize]) -> Vec<f32> {
        let features = features(examples, batch);
        self.stages.iter().fold(features, |x, stage| {
            let unfolded = stage.unfold(&x);
            stage.forward(parameters, unfolded.as_deref().unwrap_or(&x))
        })
    }

    /// Each example's cross entropy in nats, and each affine layer's X and G, from one pass forward and one
    /// backward.
    ///
    /// Only gradients of images are computed on the way back, and none below the first affine layer, where
    /// nothing depends on parameters.
    pub(crate) fn capture(
        &self,
        parameters: &[f32],
        examples: &Examples,
        batch: &[usize],
    ) -> (Vec<f32>, Vec<Captured>) {
        let mut images = vec![features(examples, batch)];
        let mut unfolded = Vec::with_capacity(self.stages.len());
        for (i, stage) in self.stages.iter().enumerate() {
            unfolded.push(stage.unfold(&images[i]));
            images.push(stage.forward(parameters, unfolded[i].as_deref().unwrap_or(&images[i])));
        }
        let mut gradient = images[self.stages.len()].clone();
        let each = gradient.chunks_exact_mut(self.classes).zip(batch);
        let losses = each.map(|(logits, &i)| cross_entropy(logits, examples.labels()[i] as usize)).collect();

        let is_affine = |stage: &Stage| matches!(stage, Stage::Affine { .. });
        let first = self.stages.iter().position(is_affine).unwrap_or(self.stages.len());
        let mut output_gradients: Vec<Vec<f32>> = Vec::new();
        for (i, stage) in self.stages.iter().enumerate().skip(first).rev() {
            let below = match i > first {
                true => stage.backward(parameters, &images[i], &images[i + 1], &mut gradient),
                false => Vec::new(),
            };
            let of_outputs = mem::replace(&mut gradient, below);
            if is_affine(stage) {
                output_gradients.push(of_outputs);
            }
        }
        let affine = self.stages.iter().zip(unfolded).zip(images).filter_map(|((stage, unfolded), image)| {
            let Stage::Affine { windows, inputs, outputs, .. } = *stage else { return None };
            let positions = windows.map_or(1, |windows| windows.positions());
            Some((unfolded.unwrap_or(image), inputs, outputs, positions))
        });
        let layers = affine.zip(output_gradients.into_iter().rev());
        let layers = layers.map(|((input, inputs, outputs, positions), output_gradient)| Captured {
            input,
            output_gradient,
            inputs,
            outputs,
            positions,
        });
        (losses, layers.collect())
    }
}

/// The features of the examples at `batch`, one after the other.
fn features(examples: &Examples, batch: &[usize]) -> Vec<f32> {
    batch.iter().flat_map(|&index| examples.features(index)).copied().collect()
}
