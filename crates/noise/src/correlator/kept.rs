//! Sums of seeds on a grid: every seed that a later step uses is kept as what rounding made of it.

use std::sync::Arc;

use super::ring::accumulate_four;
use super::sum::accumulate;
use crate::gaussian::Real;
use crate::kept::KeptRow;
use crate::recipe::Place;
use crate::simd::Isa;

pub(crate) struct Kept {
    rows: Arc<[KeptRow]>,
}

impl Kept {
    pub(super) fn new(rows: &Arc<[KeptRow]>) -> Self {
        Self { rows: rows.clone() }
    }

    /// The weight of this step's seed noise.
    pub(super) fn weight<T: Real>(&self, place: &Place) -> T {
        T::rounded(self.rows[place.local].fresh)
    }

    /// out = the weighted sum of the past, oldest first.
    pub(super) fn recall<T: Real>(&self, isa: Isa, place: &Place, past: &[T], out: &mut [T]) {
        let len = out.len();
        let of = |slot: usize| &past[slot * len..][..len];
        out.fill(T::default());
        let (fours, rest) = self.rows[place.local].past.as_chunks::<4>();
        for four in fours {
            let (weights, seeds) = (four.map(|(_, w)| T::rounded(w)), four.map(|(slot, _)| of(slot)));
            accumulate_four(isa, weights, seeds, out);
        }
        for &(slot, weight) in rest {
            accumulate(isa, T::rounded(weight), of(slot), out);
        }
    }

    /// Keeps this step's seed.
    pub(super) fn keep<T: Real>(&self, place: &Place, seed: &[T], past: &mut [T]) {
        if let Some(slot) = self.rows[place.local].kept_at {
            past[slot * seed.len()..][..seed.len()].copy_from_slice(seed);
        }
    }
}
