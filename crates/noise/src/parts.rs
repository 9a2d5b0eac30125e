//! Iteration over the tiles of a shard on all threads, each tile with its part of the memory.

use std::ops::Range;

use crate::kernel::Mode;
use crate::kernel::ScratchOf;
use crate::shard::{Tile, Tiles};
use crate::simd::fence;
use crate::slices::Pieces;

/// The memory and the output of consecutive tiles, and the past of the tiles that follow.
pub(crate) struct Parts<'a, M: Mode, O> {
    pub(crate) past: &'a mut [M::Number],
    pub(crate) ahead: &'a mut [M::Row],
    pub(crate) out: O,
    pub(crate) following: &'a [M::Number],
}

impl<'a, M: Mode, O: Pieces> Parts<'a, M, O> {
    pub(crate) fn new(past: &'a mut [M::Number], ahead: &'a mut [M::Row], out: O) -> Self {
        Self { past, ahead, out, following: &[] }
    }

    /// Splits off the parts of the first `outputs` outputs. `stored` is the number of stored numbers per
    /// output in the past and in rows made ahead.
    fn take(&mut self, outputs: usize, stored: (usize, usize)) -> Self {
        let (past, ahead);
        (past, self.past) = std::mem::take(&mut self.past).split_at_mut(outputs * stored.0);
        (ahead, self.ahead) = std::mem::take(&mut self.ahead).split_at_mut(outputs * stored.1);
        Self::new(past, ahead, self.out.take(outputs))
    }
}

/// The work on a tile.
pub(crate) type Work<'a, M, O> = dyn Fn(&mut ScratchOf<M>, Tile<'_>, Parts<'_, M, O>) + Sync + 'a;

/// Calls `work` on the tiles with these `numbers`, on one thread for each scratch memory; `stored` is as in
/// [`Parts::take`].
pub(crate) fn each_tile<M: Mode, O: Pieces + Send>(
    scratch: &mut [ScratchOf<M>],
    tiles: &Tiles,
    numbers: Range<usize>,
    mut parts: Parts<'_, M, O>,
    stored: (usize, usize),
    work: &Work<'_, M, O>,
) {
    if scratch.len() == 1 || numbers.len() <= 1 {
        for number in numbers {
            let tile = tiles.get(number);
            let this = parts.take(tile.len, stored);
            work(&mut scratch[0], tile, Parts { following: &*parts.past, ..this });
        }
        return fence();
    }
    let (left, right) = scratch.split_at_mut(scratch.len() / 2);
    let middle = numbers.start + numbers.len() * left.len() / (left.len() + right.len());
    let outputs = tiles.get(middle).output - tiles.get(numbers.start).output;
    let left_parts = parts.take(outputs, stored);
    rayon::join(
        || each_tile(left, tiles, numbers.start..middle, left_parts, stored, work),
        || each_tile(right, tiles, middle..numbers.end, parts, stored, work),
    );
}
