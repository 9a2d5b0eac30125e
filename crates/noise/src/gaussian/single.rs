//! Box-Muller in single precision: two 32-bit words make two normals.
//!
//! Radius word w: u = (w + 1/2) 2^-32 and r = sqrt(-2 ln u). Angle word a: theta = 2 pi (a + 1/2) 2^-32. The
//! coefficients are printed by `scripts/noise/polynomials.py`.

use safetensors::Dtype;

use super::Real;
use crate::cipher::{GROUP_BYTES, Keystream};

/// 2^32 / sqrt 2: from here on ln u is taken as ln(1 - x), which keeps relative accuracy up to u = 1.
const HIGH: u32 = 0xB504_F334;
/// Distances from 0 or 1 below this, in units of 2^-32, get 64 bits more: both ends are where a step of 2^-32 in u
/// is a visible step in r.
const RARE: u32 = 1 << 17;
const PAIRS: usize = 16;
const SCALE: f32 = 1.0 / 4_294_967_296.0;

impl Real for f32 {
    const PER_GROUP: usize = 2 * PAIRS;
    const ONE: Self = 1.0;
    const FAR: Self::Nearest = [u32::MAX; PAIRS];
    type Nearest = [u32; PAIRS];

    const DTYPE: Dtype = Dtype::F32;

    fn append_to(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_le_bytes());
    }

    fn from_bytes(bytes: &[u8]) -> f32 {
        f32::from_le_bytes(std::array::from_fn(|i| bytes[i]))
    }

    #[inline(always)]
    fn rounded(x: f64) -> f32 {
        x as f32
    }

    #[inline(always)]
    fn times_plus(self, factor: f32, term: f32) -> f32 {
        self.mul_add(factor, term)
    }

    #[inline(always)]
    fn group(bits: &[u8; GROUP_BYTES], out: &mut [f32], nearest: &mut Self::Nearest) {
        let words = words(bits);
        let (cosines, sines) = out[..2 * PAIRS].split_at_mut(PAIRS);
        for i in 0..PAIRS {
            nearest[i] = nearest[i].min(words[i].wrapping_add(RARE));
        }
        for i in 0..PAIRS {
            let (count, high) = fold(words[i]);
            let r = radius((count as f32).mul_add(signed_scale(high), 0.5 * SCALE), high);
            (cosines[i], sines[i]) = polar(r, words[i + PAIRS]);
        }
    }

    #[inline(always)]
    fn is_rare(nearest: &Self::Nearest) -> bool {
        nearest.iter().any(|&near| near < 2 * RARE)
    }

    fn refine(keystream: &Keystream, group: u64, bits: &[u8; GROUP_BYTES], out: &mut [f32]) {
        let words = words(bits);
        for i in 0..PAIRS {
            let (count, high) = fold(words[i]);
            if count < RARE {
                let [more, _] = keystream.extra(group * PAIRS as u64 + i as u64);
                let step = (more as f64 + 0.5) / 2f64.powi(64);
                let x = (f64::from(count).copysign(f64::from(signed_scale(high))) + step) / 2f64.powi(32);
                (out[i], out[i + PAIRS]) = polar(radius(x as f32, high), words[i + PAIRS]);
            }
        }
    }
}

#[inline(always)]
fn words(bits: &[u8; GROUP_BYTES]) -> [u32; 2 * PAIRS] {
    std::array::from_fn(|i| {
        u32::from_le_bytes([bits[4 * i], bits[4 * i + 1], bits[4 * i + 2], bits[4 * i + 3]])
    })
}

/// The distance of the word from the nearer end of 0..2^32, and whether that end is the upper one.
///
/// Not `!word`, which would make the loop an instruction slower on AVX-512: the compiler turns it into one that
/// waits for the register it overwrites.
#[inline(always)]
fn fold(word: u32) -> (u32, bool) {
    let high = word >= HIGH;
    (if high { 0u32.wrapping_sub(word) } else { word }, high)
}

/// What a distance is multiplied by, before half a step is added, to give u from the lower end and u - 1 from the
/// upper one.
#[inline(always)]
fn signed_scale(high: bool) -> f32 {
    if high { -SCALE } else { SCALE }
}

/// sqrt(-2 ln u) where x = u - 1 if `high`, else u.
#[inline(always)]
fn radius(x: f32, high: bool) -> f32 {
    const ROOT_HALF_BITS: u32 = std::f32::consts::FRAC_1_SQRT_2.to_bits();
    let bits = x.to_bits();
    let exponent = bits.wrapping_sub(ROOT_HALF_BITS) as i32 >> 23;
    let mantissa = f32::from_bits(bits.wrapping_sub((exponent << 23) as u32));
    let e = if high { 0.0 } else { exponent as f32 };
    let f = if high { x } else { mantissa - 1.0 };
    // -2 ln(1 + f) = -2 f + f^2 P(f), P by halves: a shorter chain of operations than one factor at a time.
    let (f2, f4) = (f * f, (f * f) * (f * f));
    let p01 = (-0.666_666_6f32).mul_add(f, 1.0);
    let p23 = (-0.400_020_9f32).mul_add(f, 0.500_006_1);
    let p45 = (-0.284_289_92f32).mul_add(f, 0.332_825_63);
    let p67 = (-0.252_446_4f32).mul_add(f, 0.259_963_67);
    let p03 = p23.mul_add(f2, p01);
    let p48 = 0.158_054_88f32.mul_add(f4, p67.mul_add(f2, p45));
    let p = p48.mul_add(f4, p03);
    e.mul_add(-2.0 * std::f32::consts::LN_2, f2.mul_add(p, -2.0 * f)).sqrt()
}

/// (r cos theta, r sin theta).
#[inline(always)]
fn polar(r: f32, angle: u32) -> (f32, f32) {
    // The nearest quarter turn, and the rest of the angle as a signed fraction of a quarter turn.
    let shifted = angle.wrapping_add(1 << 29);
    let rest = (angle << 2) as i32 as f32;
    let x = rest.mul_add(std::f32::consts::FRAC_PI_2 * SCALE, std::f32::consts::PI * SCALE);
    let y = x * x;
    let s = (-1.958_789e-4f32).mul_add(y, 8.332_748e-3).mul_add(y, -0.166_666_65);
    let c = 2.454_794_2e-5f32.mul_add(y, -1.388_830_3e-3).mul_add(y, 0.041_666_665);
    let sine = (x * y).mul_add(s, x);
    let cosine = (y * y).mul_add(c, (-0.5f32).mul_add(y, 1.0));
    let odd = shifted & (1 << 30) != 0;
    let (a, b) = if odd { (sine, cosine) } else { (cosine, sine) };
    let cosine_sign = shifted.wrapping_add(1 << 30) & (1 << 31);
    let a = f32::from_bits(a.to_bits() ^ cosine_sign);
    let b = f32::from_bits(b.to_bits() ^ (shifted & (1 << 31)));
    (r * a, r * b)
}
