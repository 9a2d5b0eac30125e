//! Sums of seeds on a grid: every seed that a later step uses is retained with its rounding.

use std::ops::Range;
use std::sync::Arc;

use super::sum::{ROWS, accumulate_rows, add_weighted};
use crate::flat_recursion::{Position, RetainedRow};
use crate::normal::TILE;
use crate::number::Real;
use crate::simd::Isa;

/// Seeds that are read at a time, once for each [`ROWS`] steps: from the second on, caches hold them.
const SEEDS: usize = 32;

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
        T::rounded(self.row(position).fresh)
    }

    /// Adds to each share, `len` numbers of a tile, the weighted sum of the seeds that all of these steps read before any others, oldest
    /// first; how many these are.
    pub(super) fn recall_shared(
        &self,
        isa: Isa,
        positions: &[Position],
        past: &[f64],
        (shares, len): (&mut [f64], usize),
    ) -> usize {
        let count = self.shared(positions);
        for first in (0..count).step_by(SEEDS) {
            let seeds = first..count.min(first + SEEDS);
            let mut x = [&[][..]; SEEDS];
            for (x, k) in x.iter_mut().zip(seeds.clone()) {
                *x = &past[self.row(&positions[0]).past[k].0 * len..][..len];
            }
            for (positions, shares) in positions.chunks(ROWS).zip(shares.chunks_mut(ROWS * TILE)) {
                self.add_seeds(isa, seeds.clone(), positions, &x, (shares, len));
            }
        }
        count
    }

    /// out += the weighted sum of the past but its first `known` seeds, oldest first.
    pub(super) fn recall(&self, isa: Isa, position: &Position, known: usize, past: &[f64], out: &mut [f64]) {
        let (terms, len) = (&self.row(position).past, out.len());
        let (w, x) = (|k: usize| terms[k].1, |k: usize| &past[terms[k].0 * len..][..len]);
        add_weighted(isa, known..terms.len(), w, x, out);
    }

    /// Keeps this step's seed.
    pub(super) fn keep(&self, position: &Position, seed: &[f64], past: &mut [f64]) {
        if let Some(slot) = self.row(position).retained_at {
            past[slot * seed.len()..][..seed.len()].copy_from_slice(seed);
        }
    }

    /// How many seeds all of these consecutive steps read before any others.
    fn shared(&self, positions: &[Position]) -> usize {
        let all_of_the_first = self.row(&positions[0]).past.len();
        let steps = positions[..positions.len() - 1].iter();
        steps.map(|position| self.row(position).shared).fold(all_of_the_first, usize::min)
    }

    /// Adds these seeds, which `x` holds, to the shares of at most [`ROWS`] steps.
    fn add_seeds(
        &self,
        isa: Isa,
        seeds: Range<usize>,
        positions: &[Position],
        x: &[&[f64]; SEEDS],
        (shares, len): (&mut [f64], usize),
    ) {
        if let Some(positions) = positions.first_chunk::<ROWS>() {
            let rows = positions.each_ref().map(|position| self.row(position));
            let mut w = [[0.0; ROWS]; SEEDS];
            for (w, k) in w.iter_mut().zip(seeds.clone()) {
                *w = rows.map(|row| row.past[k].1);
            }
            let mut shares = shares.chunks_mut(TILE);
            let mut shares =
                std::array::from_fn(|_| &mut shares.next().expect("a share for each step")[..len]);
            return accumulate_rows(isa, &w[..seeds.len()], &x[..seeds.len()], &mut shares);
        }
        for (position, share) in positions.iter().zip(shares.chunks_mut(TILE)) {
            let past = &self.row(position).past;
            add_weighted(isa, 0..seeds.len(), |i| past[seeds.start + i].1, |i| x[i], &mut share[..len]);
        }
    }

    fn row(&self, position: &Position) -> &RetainedRow {
        &self.rows[position.local]
    }
}
