//! The past of all tiles, written to a checkpoint without reading memory that no step has written.
//!
//! If zeroed memory is read before it is written, the operating system maps a page twice, and the second
//! mapping interrupts every thread. For sums of many seeds, a run that saved its stream now and then spent
//! half of its time on that.

use crate::shard::Tiles;

/// The past: for each tile, its past vectors one after the other. Vectors from `written` on are still zeros.
#[derive(Clone, Copy)]
pub(crate) struct Past<'a, T> {
    pub(crate) numbers: &'a [T],
    pub(crate) tiles: &'a Tiles,
    pub(crate) vectors: usize,
    pub(crate) written: usize,
}

impl<'a, T> Past<'a, T> {
    /// Pieces in the order of memory: the numbers that were written, and how many unwritten ones follow.
    pub(crate) fn pieces(self) -> impl Iterator<Item = (&'a [T], usize)> {
        let Self { numbers, tiles, vectors, written } = self;
        let whole = (written == vectors).then_some((numbers, 0));
        let of_tiles = if whole.is_some() { 0 } else { tiles.count };
        let of_tile = move |number| {
            let tile = tiles.get(number);
            let of_tile = &numbers[tile.output * vectors..][..tile.len * vectors];
            (&of_tile[..tile.len * written], tile.len * (vectors - written))
        };
        whole.into_iter().chain((0..of_tiles).map(of_tile))
    }
}
