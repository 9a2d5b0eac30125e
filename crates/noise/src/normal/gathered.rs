//! Tiles of several short ranges of coordinates: the keystream blocks that they need, and the positions of
//! their normals.

use super::transform::{FUSED_GROUPS, Normal};
use crate::keystream::GROUP_BLOCKS;

/// Maximum number of blocks that are made together.
pub(super) const MAX_BLOCKS: usize = 512;
/// Number of normals that are copied together. A copy may extend beyond its group; the next copy overwrites
/// the excess.
pub(super) const COPIED: usize = 8;

/// A range of consecutive coordinates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Segment {
    pub(crate) start: u64,
    pub(crate) len: usize,
}

/// The shape of a tile: short ranges, one after another, relative to an origin that is a multiple of
/// [`Gathered::ORIGIN`]. The tiles of regular stripes have few different shapes, at many origins.
#[derive(Debug, PartialEq)]
pub(crate) struct Gathered {
    pub(super) segments: Vec<Segment>,
    pub(super) batches: Vec<Batch>,
}

/// Blocks that are made together, and the copies of their normals.
#[derive(Debug, PartialEq, Default)]
pub(super) struct Batch {
    /// The blocks, padded to a multiple of [`FUSED_GROUPS`] groups.
    pub(super) blocks: Vec<u64>,
    /// (index among the batch's normals, index in the tile) of each copy of up to [`COPIED`] normals.
    pub(super) copies: Vec<(u16, u16)>,
    /// Number of pieces of groups in `blocks`.
    pieces: usize,
}

impl Gathered {
    /// Origins are multiples of this number, at which groups of either precision start.
    pub(crate) const ORIGIN: u64 = 32;

    /// Creates the shape of these ranges, for normals of precision `T`.
    pub(crate) fn new<T: Normal>(segments: Vec<Segment>) -> Self {
        let (mut batches, mut batch) = (Vec::new(), Batch::default());
        // The group of the last coordinate, and the indices of that group's pieces in the batch.
        let (mut last, mut places) = (None, [None; GROUP_BLOCKS]);
        let coordinates = segments.iter().flat_map(|&Segment { start, len }| start..start + len as u64);
        for (output, coordinate) in coordinates.enumerate() {
            let (group, offset) = (coordinate / T::PER_GROUP as u64, coordinate as usize % T::PER_GROUP);
            if last != Some(group) {
                (last, places) = (Some(group), [None; GROUP_BLOCKS]);
                if batch.pieces + T::PIECES > MAX_BLOCKS / GROUP_BLOCKS * T::PIECES {
                    batches.push(std::mem::take(&mut batch).padded());
                }
            }
            // The normals of a group form one run for each of its blocks: first the first run of each piece,
            // then the second of each, and so on.
            let run_len = T::PER_GROUP / GROUP_BLOCKS;
            let (run, within) = (offset / run_len, offset % run_len);
            let piece = run % T::PIECES;
            let place = *places[piece].get_or_insert_with(|| batch.add::<T>(group, piece));
            let run = run - piece + place % T::PIECES;
            batch.copy(place / T::PIECES * T::PER_GROUP + run * run_len + within, output);
        }
        batches.push(batch.padded());
        Self { segments, batches }
    }
}

impl Batch {
    /// Lists the blocks of piece `piece` of `group`; returns the index of the piece in the batch.
    fn add<T: Normal>(&mut self, group: u64, piece: usize) -> usize {
        let (place, first) = (self.pieces, group * GROUP_BLOCKS as u64);
        if place.is_multiple_of(T::PIECES) {
            self.blocks.extend(first..first + GROUP_BLOCKS as u64);
        }
        let made = &mut self.blocks[place / T::PIECES * GROUP_BLOCKS..];
        for k in (0..GROUP_BLOCKS).step_by(T::PIECES) {
            made[place % T::PIECES + k] = first + (piece + k) as u64;
        }
        self.pieces += 1;
        place
    }

    /// Adds the copy of one normal, joined to the previous copy if possible.
    fn copy(&mut self, made: usize, output: usize) {
        let (made, output) = (made as u16, output as u16);
        let goes_on = |&(from, to): &(u16, u16)| {
            made.wrapping_sub(from) == output - to && usize::from(output - to) < COPIED
        };
        if !self.copies.last().is_some_and(goes_on) {
            self.copies.push((made, output));
        }
    }

    fn padded(mut self) -> Self {
        let whole = self.blocks.len().next_multiple_of(FUSED_GROUPS * GROUP_BLOCKS);
        self.blocks.resize(whole, self.blocks.last().copied().unwrap_or_default());
        self
    }
}
