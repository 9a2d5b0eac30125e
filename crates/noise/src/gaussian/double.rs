//! Box-Muller in double precision: two 64-bit words make two normals, as in [`super::single`].

use super::Real;
use crate::cipher::{GROUP_BYTES, Keystream};
use crate::simd::{Isa, per_isa};

const HIGH: u64 = 0xB504_F333_F9DE_6485;
const RARE: u64 = 1 << 46;
const PAIRS: usize = 8;
const SCALE: f64 = 1.0 / 18_446_744_073_709_551_616.0;

impl Real for f64 {
    const PER_GROUP: usize = 2 * PAIRS;

    fn from_bits_of(isa: Isa, bits: &[u8], out: &mut [f64]) -> bool {
        groups(isa, bits, out) < RARE
    }

    fn refine(keystream: &Keystream, first_group: u64, bits: &[u8], out: &mut [f64]) {
        for (g, (bits, out)) in
            bits.chunks_exact(GROUP_BYTES).zip(out.chunks_exact_mut(2 * PAIRS)).enumerate()
        {
            for i in 0..PAIRS {
                let (count, high) = fold(word(bits, i));
                if count < RARE {
                    let [more, _] = keystream.extra((first_group + g as u64) * PAIRS as u64 + i as u64);
                    let x = (count as f64 + (more as f64 + 0.5) * SCALE) * SCALE;
                    (out[i], out[i + PAIRS]) = polar(radius_of(x, high), word(bits, i + PAIRS));
                }
            }
        }
    }
}

per_isa! {
    /// Normals of whole groups of bits, and the least distance of any radius word from 0 or 1.
    fn groups(bits: &[u8], out: &mut [f64]) -> u64 = groups_body
}

#[inline(always)]
fn groups_body(bits: &[u8], out: &mut [f64]) -> u64 {
    let mut least = [u64::MAX; PAIRS];
    for (bits, out) in bits.chunks_exact(GROUP_BYTES).zip(out.chunks_exact_mut(2 * PAIRS)) {
        let (cosines, sines) = out.split_at_mut(PAIRS);
        for i in 0..PAIRS {
            let (count, high) = fold(word(bits, i));
            least[i] = least[i].min(count);
            let r = radius_of((count as f64 + 0.5) * SCALE, high);
            (cosines[i], sines[i]) = polar(r, word(bits, i + PAIRS));
        }
    }
    least.into_iter().min().unwrap_or(u64::MAX)
}

#[inline(always)]
fn word(bits: &[u8], i: usize) -> u64 {
    let b = &bits[8 * i..8 * i + 8];
    u64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]])
}

#[inline(always)]
fn fold(word: u64) -> (u64, bool) {
    let high = word >= HIGH;
    (if high { !word } else { word }, high)
}

/// sqrt(-2 ln u) where u = 1 - x if `high`, else x; ln(1 + f) = 2 atanh(s), s = f / (2 + f).
#[inline(always)]
fn radius_of(x: f64, high: bool) -> f64 {
    const ROOT_HALF_BITS: u64 = std::f64::consts::FRAC_1_SQRT_2.to_bits();
    const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    let bits = x.to_bits();
    let exponent = (bits.wrapping_sub(ROOT_HALF_BITS) as i64 >> 32) as i32 >> 20;
    let mantissa = f64::from_bits(bits.wrapping_sub((i64::from(exponent) << 52) as u64));
    let e = if high { 0.0 } else { f64::from(exponent) };
    let f = if high { -x } else { mantissa - 1.0 };
    let s = f / (2.0 + f);
    let z = s * s;
    let p = 0.146_164_496_850_436_06f64
        .mul_add(z, 0.153_317_216_005_560_4)
        .mul_add(z, 0.181_828_891_252_617_2)
        .mul_add(z, 0.222_222_111_347_950_8)
        .mul_add(z, 0.285_714_286_259_754_85)
        .mul_add(z, 0.399_999_999_998_995_04)
        .mul_add(z, 0.666_666_666_666_667);
    // 2 s = f - s f, exactly enough: the rounding of s then meets a factor below 0.21.
    let remainder = s * (z * p - f);
    let ln = e.mul_add(LN_2_HIGH, e.mul_add(LN_2_LOW, remainder) + f);
    (-2.0 * ln).sqrt()
}

/// (r cos theta, r sin theta).
#[inline(always)]
fn polar(r: f64, angle: u64) -> (f64, f64) {
    let shifted = angle.wrapping_add(1 << 61);
    let quadrant = shifted >> 62;
    let rest = (shifted & (u64::MAX >> 2)) as i64 - (1 << 61);
    let x = (rest as f64 + 0.5) * (std::f64::consts::TAU * SCALE);
    let y = x * x;
    let s = 1.591_812_929_486_660_9e-10f64
        .mul_add(y, -2.505_113_184_500_362_6e-8)
        .mul_add(y, 2.755_731_610_255_244e-6)
        .mul_add(y, -1.984_126_983_675_857_4e-4)
        .mul_add(y, 8.333_333_333_330_948e-3)
        .mul_add(y, -0.166_666_666_666_666_65);
    let c = (-1.138_263_242_552_171_8e-11f64)
        .mul_add(y, 2.087_614_626_840_32e-9)
        .mul_add(y, -2.755_731_727_172_979_4e-7)
        .mul_add(y, 2.480_158_729_876_569e-5)
        .mul_add(y, -1.388_888_888_888_739_8e-3)
        .mul_add(y, 0.041_666_666_666_666_664);
    let sine = (x * y).mul_add(s, x);
    let cosine = (y * y).mul_add(c, (-0.5f64).mul_add(y, 1.0));
    let odd = quadrant & 1 == 1;
    let (a, b) = if odd { (sine, cosine) } else { (cosine, sine) };
    let a = f64::from_bits(a.to_bits() ^ ((quadrant.wrapping_add(1) & 2) << 62));
    let b = f64::from_bits(b.to_bits() ^ ((quadrant & 2) << 62));
    (r * a, r * b)
}
