//! Banded C (autoregressive) and banded C^-1 (moving average): O(bands) a coordinate, bands - 1 past vectors.

use crate::gaussian::Real;
use crate::recipe::{Keeps, Place, Weights};
use crate::simd::Isa;

pub(crate) struct Ring<T> {
    bands: usize,
    /// One row, or one a step.
    weights: Vec<T>,
    pub(super) keeps: Keeps,
    /// Vector t of the past is at slot t mod slots.
    pub(super) slots: usize,
}

impl<T: Real> Ring<T> {
    pub(super) fn new(weights: &Weights, keeps: Keeps) -> Self {
        let bands = weights.bands();
        let all = match weights {
            Weights::SameEveryStep(row) => row,
            Weights::ByStep { rows, .. } => rows,
        };
        Self { bands, weights: all.iter().map(|&w| T::rounded(w)).collect(), keeps, slots: bands - 1 }
    }

    fn row(&self, place: &Place) -> &[T] {
        let row = if self.weights.len() == self.bands { 0 } else { place.local * self.bands };
        &self.weights[row..][..self.bands.min(place.local + 1)]
    }

    /// The weight of this step's seed noise.
    pub(super) fn weight(&self, place: &Place) -> T {
        self.row(place)[0]
    }

    /// out = the weighted sum of the past, oldest first.
    pub(super) fn recall(&self, isa: Isa, place: &Place, past: &[T], out: &mut [T]) {
        let (weights, len) = (self.row(place), out.len());
        let of = |lag: usize| &past[(place.step + self.slots - lag) % self.slots * len..][..len];
        let oldest = weights.len() - 1;
        super::sum::weighted(isa, oldest, |i| (weights[oldest - i], of(oldest - i)), out);
    }

    /// Puts this step's vector where the oldest one was.
    pub(super) fn keep(&self, place: &Place, vector: &[T], past: &mut [T]) {
        if self.slots > 0 {
            past[place.step % self.slots * vector.len()..][..vector.len()].copy_from_slice(vector);
        }
    }
}
