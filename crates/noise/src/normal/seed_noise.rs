//! Seed noise: the independent normals from which rows of noise are computed.

use std::fmt;

use super::coordinates::Coordinates;
use super::tile::NormalTile;
use super::transform::Normal;
use crate::key::Derived;
use crate::keystream::{KeySource, Keystream};
use crate::simd::{Isa, Transfer, fence, is_large};
use crate::{Cipher, Key};

/// Seed noise: standard normals z_s\[j\] addressed by (seed s, coordinate j).
///
/// Each normal is within 2^-19 (single precision) or 2^-47 (double precision) of an exact Gaussian, whose
/// tails extend to 11 standard deviations; see `docs/noise.md`.
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
    single: [NormalTile<f32>; 2],
    double: [NormalTile<f64>; 2],
}

impl SeedNoise {
    /// Creates normals that no stream uses; for the seed noise of a stream see
    /// [`StreamBuilder::seed_noise`](crate::StreamBuilder::seed_noise).
    pub fn new(key: &Key, cipher: Cipher) -> Self {
        Self::of(&key.derive(Derived::Normals(cipher.name())), cipher)
    }

    /// The seed noise of a stream; `key` is the key of its noise.
    pub(crate) fn of(key: &Key, cipher: Cipher) -> Self {
        let isa = Isa::detect();
        let single = [0; 2].map(|_| NormalTile::with_room(isa, portion::<f32>()));
        let double = [0; 2].map(|_| NormalTile::with_room(isa, portion::<f64>()));
        Self { keys: KeySource::new(key, cipher), single, double }
    }

    /// Sets out\[i\] to z_seed\[start + i\] in single precision, the seed noise of plain streams.
    pub fn fill(&mut self, seed: u64, start: u64, out: &mut [f32]) {
        fill(&self.keys.keystream(seed), &mut self.single, start, out);
    }

    /// Sets out\[i\] to z_seed\[start + i\] in double precision, the seed noise of streams on a grid. These
    /// normals differ from those of [`SeedNoise::fill`], and not only in their precision.
    pub fn fill_f64(&mut self, seed: u64, start: u64, out: &mut [f64]) {
        fill(&self.keys.keystream(seed), &mut self.double, start, out);
    }
}

/// Number of coordinates that are made together. It is large, since the first bits of each portion do not
/// overlap with other work; two portions fit in the first-level cache.
const fn portion<T>() -> usize {
    (16 << 10) / size_of::<T>()
}

fn fill<T: Normal>(keystream: &Keystream, tiles: &mut [NormalTile<T>; 2], start: u64, out: &mut [T]) {
    if is_large::<T>(out.len()) {
        return fill_past_caches(keystream, tiles, start, out);
    }
    let mut at = start;
    for part in out.chunks_mut(portion::<T>()) {
        tiles[0].make_into(keystream, Coordinates::From(at), part);
        at += part.len() as u64;
    }
}

/// Makes each portion while the previous one is written directly to main memory.
fn fill_past_caches<T: Normal>(
    keystream: &Keystream,
    [made, written]: &mut [NormalTile<T>; 2],
    start: u64,
    out: &mut [T],
) {
    let (isa, offset) = (made.isa, (start % T::PER_GROUP as u64) as usize);
    let (mut made, mut written) = (made, written);
    let (mut at, mut waiting): (u64, &mut [T]) = (start, &mut []);
    for part in out.chunks_mut(portion::<T>()) {
        let transfer = Transfer::copying(&written.made(offset)[..waiting.len()], waiting);
        made.make_while(keystream, at, part.len(), transfer);
        (at, waiting) = (at + part.len() as u64, part);
        std::mem::swap(&mut made, &mut written);
    }
    Transfer::copying(&written.made(offset)[..waiting.len()], waiting).finish(isa);
    fence();
}

impl fmt::Debug for SeedNoise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SeedNoise(..)")
    }
}
