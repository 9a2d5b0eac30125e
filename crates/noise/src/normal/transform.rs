//! From bits to normals: what both precisions have in common.

use crate::keystream::{GROUP_BYTES, Keystream};
use crate::number::Real;
use crate::simd::{Instructions, per_isa};

/// Groups of keystream that are made together where bits and normals are made in one loop.
pub(crate) const FUSED_GROUPS: usize = 4;

/// Groups of a keystream.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Groups<'a> {
    /// Consecutive ones from this one on.
    From(u64),
    /// These, a multiple of [`FUSED_GROUPS`] of them.
    Listed(&'a [u64]),
}

impl Groups<'_> {
    /// The i-th of them.
    #[inline(always)]
    pub(super) fn number(self, i: usize) -> u64 {
        match self {
            Self::From(first) => first + i as u64,
            Self::Listed(listed) => listed[i],
        }
    }
}

/// A precision that standard normals are made in.
pub trait Normal: Real {
    /// Normals made from one group of keystream.
    const PER_GROUP: usize;
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

    /// Makes the rare normals of a group anew, with their further bits.
    fn refine(keystream: &Keystream, group: u64, bits: &[u8; GROUP_BYTES], out: &mut [Self]);
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
