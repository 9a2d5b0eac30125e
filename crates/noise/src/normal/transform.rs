//! From bits to normals: what both precisions have in common.

use crate::keystream::{GROUP_BLOCKS, GROUP_BYTES, Keystream};
use crate::number::Real;
use crate::simd::{Instructions, per_isa};

/// Groups of keystream that are made together where bits and normals are made in one loop.
pub(crate) const FUSED_GROUPS: usize = 4;

/// The blocks of a group's worth: from `origin` on, or so many further on than the listed ones. (Two arguments: together they would
/// go through memory, and what is read there waits for all that was written before.)
#[inline(always)]
pub(super) fn blocks(origin: u64, listed: Option<&[u64]>, group: usize) -> [u64; GROUP_BLOCKS] {
    let first = group * GROUP_BLOCKS;
    std::array::from_fn(|k| origin + listed.map_or((first + k) as u64, |listed| listed[first + k]))
}

/// A precision that standard normals are made in.
pub trait Normal: Real {
    /// Normals made from one group of keystream.
    const PER_GROUP: usize;
    /// Pieces of a group that make their normals without the rest: piece i has every so many-th block from the i-th on.
    const PIECES: usize;
    /// Tells, lane by lane, whether one of the words seen was rare: so near an end that it needs more bits.
    type Extremes: Copy;
    /// No word seen.
    const NONE_SEEN: Self::Extremes;

    /// Makes the normals of one group, and takes note of its words.
    fn group(
        set: impl Instructions,
        bits: &[u8; GROUP_BYTES],
        out: &mut [Self],
        extremes: &mut Self::Extremes,
    );

    /// True when a word was rare.
    fn has_rare(extremes: &Self::Extremes) -> bool;

    /// Makes the rare normals of these blocks anew, with their further bits.
    fn refine(keystream: &Keystream, blocks: [u64; GROUP_BLOCKS], bits: &[u8; GROUP_BYTES], out: &mut [Self]);
}

per_isa! {
    /// Normals of whole groups of bits; true when some are rare.
    pub(super) fn groups<set>[T: Normal](bits: &[[u8; GROUP_BYTES]], out: &mut [T]) -> bool {
        let mut extremes = T::NONE_SEEN;
        for (bits, out) in bits.iter().zip(out.chunks_exact_mut(T::PER_GROUP)) {
            T::group(set, bits, out, &mut extremes);
        }
        T::has_rare(&extremes)
    }
}
