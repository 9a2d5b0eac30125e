//! Sums of seeds on a grid: every seed that a later step uses is retained with its rounding.

use std::sync::Arc;

use super::sum::weighted_sum;
use crate::flat_recursion::{Position, RetainedRow};
use crate::number::Real;
use crate::simd::Isa;

/// Which seeds each step reads, and their slots.
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

    /// out = the weighted sum of the past at the coordinates from `from` on of a tile of `len`, oldest first.
    pub(super) fn recall<T: Real>(
        &self,
        isa: Isa,
        position: &Position,
        past: &[T],
        (from, len): (usize, usize),
        out: &mut [T],
    ) {
        let (terms, count) = (&self.rows[position.local].past, out.len());
        let x = |k: usize| &past[terms[k].0 * len + from..][..count];
        weighted_sum(isa, terms.len(), |k| T::rounded(terms[k].1), x, out);
    }

    /// Keeps this step's seed at the same coordinates.
    pub(super) fn keep<T: Real>(
        &self,
        position: &Position,
        seed: &[T],
        (from, len): (usize, usize),
        past: &mut [T],
    ) {
        if let Some(slot) = self.rows[position.local].retained_at {
            past[slot * len + from..][..seed.len()].copy_from_slice(seed);
        }
    }
}
