//! The interface of the transforms from bits to normals, for both precisions.

use crate::keystream::{GROUP_BLOCKS, GROUP_BYTES, Keystream};
use crate::number::Real;
use crate::simd::{Instructions, per_isa};

/// Number of groups of keystream that are made together if one loop makes bits and normals.
pub(crate) const FUSED_GROUPS: usize = 4;

/// Returns the blocks of group `group`: consecutive blocks from `origin` on or, if `listed`, `origin` plus
/// the listed blocks. (An enum instead of the two arguments would be passed through memory, and its load
/// would wait for all earlier stores.)
#[inline(always)]
pub(super) fn blocks(origin: u64, listed: Option<&[u64]>, group: usize) -> [u64; GROUP_BLOCKS] {
    let first = group * GROUP_BLOCKS;
    std::array::from_fn(|k| origin + listed.map_or((first + k) as u64, |listed| listed[first + k]))
}

/// A precision of standard normals.
pub trait Normal: Real {
    /// Number of normals that one group of keystream gives.
    const PER_GROUP: usize;
    /// Number of pieces of a group whose normals can be made without the other pieces; piece i has blocks i,
    /// i + PIECES, ...
    const PIECES: usize;
    /// A summary, for each lane, of the random words that were processed. It shows whether one of them is
    /// rare: so close to an end of its range that the normal needs further bits.
    type Extremes: Copy;
    /// The summary before any word is processed.
    const NONE_SEEN: Self::Extremes;

    /// Makes the normals of one group, and adds its words to the summary.
    fn group(
        set: impl Instructions,
        bits: &[u8; GROUP_BYTES],
        out: &mut [Self],
        extremes: &mut Self::Extremes,
    );

    /// Whether one of the words is rare.
    fn has_rare(extremes: &Self::Extremes) -> bool;

    /// Replaces the rare normals of these blocks, using their further bits.
    fn refine(keystream: &Keystream, blocks: [u64; GROUP_BLOCKS], bits: &[u8; GROUP_BYTES], out: &mut [Self]);
}

per_isa! {
    /// Makes the normals of whole groups of bits; returns whether some are rare and must be refined.
    pub(super) fn groups<set>[T: Normal](bits: &[[u8; GROUP_BYTES]], out: &mut [T]) -> bool {
        let mut extremes = T::NONE_SEEN;
        for (bits, out) in bits.iter().zip(out.chunks_exact_mut(T::PER_GROUP)) {
            T::group(set, bits, out, &mut extremes);
        }
        T::has_rare(&extremes)
    }
}
