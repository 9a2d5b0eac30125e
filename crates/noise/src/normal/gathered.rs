//! Coordinates of short ranges: which blocks of a keystream they need, and where their normals then lie.

use super::transform::{FUSED_GROUPS, Normal};
use crate::keystream::GROUP_BLOCKS;

/// Blocks that are made at a time, at most.
pub(super) const MOST_BLOCKS: usize = 512;
/// Normals that are copied at a time: what is too many is written over by those that follow.
pub(super) const COPIED: usize = 8;

/// Consecutive coordinates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Segment {
    pub(crate) start: u64,
    pub(crate) len: usize,
}

/// Short ranges one after the other, from any origin on that is a multiple of [`Gathered::ORIGIN`]: tiles that differ in that alone
/// share one.
#[derive(Debug, PartialEq)]
pub(crate) struct Gathered {
    pub(super) segments: Vec<Segment>,
    pub(super) batches: Vec<Batch>,
}

/// Blocks that are made at a time.
#[derive(Debug, PartialEq, Default)]
pub(super) struct Batch {
    /// Of so many groups as are made together, or a multiple of it.
    pub(super) blocks: Vec<u64>,
    /// From where among their normals to where.
    pub(super) copies: Vec<(u16, u16)>,
    pieces: usize,
}

impl Gathered {
    /// Groups start here in either precision.
    pub(crate) const ORIGIN: u64 = 32;

    /// The plan for normals of precision `T`.
    pub(crate) fn new<T: Normal>(segments: Vec<Segment>) -> Self {
        let (mut batches, mut batch) = (Vec::new(), Batch::default());
        let mut current = (u64::MAX, [None; GROUP_BLOCKS]);
        let coordinates = segments.iter().flat_map(|&Segment { start, len }| start..start + len as u64);
        for (output, coordinate) in coordinates.enumerate() {
            let (group, offset) = (coordinate / T::PER_GROUP as u64, coordinate as usize % T::PER_GROUP);
            if group != current.0 {
                current = (group, [None; GROUP_BLOCKS]);
                if batch.pieces + T::PIECES > MOST_BLOCKS / GROUP_BLOCKS * T::PIECES {
                    batches.push(std::mem::take(&mut batch).padded());
                }
            }
            let (run, within) = (offset / run_len::<T>(), offset % run_len::<T>());
            let place =
                *current.1[run % T::PIECES].get_or_insert_with(|| batch.add::<T>(group, run % T::PIECES));
            let run = run / T::PIECES * T::PIECES + place % T::PIECES;
            let made = place / T::PIECES * T::PER_GROUP + run * run_len::<T>() + within;
            batch.copy(made, output);
        }
        batches.push(batch.padded());
        Self { segments, batches }
    }
}

/// Normals that lie side by side in a group and in its piece.
fn run_len<T: Normal>() -> usize {
    T::PER_GROUP / GROUP_BLOCKS
}

impl Batch {
    /// Lists the blocks of a piece of a group; which piece that is here.
    fn add<T: Normal>(&mut self, group: u64, piece: usize) -> usize {
        let place = self.pieces;
        let first = group * GROUP_BLOCKS as u64;
        if place.is_multiple_of(T::PIECES) {
            self.blocks.extend(first..first + GROUP_BLOCKS as u64);
        }
        let from = place / T::PIECES * GROUP_BLOCKS + place % T::PIECES;
        for k in (0..GROUP_BLOCKS).step_by(T::PIECES) {
            self.blocks[from + k] = first + (piece + k) as u64;
        }
        self.pieces += 1;
        place
    }

    /// Copies one more normal.
    fn copy(&mut self, made: usize, output: usize) {
        let (made, output) = (made as u16, output as u16);
        match self.copies.last() {
            Some(&(from, to))
                if made.wrapping_sub(from) == output - to && usize::from(output - to) < COPIED => {}
            _ => self.copies.push((made, output)),
        }
    }

    fn padded(mut self) -> Self {
        let whole = self.blocks.len().next_multiple_of(FUSED_GROUPS * GROUP_BLOCKS);
        self.blocks.resize(whole, self.blocks.last().copied().unwrap_or_default());
        self
    }
}
