//! Standard normals from keystreams, by a vectorised Box-Muller transform whose tails are not cut.

mod double;
mod exact;
mod single;

pub(crate) use exact::{Pair, exact_normal};

use std::fmt;
use std::ops::{Add, Mul};

use safetensors::Dtype;
use zeroize::Zeroize;

use crate::cipher::{Cipher, GROUP_BYTES, KeySource, Keystream};
use crate::correlator::{is_large, write_scaled};
use crate::simd::{Isa, per_isa};
use crate::{Key, NOISE};

/// Coordinates that are made at a time: their bits, normals and a few buffers stay in the first-level cache.
pub(crate) const TILE: usize = 1024;

/// Groups that are made together where bits and normals are made in one loop.
pub(crate) const FUSED_GROUPS: usize = 4;

/// A floating-point type that normals are made in.
pub(crate) trait Real:
    Copy + Default + Send + Sync + Zeroize + Add<Output = Self> + Mul<Output = Self> + 'static
{
    /// The number 1.
    const ONE: Self;

    /// The type's name in checkpoints.
    const DTYPE: Dtype;

    /// Appends its bytes, little-endian.
    fn append_to(self, bytes: &mut Vec<u8>);

    /// The number of these bytes.
    fn from_bytes(bytes: &[u8]) -> Self;

    /// `x` rounded to this type.
    fn rounded(x: f64) -> Self;

    /// self * factor + term, rounded once.
    fn times_plus(self, factor: Self, term: Self) -> Self;

    /// Normals made from one group of keystream.
    const PER_GROUP: usize;
    /// The least radius word so far, lane by lane, counted from below the rare ones at the upper end.
    type Nearest: Copy;
    /// No word seen.
    const FAR: Self::Nearest;

    /// Makes the normals of one group, and takes note of its radius words.
    fn group(bits: &[u8; GROUP_BYTES], out: &mut [Self], nearest: &mut Self::Nearest);

    /// True when a radius word was so near an end that it needs more bits.
    fn is_rare(nearest: &Self::Nearest) -> bool;

    /// Makes the rare pairs of a group anew, with their further bits.
    fn refine(keystream: &Keystream, group: u64, bits: &[u8; GROUP_BYTES], out: &mut [Self]);
}

per_isa! {
    /// Normals of whole groups of bits; true when some are rare.
    fn groups[T: Real](bits: &[[u8; GROUP_BYTES]], out: &mut [T]) -> bool = groups_body
}

#[inline(always)]
fn groups_body<T: Real>(bits: &[[u8; GROUP_BYTES]], out: &mut [T]) -> bool {
    let mut nearest = T::FAR;
    for (bits, out) in bits.iter().zip(out.chunks_exact_mut(T::PER_GROUP)) {
        T::group(bits, out, &mut nearest);
    }
    T::is_rare(&nearest)
}

/// Room for the bits and normals of one tile, whatever its alignment.
pub(crate) struct NormalTile<T> {
    isa: Isa,
    bits: Box<[u8]>,
    normals: Box<[T]>,
}

impl<T: Real> NormalTile<T> {
    pub(crate) fn new(isa: Isa) -> Self {
        let groups = (TILE / T::PER_GROUP + 1).next_multiple_of(FUSED_GROUPS);
        let bits = vec![0; groups * GROUP_BYTES].into_boxed_slice();
        Self { isa, bits, normals: vec![T::default(); groups * T::PER_GROUP].into_boxed_slice() }
    }

    /// Coordinates `start`, ..., `start + len - 1` of the keystream's vector; len is at most [`TILE`].
    pub(crate) fn make(&mut self, keystream: &Keystream, start: u64, len: usize) -> &[T] {
        self.make_mut(keystream, start, len)
    }

    /// The same, for a caller that works on in their place.
    pub(crate) fn make_mut(&mut self, keystream: &Keystream, start: u64, len: usize) -> &mut [T] {
        let first_group = start / T::PER_GROUP as u64;
        let offset = (start % T::PER_GROUP as u64) as usize;
        let groups = (offset + len).div_ceil(T::PER_GROUP);
        let whole = groups.next_multiple_of(FUSED_GROUPS) * T::PER_GROUP;
        let fused = keystream.fused(self.isa, first_group, &mut self.normals[..whole]);
        let normals = &mut self.normals[..groups * T::PER_GROUP];
        if fused != Some(false) {
            let bits = &mut self.bits[..groups * GROUP_BYTES];
            keystream.fill(first_group, bits);
            let (bits, _) = bits.as_chunks();
            if fused.unwrap_or_else(|| self::groups(self.isa, bits, normals)) {
                for (g, (bits, out)) in bits.iter().zip(normals.chunks_exact_mut(T::PER_GROUP)).enumerate() {
                    T::refine(keystream, first_group + g as u64, bits, out);
                }
            }
        }
        &mut normals[offset..offset + len]
    }

    /// The same, written to `out`, which is part of a `large` one or not.
    fn make_into(&mut self, keystream: &Keystream, start: u64, large: bool, out: &mut [T]) {
        let per_group = T::PER_GROUP as u64;
        let whole = start.is_multiple_of(per_group) && out.len().is_multiple_of(FUSED_GROUPS * T::PER_GROUP);
        if large || !whole || keystream.fused(self.isa, start / per_group, out) != Some(false) {
            let isa = self.isa;
            write_scaled(isa, large, T::ONE, self.make(keystream, start, out.len()), out);
        }
    }
}

/// The seed noise itself: standard normals z_s\[j\] addressed by (seed s, coordinate j).
///
/// Each is within 2^-19 (single) or 2^-47 (double precision) of a true Gaussian, with tails to 11.5 standard
/// deviations; see `docs/noise.md`.
///
/// ```
/// use antinoise_noise::{Key, SeedNoise};
/// let mut noise = SeedNoise::new(&Key::from_seed_insecure(7), Default::default());
/// let (mut whole, mut part) = ([0.0f32; 100], [0.0f32; 10]);
/// noise.fill(3, 0, &mut whole);
/// noise.fill(3, 90, &mut part);
/// assert_eq!(whole[90..], part);
/// ```
pub struct SeedNoise {
    keys: KeySource,
    single: NormalTile<f32>,
    double: NormalTile<f64>,
}

impl SeedNoise {
    /// The seed noise of streams with this key and cipher.
    pub fn new(key: &Key, cipher: Cipher) -> Self {
        Self::on(Isa::detect(), key, cipher)
    }

    pub(crate) fn on(isa: Isa, key: &Key, cipher: Cipher) -> Self {
        let keys = KeySource::new(key, cipher, NOISE);
        Self { keys, single: NormalTile::new(isa), double: NormalTile::new(isa) }
    }

    /// out\[i\] = z_seed\[start + i\] in single precision: what a stream uses.
    pub fn fill(&mut self, seed: u64, start: u64, out: &mut [f32]) {
        fill(&self.keys.keystream(seed), &mut self.single, start, out);
    }

    /// out\[i\] = z_seed\[start + i\] in double precision: numbers of their own, not the ones of
    /// [`SeedNoise::fill`] with more digits.
    pub fn fill_f64(&mut self, seed: u64, start: u64, out: &mut [f64]) {
        fill(&self.keys.keystream(seed), &mut self.double, start, out);
    }
}

fn fill<T: Real>(keystream: &Keystream, tile: &mut NormalTile<T>, start: u64, out: &mut [T]) {
    let (mut at, large) = (start, is_large(out));
    for part in out.chunks_mut(TILE) {
        tile.make_into(keystream, at, large, part);
        at += part.len() as u64;
    }
}

impl fmt::Debug for SeedNoise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SeedNoise(..)")
    }
}

#[cfg(test)]
mod tests;
