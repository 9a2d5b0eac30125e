//! Normals in single precision by the inverse of the normal distribution function: one 32-bit word gives one
//! normal.
//!
//! Word w, as a signed integer, gives the normal z with the sign of w + 1/2 and P(N > |z|) = |w + 1/2| 2^-32
//! for a standard normal N. The function is approximated by pieces, polynomials that are selected by the
//! leading bits of |w + 1/2| and fitted by `scripts/noise/inverse_normal.py`.

use super::double;
use super::single_table::{PIECES, TAIL};
use super::transform::Normal;
use crate::keystream::{GROUP_BLOCKS, GROUP_BYTES, Keystream};
use crate::simd::Instructions;

const LANES: usize = 16;
/// Words with |w + 1/2| below 2^17 are rare and get 64 further bits: there a difference of 2^-32 in
/// probability changes the normal by more than its accuracy. Scaled by 2^-16, rare words are the numbers
/// below 2, which a single bit of the exponent shows.
const SCALE: f32 = 1.0 / 65_536.0;
const NOT_RARE: u32 = 1 << 30;
const RARE: u32 = 1 << 17;
/// The factor by which the largest words become 2^31 - 128, since 2^31 would be beyond the last piece. The
/// fit of the pieces accounts for it.
const SHRINK: f32 = 1.0 - 1.0 / 16_777_216.0;
/// The bits of the mantissa that give the position within a piece: each piece covers half of a power of two.
const MANTISSA: u32 = (1 << 22) - 1;
const MIDDLE: f32 = 1.25;
const SIGN: u32 = 1 << 31;

impl Normal for f32 {
    const PER_GROUP: usize = 2 * LANES;
    const PIECES: usize = GROUP_BLOCKS;
    const NONE_SEEN: Self::Extremes = [u32::MAX; LANES];
    /// For each lane, the bits that are set in all scaled words.
    type Extremes = [u32; LANES];

    #[inline(always)]
    fn group(
        set: impl Instructions,
        bits: &[u8; GROUP_BYTES],
        out: &mut [f32],
        extremes: &mut Self::Extremes,
    ) {
        let (vectors, _) = bits.as_chunks::<{ 4 * LANES }>();
        for (bits, out) in vectors.iter().zip(out.chunks_exact_mut(LANES)) {
            let scaled: [f32; LANES] =
                std::array::from_fn(|i| (word(bits, i) as f32).mul_add(SHRINK * SCALE, 0.5 * SCALE));
            let piece: [u32; LANES] = std::array::from_fn(|i| scaled[i].to_bits() >> 22);
            let t: [f32; LANES] = std::array::from_fn(|i| {
                f32::from_bits(scaled[i].to_bits() & MANTISSA | 1f32.to_bits()) - MIDDLE
            });
            let z = set.polynomial(&PIECES.0, &piece, &t);
            for i in 0..LANES {
                extremes[i] &= scaled[i].to_bits();
                out[i] = f32::from_bits(z[i].to_bits() ^ scaled[i].to_bits() & SIGN);
            }
        }
    }

    #[inline(always)]
    fn has_rare(extremes: &Self::Extremes) -> bool {
        extremes.iter().fold(NOT_RARE, |all, common| all & common) == 0
    }

    #[inline(always)]
    fn refine(keystream: &Keystream, blocks: [u64; GROUP_BLOCKS], bits: &[u8; GROUP_BYTES], out: &mut [f32]) {
        for (i, out) in out[..2 * LANES].iter_mut().enumerate() {
            let w = word(bits, i);
            let distance = (if w < 0 { !w } else { w }) as u32;
            if distance < RARE {
                let [more, _] = keystream.extra(4 * blocks[i / 4] + i as u64 % 4);
                let z = tail(distance, more) as f32;
                *out = if w < 0 { -z } else { z };
            }
        }
    }
}

#[inline(always)]
fn word(bits: &[u8], i: usize) -> i32 {
    i32::from_le_bytes([bits[4 * i], bits[4 * i + 1], bits[4 * i + 2], bits[4 * i + 3]])
}

/// Returns the number that a standard normal exceeds with probability p = (distance + (more + 1/2) 2^-64)
/// 2^-32.
#[inline(always)]
pub(super) fn tail(distance: u32, more: u64) -> f64 {
    let p = (f64::from(distance) + (more as f64 + 0.5) / 2f64.powi(64)) / 2f64.powi(32);
    let r = double::radius(p, false);
    r - TAIL.iter().rev().fold(0.0, |sum, c| sum * (1.0 / r) + c)
}
