//! A tile of standard normals: the coordinates that are worked on at a time.

use zeroize::Zeroizing;

use super::coordinates::{Coordinates, Segment};
#[cfg(target_arch = "x86_64")]
use super::fused;
use super::transform::{FUSED_GROUPS, Groups, Normal, groups};
use crate::keystream::{GROUP_BYTES, Keystream};
use crate::simd::{AlignedNumbers, Isa, Transfer};

/// Coordinates that are made at a time: their bits, normals and a few buffers stay in the first-level cache.
pub(crate) const TILE: usize = 1024;

/// Groups that are made at a time for coordinates that are gathered: they fit into the room for a tile.
const GATHERED_GROUPS: usize = TILE / 32;
/// Numbers that are copied at a time: what is too many is written over by those that follow.
const COPIED: usize = 8;

/// Room for the bits and normals of one tile, whatever its alignment; wiped on drop.
pub(crate) struct NormalTile<T: Normal> {
    pub(super) isa: Isa,
    bits: Zeroizing<Box<[u8]>>,
    normals: AlignedNumbers<T>,
    /// Of coordinates that do not follow one another.
    gathered: AlignedNumbers<T>,
}

impl<T: Normal> NormalTile<T> {
    pub(crate) fn new(isa: Isa) -> Self {
        Self::with_room(isa, TILE)
    }

    /// What was made last, from `offset` within its first group on.
    pub(super) fn made(&self, offset: usize) -> &[T] {
        &self.normals[offset..]
    }

    /// A tile of at most `room` coordinates, a multiple of [`TILE`].
    pub(super) fn with_room(isa: Isa, room: usize) -> Self {
        let groups = (room / T::PER_GROUP + 1).next_multiple_of(FUSED_GROUPS);
        let bits = vec![0; groups * GROUP_BYTES].into_boxed_slice().into();
        let (normals, gathered) = (groups * T::PER_GROUP, TILE + COPIED);
        Self { isa, bits, normals: AlignedNumbers::zeros(normals), gathered: AlignedNumbers::zeros(gathered) }
    }

    /// The keystream's normals at the first `len` of these coordinates; len is at most its room.
    pub(crate) fn make(&mut self, keystream: &Keystream, at: Coordinates<'_>, len: usize) -> &[T] {
        self.make_fetching(keystream, at, len, &[])
    }

    /// The same, to be changed in place, while `fetched` is brought into the cache.
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
            Coordinates::Gathered(segments) => {
                transfer.finish(self.isa);
                self.gather(keystream, segments)
            }
        }
    }

    /// The same from `start` on, while `transfer` goes on.
    pub(super) fn make_while(
        &mut self,
        keystream: &Keystream,
        start: u64,
        len: usize,
        mut transfer: Transfer<'_, T>,
    ) -> &mut [T] {
        let first_group = start / T::PER_GROUP as u64;
        let offset = (start % T::PER_GROUP as u64) as usize;
        let count = (offset + len).div_ceil(T::PER_GROUP);
        self.make_groups(keystream, Groups::From(first_group), count, &mut transfer);
        transfer.finish(self.isa);
        &mut self.normals[offset..][..len]
    }

    /// The normals at the coordinates of these segments, one after the other.
    fn gather(&mut self, keystream: &Keystream, segments: &[Segment]) -> &mut [T] {
        let (mut groups, mut count) = ([0; GATHERED_GROUPS], 0);
        // Where in the groups that are made, and how many.
        let (mut parts, mut listed, mut output) = ([(0, 0); GATHERED_GROUPS], 0, 0);
        // No group has this number.
        let mut last = u64::MAX;
        for segment in segments {
            let (mut at, end) = (segment.start, segment.start + segment.len as u64);
            while at < end {
                let (group, offset) = (at / T::PER_GROUP as u64, (at % T::PER_GROUP as u64) as usize);
                if listed == GATHERED_GROUPS {
                    output = self.copy_parts(keystream, &mut groups, count, &parts, output);
                    (count, listed, last) = (0, 0, u64::MAX);
                }
                // There are no more groups than parts.
                if group != last {
                    (groups[count], last) = (group, group);
                    count += 1;
                }
                let taken = (T::PER_GROUP - offset).min((end - at) as usize);
                parts[listed] = ((count - 1) * T::PER_GROUP + offset, taken);
                (listed, at) = (listed + 1, at + taken as u64);
            }
        }
        output = self.copy_parts(keystream, &mut groups, count, &parts[..listed], output);
        &mut self.gathered[..output]
    }

    /// Makes the first `count` of these groups, and copies parts of them to where they are gathered, from `output` on;
    /// where the last one ends.
    fn copy_parts(
        &mut self,
        keystream: &Keystream,
        groups: &mut [u64; GATHERED_GROUPS],
        count: usize,
        parts: &[(usize, usize)],
        output: usize,
    ) -> usize {
        let Some(&last) = groups[..count].last() else { return output };
        let whole = count.next_multiple_of(FUSED_GROUPS);
        groups[count..whole].fill(last);
        let listed = Groups::Listed(&groups[..whole]);
        self.make_groups(keystream, listed, count, &mut Transfer::fetching(&[]));
        let mut at = output;
        for &(from, taken) in parts {
            for k in (0..taken).step_by(COPIED) {
                let (from, to) = (&self.normals[from + k..], &mut self.gathered[at + k..]);
                match (from.first_chunk::<COPIED>(), to.first_chunk_mut::<COPIED>()) {
                    (Some(from), Some(to)) => *to = *from,
                    _ => to[..taken - k].copy_from_slice(&from[..taken - k]),
                }
            }
            at += taken;
        }
        at
    }

    /// The normals of the first `count` of these groups, from the start of `normals` on.
    fn make_groups(
        &mut self,
        keystream: &Keystream,
        numbers: Groups<'_>,
        count: usize,
        transfer: &mut Transfer<'_, T>,
    ) {
        let whole = count.next_multiple_of(FUSED_GROUPS) * T::PER_GROUP;
        if fuse(self.isa, keystream, numbers, &mut self.normals[..whole], transfer) {
            return;
        }
        let normals = &mut self.normals[..count * T::PER_GROUP];
        let bits = &mut self.bits[..count * GROUP_BYTES];
        match numbers {
            Groups::From(first) => keystream.fill(first, bits),
            Groups::Listed(listed) => {
                let each = bits.chunks_exact_mut(GROUP_BYTES).zip(listed);
                each.for_each(|(bits, &group)| keystream.fill(group, bits));
            }
        }
        let (bits, _) = bits.as_chunks();
        if groups(self.isa, bits, normals) {
            for (g, (bits, out)) in bits.iter().zip(normals.chunks_exact_mut(T::PER_GROUP)).enumerate() {
                T::refine(keystream, numbers.number(g), bits, out);
            }
        }
    }

    /// What [`NormalTile::make`] makes, written to `out`.
    pub(crate) fn make_into(&mut self, keystream: &Keystream, at: Coordinates<'_>, out: &mut [T]) {
        if let Coordinates::From(start) = at {
            let (per_group, batch) = (T::PER_GROUP as u64, FUSED_GROUPS * T::PER_GROUP);
            let whole = start.is_multiple_of(per_group) && out.len().is_multiple_of(batch);
            let first = Groups::From(start / per_group);
            if whole && fuse(self.isa, keystream, first, out, &mut Transfer::fetching(&[])) {
                return;
            }
        }
        out.copy_from_slice(self.make(keystream, at, out.len()));
    }
}

/// Makes the normals of whole batches of groups without ever writing their bits to memory, while `transfer` goes on;
/// false, and nothing is done, where the processor cannot.
#[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables))]
fn fuse<T: Normal>(
    isa: Isa,
    keystream: &Keystream,
    groups: Groups<'_>,
    out: &mut [T],
    transfer: &mut Transfer<'_, T>,
) -> bool {
    #[cfg(target_arch = "x86_64")]
    if let (Some(proof), Some(keys)) = (isa.vector_aes(), keystream.round_keys()) {
        fused::normals(proof, (keystream, keys), groups, out, transfer);
        return true;
    }
    false
}
