//! Banded C (autoregressive) and banded C^-1 (moving average): O(bands) a coordinate, bands - 1 past vectors.

use super::sum::weighted_sum;
use crate::flat_recursion::{History, Position, Weights};
use crate::number::Real;
use crate::simd::Isa;

/// The past in a ring buffer, and its weights.
pub struct Ring<T> {
    weights: Weights<T>,
    pub(super) history: History,
    /// Vector t of the past is at slot t mod slots.
    pub(super) slots: usize,
}

impl<T: Real> Ring<T> {
    pub(super) fn new(weights: &Weights, history: History) -> Self {
        Self { weights: weights.rounded(), history, slots: weights.bands - 1 }
    }

    /// The weight of this step's seed noise.
    pub(super) fn weight(&self, position: &Position) -> T {
        self.weights.row(position.local)[0]
    }

    /// out = the weighted sum of the past, oldest first.
    pub(super) fn recall(&self, isa: Isa, position: &Position, past: &[T], out: &mut [T]) {
        let (weights, len) = (self.weights.row(position.local), out.len());
        let of = |lag: usize| &past[(position.step + self.slots - lag) % self.slots * len..][..len];
        let most = weights.len() - 1;
        weighted_sum(isa, most, |k| (weights[most - k], of(most - k)), out);
    }

    /// Puts this step's vector where the oldest one was.
    pub(super) fn keep(&self, position: &Position, vector: &[T], past: &mut [T]) {
        if self.slots > 0 {
            past[position.step % self.slots * vector.len()..][..vector.len()].copy_from_slice(vector);
        }
    }
}
