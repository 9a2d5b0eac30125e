//! Banded C (autoregressive) and banded C^-1 (moving average): O(bands) a coordinate, bands - 1 past vectors.

use crate::recipe::{Keeps, Place, Weights};
use crate::simd::{Isa, per_isa};

pub(crate) struct Ring {
    bands: usize,
    /// One row, or one a step.
    weights: Vec<f32>,
    pub(super) keeps: Keeps,
    /// Vector t of the past is at slot t mod slots.
    pub(super) slots: usize,
}

impl Ring {
    pub(super) fn new(weights: &Weights, keeps: Keeps) -> Self {
        let bands = weights.bands();
        let all = match weights {
            Weights::SameEveryStep(row) => row,
            Weights::ByStep { rows, .. } => rows,
        };
        Self { bands, weights: all.iter().map(|&w| w as f32).collect(), keeps, slots: bands - 1 }
    }

    pub(super) fn step(&self, isa: Isa, place: &Place, z: &[f32], past: &mut [f32], out: &mut [f32]) {
        let len = z.len();
        let row = if self.weights.len() == self.bands { 0 } else { place.local * self.bands };
        let weights = &self.weights[row..][..self.bands.min(place.local + 1)];
        let slot = |lag: usize| (place.step + self.slots - lag) % self.slots * len;
        out.fill(0.0);
        let mut lag = weights.len() - 1;
        while lag >= 4 {
            let of = |lag: usize| &past[slot(lag)..][..len];
            let w = [weights[lag], weights[lag - 1], weights[lag - 2], weights[lag - 3]];
            accumulate_four(isa, w, [of(lag), of(lag - 1), of(lag - 2), of(lag - 3)], out);
            lag -= 4;
        }
        for lag in (1..=lag).rev() {
            super::sum::accumulate(isa, weights[lag], &past[slot(lag)..][..len], out);
        }
        super::sum::accumulate(isa, weights[0], z, out);
        if self.slots > 0 {
            let kept = if self.keeps == Keeps::Outputs { out } else { z };
            past[slot(0)..][..len].copy_from_slice(kept);
        }
    }
}

per_isa! {
    fn accumulate_four(w: [f32; 4], x: [&[f32]; 4], out: &mut [f32]) = accumulate_four_body
}

#[inline(always)]
fn accumulate_four_body(w: [f32; 4], x: [&[f32]; 4], out: &mut [f32]) {
    let [a, b, c, d] = x.map(|x| &x[..out.len()]);
    for j in 0..out.len() {
        let y = w[0].mul_add(a[j], out[j]);
        let y = w[1].mul_add(b[j], y);
        let y = w[2].mul_add(c[j], y);
        out[j] = w[3].mul_add(d[j], y);
    }
}
