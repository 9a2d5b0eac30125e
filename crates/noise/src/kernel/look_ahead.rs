//! Rows made ahead, where they are stored apart from the past.

use std::ops::Range;

use crate::flat_recursion::Position;
use crate::number::Number;
use crate::simd::{Isa, Transfer};

/// The rows of a tile of `len` coordinates that are handed out later; none where they are not stored apart.
pub struct LookAhead<'a, R> {
    pub(crate) rows: &'a mut [R],
    pub(crate) len: usize,
    /// Steps before this one are not wanted.
    pub(crate) first: usize,
    /// They are read again when the caches hold other things.
    pub(crate) beyond_cache: bool,
}

/// Where the row of `step` is stored.
pub(crate) fn slot(step: usize, slots: usize) -> usize {
    step % slots
}

impl<R: Number> LookAhead<'_, R> {
    /// Where the row of `step` is stored, if it is wanted.
    pub(super) fn range(&self, step: usize) -> Option<Range<usize>> {
        let slots = self.rows.len() / self.len;
        (slots > 0 && step >= self.first).then(|| {
            let start = slot(step, slots) * self.len;
            start..start + self.len
        })
    }

    /// True when the rows of all these steps are stored.
    pub(super) fn wants(&self, steps: &[Position]) -> bool {
        steps.iter().all(|position| self.range(position.step).is_some())
    }

    /// Finds the rows of these steps.
    pub(super) fn find<'b>(&'b mut self, steps: &[Position], found: &mut [&'b mut [R]]) {
        let slots = self.rows.len() / self.len;
        for (at, row) in self.rows.chunks_exact_mut(self.len).enumerate() {
            if let Some(k) = steps.iter().position(|position| slot(position.step, slots) == at) {
                found[k] = row;
            }
        }
    }

    /// Stores a row.
    pub(super) fn store(&mut self, isa: Isa, range: Range<usize>, row: &[R]) {
        let stored = &mut self.rows[range];
        if self.beyond_cache {
            Transfer::copying(row, stored).finish(isa);
        } else {
            stored.copy_from_slice(row);
        }
    }
}
