//! Box-Muller in double precision: two 64-bit words make two normals.
//!
//! The radius word w gives u = (w + 1/2) 2^-64 and r = sqrt(-2 ln u), and the angle word a gives theta = 2 pi
//! (a + 1/2) 2^-64; the normals are r cos theta and r sin theta. `scripts/noise/polynomials.py` prints the
//! coefficients and tables.

use super::transform::Normal;
use crate::keystream::{GROUP_BLOCKS, GROUP_BYTES, Keystream};
use crate::simd::{Aligned, Instructions};

/// 2^64 (1 - 2^-5). From this word on, ln u is computed as ln(1 - x), which has a small relative error up to
/// u = 1.
const HIGH: u64 = 0xF800_0000_0000_0000;
/// Words at a distance below this from 0 or 2^64 are rare and get 64 further bits: near both ends, a
/// difference of 2^-64 in u changes r by more than the accuracy of normals.
const RARE: u64 = 1 << 46;
const PAIRS: usize = 8;
const SCALE: f64 = 1.0 / 18_446_744_073_709_551_616.0;

impl Normal for f64 {
    const PER_GROUP: usize = 2 * PAIRS;
    /// The first half of a group holds the radius words, the second the angle words.
    const PIECES: usize = GROUP_BLOCKS / 2;
    const NONE_SEEN: Self::Extremes = [u64::MAX; PAIRS];
    /// For each lane, the smallest radius word after `RARE` is added modulo 2^64: so the rare words, which
    /// are near 0 and near 2^64, become the smallest.
    type Extremes = [u64; PAIRS];

    #[inline(always)]
    fn group(
        set: impl Instructions,
        bits: &[u8; GROUP_BYTES],
        out: &mut [f64],
        extremes: &mut Self::Extremes,
    ) {
        let (cosines, sines) = out[..2 * PAIRS].split_at_mut(PAIRS);
        let words: [u64; PAIRS] = std::array::from_fn(|i| word(bits, i));
        let x: [f64; PAIRS] = std::array::from_fn(|i| {
            let (count, high) = fold(words[i]);
            (count as f64).mul_add(signed_scale(high), 0.5 * SCALE)
        });
        let place: [u64; PAIRS] = std::array::from_fn(|i| x[i].to_bits() >> 48);
        let (inverse, log) = (set.pick(&INVERSES.0, &place), set.pick(&LOGS.0, &place));
        for i in 0..PAIRS {
            extremes[i] = extremes[i].min(words[i].wrapping_add(RARE));
            let r = radius_by(x[i], words[i] >= HIGH, inverse[i], log[i]);
            (cosines[i], sines[i]) = polar(r, word(bits, i + PAIRS));
        }
    }

    #[inline(always)]
    fn has_rare(extremes: &Self::Extremes) -> bool {
        extremes.iter().fold(u64::MAX, |least, &near| least.min(near)) < 2 * RARE
    }

    fn refine(keystream: &Keystream, blocks: [u64; GROUP_BLOCKS], bits: &[u8; GROUP_BYTES], out: &mut [f64]) {
        for i in 0..PAIRS {
            let (count, high) = fold(word(bits, i));
            if count < RARE {
                let (group, piece) =
                    (blocks[i / 2] / GROUP_BLOCKS as u64, blocks[i / 2] % GROUP_BLOCKS as u64);
                let [more, _] = keystream.extra(group * PAIRS as u64 + 2 * piece + i as u64 % 2);
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
/// It is computed as `0 - word`, not `!word`, for which the compiler chooses an instruction that waits for
/// the register it overwrites; this slows the loop down on AVX-512.
#[inline(always)]
fn fold(word: u64) -> (u64, bool) {
    let high = word >= HIGH;
    (if high { 0u64.wrapping_sub(word) } else { word }, high)
}

/// The factor that maps the distance from an end, before half a step is added, to u (lower end) or to u - 1
/// (upper end).
#[inline(always)]
fn signed_scale(high: bool) -> f64 {
    if high { -SCALE } else { SCALE }
}

/// The numbers 32 / (33 + 2 k): the product with a number between 1 + k / 16 and 1 + (k + 1) / 16 is close to
/// 1.
#[rustfmt::skip]
static INVERSES: Aligned<[f64; 16]> = Aligned([
    0.9696969696969697, 0.9142857142857143, 0.8648648648648649, 0.8205128205128205,
    0.7804878048780488, 0.7441860465116279, 0.7111111111111111, 0.6808510638297872,
    0.6530612244897959, 0.6274509803921569, 0.6037735849056604, 0.5818181818181818,
    0.5614035087719298, 0.5423728813559322, 0.5245901639344263, 0.5079365079365079,
]);
/// Twice the logarithms of [`INVERSES`].
#[rustfmt::skip]
static LOGS: Aligned<[f64; 16]> = Aligned([
    -0.06154331733350732, -0.17922431737937433, -0.29036401968899567, -0.39565148665983985,
    -0.4956723278091624, -0.5909284257876718, -0.6818531739411864, -0.7688233978206641,
    -0.8521687906218003, -0.9321794598491985, -1.0091120215047906, -1.0831945648654888,
    -1.1546307300696472, -1.2236030822119859, -1.2902759227471694, -1.3547976471836123,
]);

/// Returns r = sqrt(-2 ln u), where x = u - 1 if `high`, and x = u otherwise.
#[inline(always)]
pub(super) fn radius(x: f64, high: bool) -> f64 {
    let place = (x.to_bits() >> 48) as usize % 16;
    radius_by(x, high, INVERSES.0[place], LOGS.0[place])
}

/// Returns the same by ln u = e ln 2 + ln(1 + f) - ln c, where u = 2^e m, c = `inverse` is close to 1 / m,
/// and f = m c - 1.
#[inline(always)]
fn radius_by(x: f64, high: bool, inverse: f64, log: f64) -> f64 {
    const ONE: u64 = 1f64.to_bits();
    let exponent = x.to_bits().wrapping_sub(ONE) as i64 >> 52;
    let mantissa = f64::from_bits(x.to_bits() & ((1 << 52) - 1) | ONE);
    let f = if high { x } else { mantissa.mul_add(inverse, -1.0) };
    let base = if high { 0.0 } else { (exponent as f64).mul_add(-2.0 * std::f64::consts::LN_2, log) };
    let f2 = f * f;
    let f4 = f2 * f2;
    let p01 = (-0.6666666666872848f64).mul_add(f, 0.9999999999999902);
    let p23 = (-0.3999998258595522f64).mul_add(f, 0.5000000002670425);
    let p45 = (-0.2860822607829977f64).mul_add(f, 0.3333323015872702);
    let p46 = 0.25107092296852385f64.mul_add(f2, p45);
    let p = p46.mul_add(f4, p23.mul_add(f2, p01));
    f.mul_add(f.mul_add(p, -2.0), base).sqrt()
}

/// Returns (r cos theta, r sin theta).
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
