//! Normals from AES-256 in counter mode on AVX-512 vectors, where encryption is interleaved with the
//! transform of the previous blocks to normals.
//!
//! The two use different parts of a core: AES rounds use one execution port, and the transform the others.
//! The bits are the same as those of [`Keystream::fill`], which a test checks.

use std::arch::asm;
use std::arch::x86_64::*;

use super::transform::{FUSED_GROUPS, Normal, blocks};
use crate::keystream::{GROUP_BYTES, Keystream, RoundKeys};
use crate::simd::{Aligned, Avx512, Transfer, VectorAes};

/// Number of groups of keystream that are made together: their eight vectors of four blocks hide the latency
/// of an AES round.
const BATCH: usize = FUSED_GROUPS;
const VECTORS: usize = 2 * BATCH;

/// Fills `out`, which holds whole batches of groups, with the normals of blocks of a keystream, given with
/// its round keys. The blocks are those of [`blocks`](super::transform::blocks). Advances `transfer`
/// meanwhile.
pub(super) fn normals<T: Normal>(
    proof: VectorAes,
    keystream: (&Keystream, &RoundKeys),
    origin: u64,
    listed: Option<&[u64]>,
    out: &mut [T],
    transfer: &mut Transfer<'_, T>,
) {
    let make = if listed.is_some() { normals_by_vectors::<T, true> } else { normals_by_vectors::<T, false> };
    // SAFETY: the proof exists only where `Isa` found these features.
    unsafe { make(proof.avx512(), keystream, origin, listed, out, transfer) };
}

#[target_feature(enable = "avx2,fma,avx512f,avx512dq,avx512bw,avx512vl,aes,vaes")]
fn normals_by_vectors<T: Normal, const LISTED: bool>(
    set: Avx512,
    (keystream, keys): (&Keystream, &RoundKeys),
    origin: u64,
    listed: Option<&[u64]>,
    out: &mut [T],
    transfer: &mut Transfer<'_, T>,
) {
    let mut rounds = [_mm512_setzero_si512(); 15];
    for (round, key) in rounds.iter_mut().zip(&keys.0) {
        *round = _mm512_broadcast_i32x4(_mm_set_epi64x(key[1] as i64, key[0] as i64));
    }
    let mut counters = Counters {
        first: inputs(if LISTED { [origin; 4] } else { std::array::from_fn(|i| origin + i as u64) }),
        listed: listed.unwrap_or_default().as_chunks().0,
    };
    let mut bits = Aligned([[0u8; GROUP_BYTES]; BATCH]);
    let mut blocks = begin::<LISTED>(&mut counters, rounds[0]);
    apply::<1, 14>(&mut blocks, &rounds);
    finish(blocks, rounds[14], &mut bits.0);
    let batches = out.len() / (BATCH * T::PER_GROUP);
    let portion = transfer.portion(BATCH * batches);
    for (batch, out) in out.chunks_exact_mut(BATCH * T::PER_GROUP).enumerate() {
        // A quarter of the AES rounds of the next batch follows each group of this batch. The loop is written
        // out, since the compiler does not unroll it.
        let mut extremes = T::NONE_SEEN;
        let mut blocks = begin::<LISTED>(&mut counters, rounds[0]);
        let (left, right) = out.split_at_mut(2 * T::PER_GROUP);
        let (first, second) = left.split_at_mut(T::PER_GROUP);
        let (third, fourth) = right.split_at_mut(T::PER_GROUP);
        apply::<1, 4>(&mut blocks, &rounds);
        T::group(set, &bits.0[0], first, &mut extremes);
        transfer.advance(set, &portion);
        apply::<4, 7>(&mut blocks, &rounds);
        T::group(set, &bits.0[1], second, &mut extremes);
        transfer.advance(set, &portion);
        apply::<7, 10>(&mut blocks, &rounds);
        T::group(set, &bits.0[2], third, &mut extremes);
        transfer.advance(set, &portion);
        apply::<10, 14>(&mut blocks, &rounds);
        T::group(set, &bits.0[3], fourth, &mut extremes);
        if T::has_rare(&extremes) {
            refine(keystream, origin, listed, batch * BATCH, (&bits.0, out));
        }
        finish(blocks, rounds[14], &mut bits.0);
        transfer.advance(set, &portion);
    }
    wipe(&mut bits);
}

/// Overwrites secret bits as `zeroize` does, but with eight stores instead of byte by byte.
#[inline]
#[target_feature(enable = "avx512f")]
fn wipe(bits: &mut Aligned<[[u8; GROUP_BYTES]; BATCH]>) {
    for vector in bits.0.as_flattened_mut().chunks_exact_mut(64) {
        // SAFETY: the chunk has 64 bytes and starts at a multiple of 64, as `Aligned` does.
        unsafe { vector.as_mut_ptr().cast::<__m512i>().write_volatile(_mm512_setzero_si512()) };
    }
}

#[cold]
#[inline(never)]
#[target_feature(enable = "avx2,fma")]
fn refine<T: Normal>(
    keystream: &Keystream,
    origin: u64,
    listed: Option<&[u64]>,
    group: usize,
    (bits, out): (&[[u8; GROUP_BYTES]], &mut [T]),
) {
    for (g, (bits, out)) in bits.iter().zip(out.chunks_exact_mut(T::PER_GROUP)).enumerate() {
        T::refine(keystream, blocks(origin, listed, group + g), bits, out);
    }
}

/// The blocks that are still to be made.
struct Counters<'a> {
    /// The first four blocks; if blocks are listed, the offset added to each.
    first: __m512i,
    listed: &'a [[u64; 4]],
}

/// Returns the cipher's inputs for these blocks.
#[inline]
#[target_feature(enable = "avx512f")]
fn inputs(blocks: [u64; 4]) -> __m512i {
    let [a, b, c, d] = blocks.map(u64::cast_signed);
    _mm512_maskz_expand_epi64(0b0101_0101, _mm512_set_epi64(0, 0, 0, 0, d, c, b, a))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn begin<const LISTED: bool>(counters: &mut Counters<'_>, key: __m512i) -> [__m512i; VECTORS] {
    let mut blocks = [key; VECTORS];
    if LISTED {
        // After the last batch the result is not used, so that any blocks can be returned.
        let (now, later) = counters.listed.split_at(VECTORS);
        for (block, listed) in blocks.iter_mut().zip(now) {
            *block = _mm512_xor_si512(_mm512_add_epi64(inputs(*listed), counters.first), key);
        }
        counters.listed = if later.is_empty() { now } else { later };
    } else {
        let four = _mm512_set_epi64(0, 4, 0, 4, 0, 4, 0, 4);
        for block in &mut blocks {
            *block = _mm512_xor_si512(counters.first, key);
            counters.first = _mm512_add_epi64(counters.first, four);
        }
    }
    blocks
}

#[inline]
#[target_feature(enable = "avx512f,vaes")]
fn apply<const FROM: usize, const TO: usize>(blocks: &mut [__m512i; VECTORS], rounds: &[__m512i; 15]) {
    for round in FROM..TO {
        for block in blocks.iter_mut() {
            *block = _mm512_aesenc_epi128(*block, rounds[round]);
        }
    }
    for block in blocks.iter_mut() {
        // SAFETY: the assembly is empty and changes no register. It keeps these rounds between the groups
        // before and after them; the compiler would otherwise move all rounds to one place, where they
        // overlap with nothing.
        unsafe { asm!("/* {0} */", inout(zmm_reg) * block, options(nostack, preserves_flags)) };
    }
}

#[inline]
#[target_feature(enable = "avx512f,vaes")]
fn finish(blocks: [__m512i; VECTORS], key: __m512i, bits: &mut [[u8; GROUP_BYTES]; BATCH]) {
    for (block, bits) in blocks.into_iter().zip(bits.as_flattened_mut().chunks_exact_mut(64)) {
        // SAFETY: the chunk has 64 bytes, and the store needs no alignment.
        unsafe { _mm512_storeu_si512(bits.as_mut_ptr().cast(), _mm512_aesenclast_epi128(block, key)) };
    }
}
