//! Box-Muller in single precision: two 32-bit words make two normals.
//!
//! Radius word w: u = (w + 1/2) 2^-32 and r = sqrt(-2 ln u). Angle word a: theta = 2 pi (a + 1/2) 2^-32. The
//! coefficients are printed by `scripts/noise/polynomials.py`.

use super::Real;
use crate::cipher::{GROUP_BYTES, Keystream};
use crate::simd::{Isa, per_isa};

/// 2^32 / sqrt 2: from here on ln u is taken as ln(1 - x), which keeps relative accuracy up to u = 1.
const HIGH: u32 = 0xB504_F334;
/// Distances from 0 or 1 below this, in units of 2^-32, get 64 bits more: both ends are where a step of 2^-32 in u
/// is a visible step in r.
const RARE: u32 = 1 << 17;
const PAIRS: usize = 16;
const SCALE: f32 = 1.0 / 4_294_967_296.0;

impl Real for f32 {
    const PER_GROUP: usize = 2 * PAIRS;

    fn from_bits_of(isa: Isa, bits: &[u8], out: &mut [f32]) -> bool {
        groups(isa, bits, out) < RARE
    }

    fn refine(keystream: &Keystream, first_group: u64, bits: &[u8], out: &mut [f32]) {
        for (g, (bits, out)) in
            bits.chunks_exact(GROUP_BYTES).zip(out.chunks_exact_mut(2 * PAIRS)).enumerate()
        {
            for i in 0..PAIRS {
                let radius = word(bits, i);
                let (count, high) = fold(radius);
                if count < RARE {
                    let [more, _] = keystream.extra((first_group + g as u64) * PAIRS as u64 + i as u64);
                    let x = (f64::from(count) + (more as f64 + 0.5) / 2f64.powi(64)) / 2f64.powi(32);
                    (out[i], out[i + PAIRS]) = polar(radius_of(x as f32, high), word(bits, i + PAIRS));
                }
            }
        }
    }
}

per_isa! {
    /// Normals of whole groups of bits, and the least distance of any radius word from 0 or 1.
    fn groups(bits: &[u8], out: &mut [f32]) -> u32 = groups_body
}

#[inline(always)]
fn groups_body(bits: &[u8], out: &mut [f32]) -> u32 {
    let mut least = [u32::MAX; PAIRS];
    for (bits, out) in bits.chunks_exact(GROUP_BYTES).zip(out.chunks_exact_mut(2 * PAIRS)) {
        let (cosines, sines) = out.split_at_mut(PAIRS);
        for i in 0..PAIRS {
            let (count, high) = fold(word(bits, i));
            least[i] = least[i].min(count);
            let r = radius_of((count as f32 + 0.5) * SCALE, high);
            (cosines[i], sines[i]) = polar(r, word(bits, i + PAIRS));
        }
    }
    least.into_iter().min().unwrap_or(u32::MAX)
}

#[inline(always)]
fn word(bits: &[u8], i: usize) -> u32 {
    u32::from_le_bytes([bits[4 * i], bits[4 * i + 1], bits[4 * i + 2], bits[4 * i + 3]])
}

/// The distance of u from the nearer end, less 1/2, in units of 2^-32, and whether that end is 1.
#[inline(always)]
fn fold(word: u32) -> (u32, bool) {
    let high = word >= HIGH;
    (if high { !word } else { word }, high)
}

/// sqrt(-2 ln u) where u = 1 - x if `high`, else x.
#[inline(always)]
fn radius_of(x: f32, high: bool) -> f32 {
    const ROOT_HALF_BITS: u32 = std::f32::consts::FRAC_1_SQRT_2.to_bits();
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let bits = x.to_bits();
    let exponent = bits.wrapping_sub(ROOT_HALF_BITS) as i32 >> 23;
    let mantissa = f32::from_bits(bits.wrapping_sub((exponent << 23) as u32));
    let e = if high { 0.0 } else { exponent as f32 };
    let f = if high { -x } else { mantissa - 1.0 };
    let p = (-0.079_027_44f32)
        .mul_add(f, 0.126_223_2)
        .mul_add(f, -0.129_981_84)
        .mul_add(f, 0.142_144_96)
        .mul_add(f, -0.166_412_81)
        .mul_add(f, 0.200_010_45)
        .mul_add(f, -0.250_003_06)
        .mul_add(f, 0.333_333_3)
        .mul_add(f, -0.5);
    let ln = e.mul_add(LN_2_HIGH, e.mul_add(LN_2_LOW, (f * f).mul_add(p, f)));
    (-2.0 * ln).sqrt()
}

/// (r cos theta, r sin theta).
#[inline(always)]
fn polar(r: f32, angle: u32) -> (f32, f32) {
    let shifted = angle.wrapping_add(1 << 29);
    let quadrant = shifted >> 30;
    let rest = (shifted & 0x3FFF_FFFF) as i32 - (1 << 29);
    let x = (rest as f32 + 0.5) * (std::f32::consts::TAU * SCALE);
    let y = x * x;
    let s = (-1.958_789e-4f32).mul_add(y, 8.332_748e-3).mul_add(y, -0.166_666_65);
    let c = 2.454_794_2e-5f32.mul_add(y, -1.388_830_3e-3).mul_add(y, 0.041_666_665);
    let sine = (x * y).mul_add(s, x);
    let cosine = (y * y).mul_add(c, (-0.5f32).mul_add(y, 1.0));
    let odd = quadrant & 1 == 1;
    let (a, b) = if odd { (sine, cosine) } else { (cosine, sine) };
    let a = f32::from_bits(a.to_bits() ^ ((quadrant.wrapping_add(1) & 2) << 30));
    let b = f32::from_bits(b.to_bits() ^ ((quadrant & 2) << 30));
    (r * a, r * b)
}
