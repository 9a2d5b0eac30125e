//! A tile of standard normals: the coordinates that are worked on at a time.

use zeroize::Zeroizing;

#[cfg(target_arch = "x86_64")]
use super::fused;
use super::transform::{FUSED_GROUPS, Normal, groups};
use crate::keystream::{GROUP_BYTES, Keystream};
use crate::simd::{AlignedNumbers, Isa, Transfer};

/// Coordinates that are made at a time: their bits, normals and a few buffers stay in the first-level cache.
pub(crate) const TILE: usize = 1024;

/// Room for the bits and normals of one tile, whatever its alignment; wiped on drop.
pub(crate) struct NormalTile<T: Normal> {
    pub(super) isa: Isa,
    bits: Zeroizing<Box<[u8]>>,
    normals: AlignedNumbers<T>,
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
        Self { isa, bits, normals: AlignedNumbers::zeros(groups * T::PER_GROUP) }
    }

    /// Coordinates `start`, ..., `start + len - 1` of the keystream's vector; len is at most its room.
    pub(crate) fn make(&mut self, keystream: &Keystream, start: u64, len: usize) -> &[T] {
        self.make_fetching(keystream, start, len, &[])
    }

    /// The same, to be changed in place, while `fetched` is brought into the cache.
    pub(crate) fn make_fetching(
        &mut self,
        keystream: &Keystream,
        start: u64,
        len: usize,
        fetched: &[T],
    ) -> &mut [T] {
        self.make_while(keystream, start, len, Transfer::fetching(fetched))
    }

    /// The same, while `transfer` goes on.
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
        let whole = count.next_multiple_of(FUSED_GROUPS) * T::PER_GROUP;
        if !fuse(self.isa, keystream, first_group, &mut self.normals[..whole], &mut transfer) {
            let normals = &mut self.normals[..count * T::PER_GROUP];
            let bits = &mut self.bits[..count * GROUP_BYTES];
            keystream.fill(first_group, bits);
            let (bits, _) = bits.as_chunks();
            if groups(self.isa, bits, normals) {
                for (g, (bits, out)) in bits.iter().zip(normals.chunks_exact_mut(T::PER_GROUP)).enumerate() {
                    T::refine(keystream, first_group + g as u64, bits, out);
                }
            }
        }
        transfer.finish(self.isa);
        &mut self.normals[offset..][..len]
    }

    /// The same, written to `out`.
    pub(crate) fn make_into(&mut self, keystream: &Keystream, start: u64, out: &mut [T]) {
        let per_group = T::PER_GROUP as u64;
        let whole = start.is_multiple_of(per_group) && out.len().is_multiple_of(FUSED_GROUPS * T::PER_GROUP);
        if !whole || !fuse(self.isa, keystream, start / per_group, out, &mut Transfer::fetching(&[])) {
            out.copy_from_slice(self.make(keystream, start, out.len()));
        }
    }
}

/// Makes the normals of whole batches of groups without ever writing their bits to memory, while `transfer` goes on;
/// false, and nothing is done, where the processor cannot.
#[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables))]
fn fuse<T: Normal>(
    isa: Isa,
    keystream: &Keystream,
    first_group: u64,
    out: &mut [T],
    transfer: &mut Transfer<'_, T>,
) -> bool {
    #[cfg(target_arch = "x86_64")]
    if let (Some(proof), Some(keys)) = (isa.vector_aes(), keystream.round_keys()) {
        fused::normals(proof, (keystream, keys), first_group, out, transfer);
        return true;
    }
    false
}
