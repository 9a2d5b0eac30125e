//! The past of all tiles as it is saved: without reading what no step wrote.
//!
//! Memory that is read before it is written is brought in twice, and the second time interrupts every thread: where a
//! training saved its stream now and then, half of the time of sums of many seeds went there.

use crate::shard::Tiles;

/// For each tile, its past vectors one after the other, of which those from `written` on mean nothing yet.
#[derive(Clone, Copy)]
pub(crate) struct Past<'a, T> {
    pub(crate) numbers: &'a [T],
    pub(crate) tiles: &'a Tiles,
    pub(crate) vectors: usize,
    pub(crate) written: usize,
}

impl<'a, T> Past<'a, T> {
    /// Numbers that were written, and how many after them that were not, in the order of memory.
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
