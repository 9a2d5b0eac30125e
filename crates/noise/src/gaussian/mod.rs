//! Standard normals from keystreams, by a vectorised Box-Muller transform whose tails are not cut.

mod double;
mod single;

use std::fmt;

use crate::cipher::{Cipher, GROUP_BYTES, KeySource, Keystream};
use crate::simd::Isa;
use crate::{Key, NOISE};

/// Coordinates that are made at a time: their bits, normals and a few buffers stay in the first-level cache.
pub(crate) const TILE: usize = 1024;

/// A floating-point type that normals are made in.
pub(crate) trait Real: Copy {
    /// Normals made from one group of keystream.
    const PER_GROUP: usize;

    /// Makes the normals of whole groups; true when a radius word is so near an end that it needs more bits.
    fn from_bits_of(isa: Isa, bits: &[u8], out: &mut [Self]) -> bool;

    /// Makes the rare pairs anew, with their further bits.
    fn refine(keystream: &Keystream, first_group: u64, bits: &[u8], out: &mut [Self]);
}

/// Room for the bits and normals of one tile, whatever its alignment.
pub(crate) struct NormalTile<T> {
    isa: Isa,
    bits: Box<[u8]>,
    normals: Box<[T]>,
}

impl<T: Real + Default> NormalTile<T> {
    pub(crate) fn new(isa: Isa) -> Self {
        let groups = TILE / T::PER_GROUP + 2;
        let bits = vec![0; groups * GROUP_BYTES].into_boxed_slice();
        Self { isa, bits, normals: vec![T::default(); groups * T::PER_GROUP].into_boxed_slice() }
    }

    /// Coordinates `start`, ..., `start + len - 1` of the keystream's vector; len is at most [`TILE`].
    pub(crate) fn make(&mut self, keystream: &Keystream, start: u64, len: usize) -> &[T] {
        let first_group = start / T::PER_GROUP as u64;
        let offset = (start % T::PER_GROUP as u64) as usize;
        let groups = (offset + len).div_ceil(T::PER_GROUP);
        let bits = &mut self.bits[..groups * GROUP_BYTES];
        let normals = &mut self.normals[..groups * T::PER_GROUP];
        keystream.fill(first_group, bits);
        if T::from_bits_of(self.isa, bits, normals) {
            T::refine(keystream, first_group, bits, normals);
        }
        &normals[offset..offset + len]
    }
}

/// The seed noise itself: standard normals z_s\[j\] addressed by (seed s, coordinate j).
///
/// Each is within 2^-20 (single) or 2^-48 (double precision) of a true Gaussian, with tails to 11.5 standard
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

fn fill<T: Real + Default>(keystream: &Keystream, tile: &mut NormalTile<T>, start: u64, out: &mut [T]) {
    let mut at = start;
    for part in out.chunks_mut(TILE) {
        part.copy_from_slice(tile.make(keystream, at, part.len()));
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
