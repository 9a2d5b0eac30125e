//! Sums of seeds on a grid: every seed that a later step uses is retained with its rounding.

use std::sync::Arc;

use super::sum::{ROWS, accumulate_rows, add_weighted};
use crate::flat_recursion::{Position, RetainedRow};
use crate::number::Real;
use crate::simd::Isa;

/// Seeds that are read at a time: their pieces stay in the nearest cache.
const SEEDS: usize = 16;

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

    /// shares += the weighted sums of the seeds that all of these steps read before any others, oldest first; how many these are.
    pub(super) fn recall_shared(
        &self,
        isa: Isa,
        positions: &[Position; ROWS],
        past: &[f64],
        shares: &mut [&mut [f64]; ROWS],
    ) -> usize {
        let rows = positions.each_ref().map(|position| &self.rows[position.local]);
        // A seed of one of these steps may take the slot of one that the first of them reads.
        let is_written = |slot: usize| rows.iter().any(|row| row.retained_at == Some(slot));
        let is_shared = |k: &usize| {
            let slot = rows[0].past[*k].0;
            rows.iter().all(|row| row.past.get(*k).is_some_and(|term| term.0 == slot)) && !is_written(slot)
        };
        let count = (0..rows[0].past.len()).take_while(is_shared).count();
        let len = shares[0].len();
        for first in (0..count).step_by(SEEDS) {
            let seeds = first..count.min(first + SEEDS);
            let (mut w, mut x) = ([[0.0; ROWS]; SEEDS], [&[][..]; SEEDS]);
            for (i, k) in seeds.clone().enumerate() {
                w[i] = rows.map(|row| row.past[k].1);
                x[i] = &past[rows[0].past[k].0 * len..][..len];
            }
            accumulate_rows(isa, &w[..seeds.len()], &x[..seeds.len()], shares);
        }
        count
    }

    /// out += the weighted sum of the past but its first `known` seeds, oldest first.
    pub(super) fn recall(&self, isa: Isa, position: &Position, known: usize, past: &[f64], out: &mut [f64]) {
        let (terms, len) = (&self.rows[position.local].past, out.len());
        let (w, x) = (|k: usize| terms[k].1, |k: usize| &past[terms[k].0 * len..][..len]);
        add_weighted(isa, known..terms.len(), w, x, out);
    }

    /// Keeps this step's seed.
    pub(super) fn keep(&self, position: &Position, seed: &[f64], past: &mut [f64]) {
        if let Some(slot) = self.rows[position.local].retained_at {
            past[slot * seed.len()..][..seed.len()].copy_from_slice(seed);
        }
    }
}
