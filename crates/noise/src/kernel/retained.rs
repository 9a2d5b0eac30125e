//! Sums of seeds on a grid: every seed that a later step uses is retained as what rounding made of it.

use std::sync::Arc;

use super::ring::accumulate_four;
use super::sum::accumulate;
use crate::flat_recursion::{Position, RetainedRow};
use crate::number::Real;
use crate::simd::Isa;

/// Which seeds each step reads, and where they lie.
pub struct Retained {
    rows: Arc<[RetainedRow]>,
}

impl Retained {
    pub(super) fn new(rows: &Arc<[RetainedRow]>) -> Self {
        Self { rows: rows.clone() }
    }

    /// The weight of this step's seed noise.
    pub(super) fn weight<T: Real>(&self, position: &Position) -> T {
        T::rounded(self.rows[position.local].fresh)
    }

    /// out = the weighted sum of the past, oldest first.
    pub(super) fn recall<T: Real>(&self, isa: Isa, position: &Position, past: &[T], out: &mut [T]) {
        let len = out.len();
        let of = |slot: usize| &past[slot * len..][..len];
        out.fill(T::default());
        let (fours, rest) = self.rows[position.local].past.as_chunks::<4>();
        for four in fours {
            let (weights, seeds) = (four.map(|(_, w)| T::rounded(w)), four.map(|(slot, _)| of(slot)));
            accumulate_four(isa, weights, seeds, out);
        }
        for &(slot, weight) in rest {
            accumulate(isa, T::rounded(weight), of(slot), out);
        }
    }

    /// Keeps this step's seed.
    pub(super) fn keep<T: Real>(&self, position: &Position, seed: &[T], past: &mut [T]) {
        if let Some(slot) = self.rows[position.local].retained_at {
            past[slot * seed.len()..][..seed.len()].copy_from_slice(seed);
        }
    }
}
