//! The digest of a noisy sum, and whether all of it is finite: computed tile by tile while the noisy sum is
//! in cache.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::simd::{Isa, per_isa};

/// Number of outputs of a block, whose weights in the digest have a common factor.
const BLOCK: usize = 1024;
/// The bits of infinity; a number whose bits without the sign are at least these is not finite.
const INFINITE: u32 = f32::INFINITY.to_bits();

/// A digest of a noisy sum, and whether all of its numbers are finite.
///
/// The digest is the sum over outputs i of weight(i) times the 32 bits of output i, modulo 2^64: it can be
/// computed in any order and on any device. Weights are fixed pseudo-random numbers: two different noisy sums
/// that were not built to collide have the same digest with probability 2^-32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) digest: u64,
    pub(crate) finite: bool,
}

impl Seen {
    /// Digest and finiteness of the outputs from index `first` on.
    pub(super) fn of(isa: Isa, first: usize, out: &[f32]) -> Self {
        let mut seen = Self { digest: 0, finite: true };
        let (mut first, mut rest) = (first, out);
        while !rest.is_empty() {
            let at = first % BLOCK;
            let (here, others) = rest.split_at(rest.len().min(BLOCK - at));
            let (sum, largest) = sum_and_largest(isa, &BLOCK_WEIGHTS[at..][..here.len()], here);
            seen.digest = seen.digest.wrapping_add(sum.wrapping_mul(block_factor(first / BLOCK)));
            seen.finite &= largest < INFINITE;
            (first, rest) = (first + here.len(), others);
        }
        seen
    }
}

/// The digest and finiteness of a noisy sum, combined from all threads.
#[derive(Debug, Default)]
pub(crate) struct SeenByAll {
    digest: AtomicU64,
    wild: AtomicBool,
}

impl SeenByAll {
    pub(crate) fn add(&self, seen: Option<Seen>) {
        if let Some(seen) = seen {
            self.digest.fetch_add(seen.digest, Relaxed);
            if !seen.finite {
                self.wild.store(true, Relaxed);
            }
        }
    }

    pub(crate) fn all(self) -> Seen {
        Seen { digest: self.digest.into_inner(), finite: !self.wild.into_inner() }
    }
}

/// The factor, an odd number, that a block of outputs has in the digest of a noisy sum.
pub const fn block_factor(block: usize) -> u64 {
    mixed(block as u64) | 1
}

/// The weights, odd numbers, that outputs within a block have in the digest of a noisy sum.
pub static BLOCK_WEIGHTS: [u32; BLOCK] = {
    let (mut weights, mut i) = ([0; BLOCK], 0);
    while i < BLOCK {
        weights[i] = (mixed(i as u64 | 1 << 63) >> 32) as u32 | 1;
        i += 1;
    }
    weights
};

/// Returns number `place` of the pseudo-random generator SplitMix64.
const fn mixed(place: u64) -> u64 {
    let z = place.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

per_isa! {
    /// Returns the weighted sum of the bits of all outputs, and the maximum of their bits without the sign.
    fn sum_and_largest(weights: &[u32], out: &[f32]) -> (u64, u32) {
        let (mut sum, mut largest) = (0u64, 0);
        for (weight, x) in weights.iter().zip(out) {
            let bits = x.to_bits();
            sum = sum.wrapping_add(u64::from(*weight) * u64::from(bits));
            largest = largest.max(bits & (u32::MAX >> 1));
        }
        (sum, largest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_the_same_however_a_noisy_sum_is_cut_and_whatever_computes_it() {
        let out: Vec<f32> = (0..5000).map(|i| (i as f32 * 0.37).sin()).collect();
        let whole = Seen::of(Isa::detect(), 0, &out);
        for &isa in Isa::available() {
            for cuts in [vec![1], vec![1023, 1025], vec![7, 2048, 2049, 4999]] {
                let all = SeenByAll::default();
                let ends = cuts.iter().copied().chain([out.len()]);
                ends.fold(0, |start, end| {
                    all.add(Some(Seen::of(isa, start, &out[start..end])));
                    end
                });
                assert_eq!(all.all(), whole);
            }
        }
    }

    #[test]
    fn every_changed_bit_moved_number_and_infinity_is_seen() {
        let out: Vec<f32> = (0..2050).map(|i| (i as f32 * 0.37).sin()).collect();
        let seen = |out: &[f32]| Seen::of(Isa::detect(), 0, out);
        let whole = seen(&out);
        let mut changed = 0;
        for i in (0..out.len()).step_by(41) {
            for bit in 0..32 {
                let mut other = out.clone();
                other[i] = f32::from_bits(other[i].to_bits() ^ (1 << bit));
                assert_ne!(seen(&other).digest, whole.digest);
                changed += 1;
            }
            for (j, wild) in [(i / 2, f32::NAN), (i, f32::INFINITY), (2049 - i, -f32::INFINITY)] {
                let mut other = out.clone();
                other[j] = wild;
                assert!(!seen(&other).finite);
            }
            let mut other = out.clone();
            other.swap(i, (i + 1024) % out.len());
            assert_ne!(seen(&other).digest, whole.digest);
        }
        assert!(whole.finite && changed == 50 * 32);
    }
}
