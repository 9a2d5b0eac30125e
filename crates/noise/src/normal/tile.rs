//! A tile of standard normals: the coordinates that are processed together.

use zeroize::Zeroizing;

use super::coordinates::Coordinates;
#[cfg(target_arch = "x86_64")]
use super::fused;
use super::gathered::{COPIED, Gathered, MAX_BLOCKS};
use super::transform::{FUSED_GROUPS, Normal, blocks, groups};
use crate::keystream::{GROUP_BLOCKS, GROUP_BYTES, Keystream};
use crate::simd::{AlignedNumbers, Isa, Transfer, per_isa};

/// Maximum number of coordinates of a tile. Its bits, normals and a few buffers fit in the first-level cache.
pub(crate) const TILE: usize = 1024;

/// Buffers for the bits and normals of one tile, wherever it starts within a group; wiped on drop.
pub(crate) struct NormalTile<T: Normal> {
    pub(super) isa: Isa,
    bits: Zeroizing<Box<[u8]>>,
    normals: AlignedNumbers<T>,
    /// Normals of coordinates that are not consecutive.
    gathered: AlignedNumbers<T>,
}

impl<T: Normal> NormalTile<T> {
    pub(crate) fn new(isa: Isa) -> Self {
        Self::with_room(isa, TILE)
    }

    /// The normals that were made last, from position `offset` in their first group on.
    pub(super) fn made(&self, offset: usize) -> &[T] {
        &self.normals[offset..]
    }

    /// Creates buffers for tiles of at most `room` coordinates, a multiple of [`TILE`].
    pub(super) fn with_room(isa: Isa, room: usize) -> Self {
        let groups = (room / T::PER_GROUP).max(MAX_BLOCKS / GROUP_BLOCKS) + FUSED_GROUPS;
        let bits = vec![0; groups * GROUP_BYTES].into_boxed_slice().into();
        let normals = AlignedNumbers::zeros(groups * T::PER_GROUP);
        Self { isa, bits, normals, gathered: AlignedNumbers::zeros(TILE) }
    }

    /// Makes the keystream's normals at the first `len` coordinates of `at`; `len` is at most the capacity.
    pub(crate) fn make(&mut self, keystream: &Keystream, at: Coordinates<'_>, len: usize) -> &[T] {
        self.make_fetching(keystream, at, len, &[])
    }

    /// As [`Self::make`], but returns normals that the caller may change in place, and prefetches `fetched`
    /// into the cache meanwhile.
    pub(crate) fn make_fetching(
        &mut self,
        keystream: &Keystream,
        at: Coordinates<'_>,
        len: usize,
        fetched: &[T],
    ) -> &mut [T] {
        let transfer = Transfer::fetching(fetched);
        match at {
            Coordinates::From(start) => self.make_while(keystream, start, len, transfer),
            Coordinates::Gathered(shape, origin) => {
                let mut gathered = std::mem::take(&mut self.gathered);
                self.gather(keystream, (shape, origin), &mut gathered[..len], transfer);
                self.gathered = gathered;
                &mut self.gathered[..len]
            }
        }
    }

    /// Makes the normals of `len` coordinates from `start` on, and advances `transfer` meanwhile.
    pub(super) fn make_while(
        &mut self,
        keystream: &Keystream,
        start: u64,
        len: usize,
        mut transfer: Transfer<'_, T>,
    ) -> &mut [T] {
        let offset = (start % T::PER_GROUP as u64) as usize;
        let count = (offset + len).div_ceil(T::PER_GROUP);
        self.make_groups(keystream, first_block::<T>(start), None, count, &mut transfer);
        transfer.finish(self.isa);
        &mut self.normals[offset..][..len]
    }

    /// Writes the normals at the coordinates of a [`Gathered`] shape to `out`, and advances `transfer`
    /// meanwhile.
    fn gather(
        &mut self,
        keystream: &Keystream,
        (shape, origin): (&Gathered, u64),
        out: &mut [T],
        mut transfer: Transfer<'_, T>,
    ) {
        for batch in &shape.batches {
            let (first, count) = (first_block::<T>(origin), batch.blocks.len() / GROUP_BLOCKS);
            self.make_groups(keystream, first, Some(&batch.blocks), count, &mut transfer);
            copy(self.isa, &batch.copies, &self.normals, out);
        }
        transfer.finish(self.isa);
    }

    /// Makes the normals of the first `count` groups of these [`blocks`], and writes them to the start of
    /// `normals`.
    fn make_groups(
        &mut self,
        keystream: &Keystream,
        origin: u64,
        listed: Option<&[u64]>,
        count: usize,
        transfer: &mut Transfer<'_, T>,
    ) {
        let whole = count.next_multiple_of(FUSED_GROUPS) * T::PER_GROUP;
        if fuse(self.isa, keystream, origin, listed, &mut self.normals[..whole], transfer) {
            return;
        }
        let normals = &mut self.normals[..count * T::PER_GROUP];
        let bits = &mut self.bits[..count * GROUP_BYTES];
        match listed {
            None => keystream.fill(origin / GROUP_BLOCKS as u64, bits),
            Some(listed) => keystream.fill_blocks(listed.iter().map(|block| origin + block), bits),
        }
        let (bits, _) = bits.as_chunks();
        if groups(self.isa, bits, normals) {
            for (g, (bits, out)) in bits.iter().zip(normals.chunks_exact_mut(T::PER_GROUP)).enumerate() {
                T::refine(keystream, blocks(origin, listed, g), bits, out);
            }
        }
    }

    /// As [`Self::make`], but writes the normals to `out`.
    pub(crate) fn make_into(&mut self, keystream: &Keystream, at: Coordinates<'_>, out: &mut [T]) {
        let nothing = Transfer::fetching(&[]);
        match at {
            Coordinates::From(start) => {
                let (per_group, batch) = (T::PER_GROUP as u64, FUSED_GROUPS * T::PER_GROUP);
                let whole = start.is_multiple_of(per_group) && out.len().is_multiple_of(batch);
                let first = first_block::<T>(start);
                if !(whole && fuse(self.isa, keystream, first, None, out, &mut Transfer::fetching(&[]))) {
                    out.copy_from_slice(self.make_while(keystream, start, out.len(), nothing));
                }
            }
            Coordinates::Gathered(shape, origin) => self.gather(keystream, (shape, origin), out, nothing),
        }
    }
}

/// Returns the first block of the group that contains this coordinate.
fn first_block<T: Normal>(coordinate: u64) -> u64 {
    coordinate / T::PER_GROUP as u64 * GROUP_BLOCKS as u64
}

per_isa! {
    /// Copies normals from the positions where they were made to their positions in the tile.
    fn copy[T: Normal](copies: &[(u16, u16)], normals: &[T], out: &mut [T]) {
        for &(from, to) in copies {
            let (from, to) = (from as usize, to as usize);
            let from = &normals[from..from + COPIED];
            match out.get_mut(to..to + COPIED) {
                Some(out) => out.copy_from_slice(from),
                None => out[to..].iter_mut().zip(from).for_each(|(out, from)| *out = *from),
            }
        }
    }
}

/// Makes the normals of whole batches of groups without writing their bits to memory, and advances `transfer`
/// meanwhile. Returns false and does nothing if the processor lacks the instructions.
#[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables))]
fn fuse<T: Normal>(
    isa: Isa,
    keystream: &Keystream,
    origin: u64,
    listed: Option<&[u64]>,
    out: &mut [T],
    transfer: &mut Transfer<'_, T>,
) -> bool {
    #[cfg(target_arch = "x86_64")]
    if let (Some(proof), Some(keys)) = (isa.vector_aes(), keystream.round_keys()) {
        fused::normals(proof, (keystream, keys), origin, listed, out, transfer);
        return true;
    }
    false
}
