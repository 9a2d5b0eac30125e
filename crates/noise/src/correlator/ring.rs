//! Banded C (autoregressive) and banded C^-1 (moving average): O(bands) a coordinate, bands - 1 past vectors.

use crate::gaussian::Real;
use crate::recipe::{Keeps, Place, Weights};
use crate::simd::{Isa, per_isa};

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
        out.fill(T::default());
        let mut lag = weights.len() - 1;
        while lag >= 4 {
            let w = [weights[lag], weights[lag - 1], weights[lag - 2], weights[lag - 3]];
            accumulate_four(isa, w, [of(lag), of(lag - 1), of(lag - 2), of(lag - 3)], out);
            lag -= 4;
        }
        for lag in (1..=lag).rev() {
            super::sum::accumulate(isa, weights[lag], of(lag), out);
        }
    }

    /// Puts this step's vector where the oldest one was.
    pub(super) fn keep(&self, place: &Place, vector: &[T], past: &mut [T]) {
        if self.slots > 0 {
            past[place.step % self.slots * vector.len()..][..vector.len()].copy_from_slice(vector);
        }
    }
}

per_isa! {
    /// out += w_0 x_0 + w_1 x_1 + w_2 x_2 + w_3 x_3, in this order.
    pub(super) fn accumulate_four[T: Real](w: [T; 4], x: [&[T]; 4], out: &mut [T]) = accumulate_four_body
}

#[inline(always)]
fn accumulate_four_body<T: Real>(w: [T; 4], x: [&[T]; 4], out: &mut [T]) {
    let [a, b, c, d] = x.map(|x| &x[..out.len()]);
    for j in 0..out.len() {
        let y = w[0].times_plus(a[j], out[j]);
        let y = w[1].times_plus(b[j], y);
        let y = w[2].times_plus(c[j], y);
        out[j] = w[3].times_plus(d[j], y);
    }
}
