//! One forward and one backward pass of a chunk, and the sum of its examples' gradients, each clipped
//! separately.

use super::factor::Clip;
use super::layer::{Factors, LayerGradients};
use super::sum::{GradientSum, check_batch, pairwise_sum};
use crate::Error;
use crate::data::Examples;
use crate::model::{Captured, Model};

/// The inputs of a sum, apart from its batch.
#[derive(Clone, Copy)]
pub(super) struct Pass<'a> {
    pub(super) model: &'a Model,
    pub(super) parameters: &'a [f32],
    pub(super) examples: &'a Examples,
    pub(super) clip: Option<Clip<'a>>,
}

impl Pass<'_> {
    pub(super) fn sum(self, batch: &[usize]) -> Result<GradientSum, Error> {
        self.model.check(self.parameters, self.examples)?;
        check_batch(batch, self.examples.len())?;
        let chunks: Vec<&[usize]> = batch.chunks(self.model.chunk()).collect();
        let sum =
            pairwise_sum(&chunks, self.parameters.len(), &|chunk| Ok::<_, Error>(self.chunk_sum(chunk)))?;
        Ok(match self.clip {
            Some(clip) => clip.unscale(sum),
            None => sum,
        })
    }

    /// The sum of one chunk, in the units of [`Clip`].
    fn chunk_sum(self, chunk: &[usize]) -> GradientSum {
        let (losses, captured) = self.captured(chunk);
        let layers: Vec<LayerGradients> = captured.iter().map(LayerGradients::new).collect();
        self.factored_sum(&layers, &losses, |_| false)
    }

    /// The sum of the gradients of a chunk's examples except those that are `left_out`, each clipped
    /// separately.
    pub(super) fn factored_sum(
        self,
        layers: &[LayerGradients],
        losses: &[f64],
        left_out: impl Fn(usize) -> bool,
    ) -> GradientSum {
        let (size, count) = (self.model.chunk(), losses.len());
        let (mut factors, mut clipped) = (vec![1.0; size], 0);
        if let Some(clip) = self.clip {
            factors = norms_squared(layers, clip, size);
            // Examples that are left out do not count as clipped.
            zero(&mut factors, size, &left_out);
            clipped = clip.factors(&mut factors, size, count);
        }
        zero(&mut factors, size, |i| i >= count || left_out(i));
        let groups: Vec<Factors> = factors.chunks_exact(size).map(Factors::new).collect();
        let of_layer = |layer| &groups[self.clip.map_or(0, |clip| clip.group_of(layer))];
        let mut gradient = Vec::with_capacity(self.parameters.len());
        for (i, layer) in layers.iter().enumerate() {
            layer.append_sum(&mut gradient, of_layer(i));
        }
        let kept = losses.iter().enumerate().filter(|(i, _)| !left_out(*i));
        GradientSum { gradient, loss: kept.map(|(_, loss)| loss).sum(), clipped }
    }

    /// As [`capture`](Self::capture), with losses in double precision and without those of the padding.
    pub(super) fn captured(self, chunk: &[usize]) -> (Vec<f64>, Vec<Captured>) {
        let (losses, captured) = self.capture(chunk);
        (losses[..chunk.len()].iter().map(|&loss| f64::from(loss)).collect(), captured)
    }

    /// Each example's loss, and each layer's X and G, from one forward and one backward pass. A chunk that is
    /// not full is padded with its first example: products of another shape may round in another order.
    pub(super) fn capture(self, chunk: &[usize]) -> (Vec<f32>, Vec<Captured>) {
        let mut full = chunk.to_vec();
        full.resize(self.model.chunk(), chunk[0]);
        self.model.capture(self.parameters, self.examples, &full)
    }
}

/// The squared lengths of a chunk's gradients: one number per example, group after group.
pub(super) fn norms_squared(layers: &[LayerGradients], clip: Clip, chunk: usize) -> Vec<f64> {
    let mut squares = vec![0.0; clip.groups() * chunk];
    for (i, layer) in layers.iter().enumerate() {
        layer.add_norms_squared(&mut squares[clip.group_of(i) * chunk..][..chunk]);
    }
    squares
}

/// Sets the numbers of the examples that are `left_out` to 0; `numbers` has one number per example for each
/// group, `size` numbers a group.
fn zero(numbers: &mut [f64], size: usize, left_out: impl Fn(usize) -> bool) {
    for (i, number) in numbers.iter_mut().enumerate() {
        if left_out(i % size) {
            *number = 0.0;
        }
    }
}
