//! Box-Muller in double precision: two 64-bit words make two normals.
//!
//! Radius word w: u = (w + 1/2) 2^-64 and r = sqrt(-2 ln u). Angle word a: theta = 2 pi (a + 1/2) 2^-64. The
//! coefficients are printed by `scripts/noise/polynomials.py`.

use safetensors::Dtype;

use super::Real;
use crate::cipher::{GROUP_BYTES, Keystream};
use crate::simd::Lookup;

/// 2^64 / sqrt 2: from here on ln u is taken as ln(1 - x), which keeps relative accuracy up to u = 1.
const HIGH: u64 = 0xB504_F333_F9DE_6485;
/// Distances from 0 or 1 below this, in units of 2^-64, get 64 bits more: both ends are where a step of 2^-64 in u
/// is a visible step in r.
const RARE: u64 = 1 << 46;
const PAIRS: usize = 8;
const SCALE: f64 = 1.0 / 18_446_744_073_709_551_616.0;

impl Real for f64 {
    const PER_GROUP: usize = 2 * PAIRS;
    const ONE: Self = 1.0;
    const FAR: Self::Nearest = [u64::MAX; PAIRS];
    /// The least radius word, counted from below the rare ones at the upper end.
    type Nearest = [u64; PAIRS];

    const DTYPE: Dtype = Dtype::F64;

    fn append_to(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_le_bytes());
    }

    fn from_bytes(bytes: &[u8]) -> f64 {
        f64::from_le_bytes(std::array::from_fn(|i| bytes[i]))
    }

    #[inline(always)]
    fn rounded(x: f64) -> f64 {
        x
    }

    #[inline(always)]
    fn times_plus(self, factor: f64, term: f64) -> f64 {
        self.mul_add(factor, term)
    }

    #[inline(always)]
    fn group<L: Lookup>(bits: &[u8; GROUP_BYTES], out: &mut [f64], nearest: &mut Self::Nearest) {
        let (cosines, sines) = out[..2 * PAIRS].split_at_mut(PAIRS);
        for i in 0..PAIRS {
            let (radius_word, angle) = (word(bits, i), word(bits, i + PAIRS));
            nearest[i] = nearest[i].min(radius_word.wrapping_add(RARE));
            let (count, high) = fold(radius_word);
            let r = radius((count as f64).mul_add(signed_scale(high), 0.5 * SCALE), high);
            (cosines[i], sines[i]) = polar(r, angle);
        }
    }

    #[inline(always)]
    fn is_rare(nearest: &Self::Nearest) -> bool {
        nearest.iter().fold(u64::MAX, |least, &near| least.min(near)) < 2 * RARE
    }

    fn refine(keystream: &Keystream, group: u64, bits: &[u8; GROUP_BYTES], out: &mut [f64]) {
        for i in 0..PAIRS {
            let (count, high) = fold(word(bits, i));
            if count < RARE {
                let [more, _] = keystream.extra(group * PAIRS as u64 + i as u64);
                let x = ((count as f64).copysign(signed_scale(high)) + (more as f64 + 0.5) * SCALE) * SCALE;
                (out[i], out[i + PAIRS]) = polar(radius(x, high), word(bits, i + PAIRS));
            }
        }
    }
}

#[inline(always)]
fn word(bits: &[u8; GROUP_BYTES], i: usize) -> u64 {
    u64::from_le_bytes(bits.as_chunks().0[i])
}

/// The distance of the word from the nearer end of 0..2^64, and whether that end is the upper one.
///
/// Not `!word`, which would make the loop an instruction slower on AVX-512: the compiler turns it into one that
/// waits for the register it overwrites.
#[inline(always)]
fn fold(word: u64) -> (u64, bool) {
    let high = word >= HIGH;
    (if high { 0u64.wrapping_sub(word) } else { word }, high)
}

/// What a distance is multiplied by, before half a step is added, to give u from the lower end and u - 1 from the
/// upper one.
#[inline(always)]
fn signed_scale(high: bool) -> f64 {
    if high { -SCALE } else { SCALE }
}

/// sqrt(-2 ln u) where x = u - 1 if `high`, else u; ln(1 + f) = 2 atanh(s), s = f / (2 + f).
#[inline(always)]
pub(super) fn radius(x: f64, high: bool) -> f64 {
    const ROOT_HALF_BITS: u64 = std::f64::consts::FRAC_1_SQRT_2.to_bits();
    const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    let bits = x.to_bits();
    let exponent = (bits.wrapping_sub(ROOT_HALF_BITS) as i64 >> 32) as i32 >> 20;
    let mantissa = f64::from_bits(bits.wrapping_sub((i64::from(exponent) << 52) as u64));
    let e = if high { 0.0 } else { f64::from(exponent) };
    let f = if high { x } else { mantissa - 1.0 };
    let s = f / (2.0 + f);
    let z = s * s;
    let z2 = z * z;
    let p01 = 0.399_999_999_998_995_04f64.mul_add(z, 0.666_666_666_666_667);
    let p23 = 0.222_222_111_347_950_8f64.mul_add(z, 0.285_714_286_259_754_85);
    let p45 = 0.153_317_216_005_560_4f64.mul_add(z, 0.181_828_891_252_617_2);
    let p46 = 0.146_164_496_850_436_06f64.mul_add(z2, p45);
    let p = p46.mul_add(z2, p23).mul_add(z2, p01);
    // 2 s = f - s f, exactly enough: the rounding of s then meets a factor below 0.21.
    let remainder = s * (z * p - f);
    (-2.0 * e.mul_add(LN_2_HIGH, e.mul_add(LN_2_LOW, remainder) + f)).sqrt()
}

/// (r cos theta, r sin theta).
#[inline(always)]
fn polar(r: f64, angle: u64) -> (f64, f64) {
    let shifted = angle.wrapping_add(1 << 61);
    let rest = (angle << 2) as i64 as f64;
    let x = rest.mul_add(std::f64::consts::FRAC_PI_2 * SCALE, std::f64::consts::PI * SCALE);
    let y = x * x;
    let y2 = y * y;
    let s01 = 8.333_333_333_330_948e-3f64.mul_add(y, -0.166_666_666_666_666_65);
    let s23 = 2.755_731_610_255_244e-6f64.mul_add(y, -1.984_126_983_675_857_4e-4);
    let s45 = 1.591_812_929_486_660_9e-10f64.mul_add(y, -2.505_113_184_500_362_6e-8);
    let s = s45.mul_add(y2, s23).mul_add(y2, s01);
    let c01 = (-1.388_888_888_888_739_8e-3f64).mul_add(y, 0.041_666_666_666_666_664);
    let c23 = (-2.755_731_727_172_979_4e-7f64).mul_add(y, 2.480_158_729_876_569e-5);
    let c45 = (-1.138_263_242_552_171_8e-11f64).mul_add(y, 2.087_614_626_840_32e-9);
    let c = c45.mul_add(y2, c23).mul_add(y2, c01);
    let sine = (x * y).mul_add(s, x);
    let cosine = y2.mul_add(c, (-0.5f64).mul_add(y, 1.0));
    let odd = shifted & (1 << 62) != 0;
    let (a, b) = if odd { (sine, cosine) } else { (cosine, sine) };
    let cosine_sign = shifted.wrapping_add(1 << 62) & (1 << 63);
    let a = f64::from_bits(a.to_bits() ^ cosine_sign);
    let b = f64::from_bits(b.to_bits() ^ (shifted & (1 << 63)));
    (r * a, r * b)
}
