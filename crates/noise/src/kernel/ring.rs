//! Banded C (autoregressive) and banded C^-1 (moving average): O(bands) a coordinate, bands - 1 past vectors.

use super::sum::accumulate;
use crate::flat_recursion::{History, Position, Weights};
use crate::number::Real;
use crate::simd::{Isa, per_isa};

/// The past in a ring buffer, and its weights.
pub struct Ring<T> {
    bands: usize,
    /// One row, or one a step.
    weights: Vec<T>,
    pub(super) history: History,
    /// Vector t of the past is at slot t mod slots.
    pub(super) slots: usize,
}

impl<T: Real> Ring<T> {
    pub(super) fn new(weights: &Weights, history: History) -> Self {
        let bands = weights.bands();
        let all = match weights {
            Weights::SameEveryStep(row) => row,
            Weights::ByStep { rows, .. } => rows,
        };
        Self { bands, weights: all.iter().map(|&w| T::rounded(w)).collect(), history, slots: bands - 1 }
    }

    fn row(&self, position: &Position) -> &[T] {
        let row = if self.weights.len() == self.bands { 0 } else { position.local * self.bands };
        &self.weights[row..][..self.bands.min(position.local + 1)]
    }

    /// The weight of this step's seed noise.
    pub(super) fn weight(&self, position: &Position) -> T {
        self.row(position)[0]
    }

    /// out = the weighted sum of the past, oldest first.
    pub(super) fn recall(&self, isa: Isa, position: &Position, past: &[T], out: &mut [T]) {
        let (weights, len) = (self.row(position), out.len());
        let of = |lag: usize| &past[(position.step + self.slots - lag) % self.slots * len..][..len];
        out.fill(T::default());
        let mut lag = weights.len() - 1;
        while lag >= 4 {
            let w = [weights[lag], weights[lag - 1], weights[lag - 2], weights[lag - 3]];
            accumulate_four(isa, w, [of(lag), of(lag - 1), of(lag - 2), of(lag - 3)], out);
            lag -= 4;
        }
        for lag in (1..=lag).rev() {
            accumulate(isa, weights[lag], of(lag), out);
        }
    }

    /// Puts this step's vector where the oldest one was.
    pub(super) fn keep(&self, position: &Position, vector: &[T], past: &mut [T]) {
        if self.slots > 0 {
            past[position.step % self.slots * vector.len()..][..vector.len()].copy_from_slice(vector);
        }
    }
}

per_isa! {
    /// out += w_0 x_0 + w_1 x_1 + w_2 x_2 + w_3 x_3, in this order.
    pub(super) fn accumulate_four[T: Real](w: [T; 4], x: [&[T]; 4], out: &mut [T]) {
        let [a, b, c, d] = x.map(|x| &x[..out.len()]);
        for j in 0..out.len() {
            let y = w[0].times_plus(a[j], out[j]);
            let y = w[1].times_plus(b[j], y);
            let y = w[2].times_plus(c[j], y);
            out[j] = w[3].times_plus(d[j], y);
        }
    }
}
