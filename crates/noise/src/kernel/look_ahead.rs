//! Memory for rows made ahead, separate from the past.

use std::ops::Range;

use crate::flat_recursion::Position;
use crate::number::Number;
use crate::simd::{Isa, Transfer};

/// The rows of a tile of `len` coordinates that later steps return; empty if rows are not stored separately
/// from the past.
pub(crate) struct LookAhead<'a, R> {
    pub(crate) rows: &'a mut [R],
    pub(crate) len: usize,
    /// The first step whose row is stored.
    pub(crate) first: usize,
    /// Whether the rows will have left the caches before they are read; if so, they are written directly to
    /// main memory.
    pub(crate) beyond_cache: bool,
}

/// Returns the slot of the row of `step`.
pub(crate) fn slot(step: usize, slots: usize) -> usize {
    step % slots
}

impl<R: Number> LookAhead<'_, R> {
    /// The memory of the row of `step`, or `None` if it is not stored.
    pub(super) fn range(&self, step: usize) -> Option<Range<usize>> {
        let slots = self.rows.len() / self.len;
        (slots > 0 && step >= self.first).then(|| {
            let start = slot(step, slots) * self.len;
            start..start + self.len
        })
    }

    /// Whether the rows of all these steps are stored.
    pub(super) fn wants(&self, steps: &[Position]) -> bool {
        steps.iter().all(|position| self.range(position.step).is_some())
    }

    /// Puts the memory of the rows of these steps into `found`.
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
