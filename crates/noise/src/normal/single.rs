//! The inverse normal distribution in single precision: one 32-bit word makes one normal.
//!
//! Word w, as a signed integer, gives the normal z with the sign of w + 1/2 and P(N > |z|) = |w + 1/2| 2^-32
//! for a standard normal N. Pieces of this function are polynomials, looked up by the leading bits of |w +
//! 1/2|; `scripts/noise/inverse_normal.py` fits them.

use super::double;
use super::single_table::{PIECES, TAIL};
use super::transform::Normal;
use crate::keystream::{GROUP_BLOCKS, GROUP_BYTES, Keystream};
use crate::simd::Instructions;

const LANES: usize = 16;
/// Words with |w + 1/2| below 2^17 are rare and get 64 further bits: there a step of 2^-32 in probability is
/// a visible step of the normal. After scaling by 2^-16 the rare words are the numbers below 2, which one bit
/// of the exponent shows.
const SCALE: f32 = 1.0 / 65_536.0;
const NOT_RARE: u32 = 1 << 30;
const RARE: u32 = 1 << 17;
/// Maps the largest words to 2^31 - 128 instead of 2^31, which would lie beyond the last piece; the fit of
/// the pieces accounts for it.
const SHRINK: f32 = 1.0 - 1.0 / 16_777_216.0;
/// The bits of the mantissa within a piece: each piece is half an octave.
const MANTISSA: u32 = (1 << 22) - 1;
const MIDDLE: f32 = 1.25;
const SIGN: u32 = 1 << 31;

impl Normal for f32 {
    const PER_GROUP: usize = 2 * LANES;
    const PIECES: usize = GROUP_BLOCKS;
    const NONE_SEEN: Self::Extremes = [u32::MAX; LANES];
    /// The bits that are set in all scaled words, per lane.
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

/// The normal that is exceeded with probability p = (distance + (more + 1/2) 2^-64) 2^-32.
#[inline(always)]
pub(super) fn tail(distance: u32, more: u64) -> f64 {
    let p = (f64::from(distance) + (more as f64 + 0.5) / 2f64.powi(64)) / 2f64.powi(32);
    let r = double::radius(p, false);
    r - TAIL.iter().rev().fold(0.0, |sum, c| sum * (1.0 / r) + c)
}
