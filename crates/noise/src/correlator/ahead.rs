//! Rows made ahead, where they are kept apart from the past.

use std::ops::Range;

use super::{Aside, Scratch, Step, StepGrid};
use crate::gaussian::TILE;
use crate::recipe::Place;
use crate::simd::Isa;

/// The rows of a tile of `len` coordinates that wait to be handed out; none where they are not kept.
pub(crate) struct Ahead<'a, R> {
    pub(crate) rows: &'a mut [R],
    pub(crate) len: usize,
    /// Steps before this one are not wanted.
    pub(crate) first: usize,
    /// They are read again when the caches hold other things.
    pub(crate) past_caches: bool,
}

/// Where the row of `step` waits.
pub(crate) fn slot(step: usize, slots: usize) -> usize {
    step % slots
}

impl<R: Copy> Ahead<'_, R> {
    /// Where the row of `step` is kept, if it is wanted.
    pub(super) fn range(&self, step: usize) -> Option<Range<usize>> {
        let slots = self.rows.len() / self.len;
        (slots > 0 && step >= self.first).then(|| {
            let start = slot(step, slots) * self.len;
            start..start + self.len
        })
    }

    /// True when the rows of all steps at `places` are kept.
    pub(super) fn wants(&self, places: &[Place]) -> bool {
        places.iter().all(|place| self.range(place.step).is_some())
    }

    /// Finds these rows.
    pub(super) fn find<'b>(&'b mut self, places: &[Place], found: &mut [&'b mut [R]]) {
        let slots = self.rows.len() / self.len;
        for (at, row) in self.rows.chunks_exact_mut(self.len).enumerate() {
            if let Some(k) = places.iter().position(|place| slot(place.step, slots) == at) {
                found[k] = row;
            }
        }
    }

    fn keep(&mut self, isa: Isa, range: Range<usize>, row: &[R]) {
        let kept = &mut self.rows[range];
        if self.past_caches {
            Aside::copying(row, kept).finish(isa);
        } else {
            kept.copy_from_slice(row);
        }
    }
}

impl<T: Step> Scratch<T> {
    /// Keeps the rows of noise, of the steps at `places`; where none are kept apart, the last one is put first.
    pub(crate) fn keep_rows(
        &mut self,
        places: &[Place],
        grid: Option<StepGrid>,
        ahead: &mut Ahead<'_, T::Row>,
    ) {
        if ahead.rows.is_empty() {
            let last = (places.len() - 1) * TILE;
            return self.noise.copy_within(last..last + ahead.len, 0);
        }
        for (place, noise) in places.iter().zip(self.noise.chunks(TILE)) {
            if let Some(range) = ahead.range(place.step) {
                let grid = grid.map(|grid| grid.at(place));
                let row = T::waiting(self.isa, &noise[..ahead.len], grid, &mut self.row[..ahead.len]);
                ahead.keep(self.isa, range, row);
            }
        }
    }
}
