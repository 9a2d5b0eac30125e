//! Standard normals from keystreams, by vectorised transforms whose tails are not cut.

mod double;
mod exact;
mod single;
mod single_table;

pub(crate) use exact::{Pair, exact_normal};

use std::fmt;
use std::ops::{Add, Mul};

use zeroize::Zeroizing;

use crate::Key;
use crate::aligned::AlignedNumbers;
use crate::checkpoint::Stored;
use crate::cipher::{Cipher, GROUP_BYTES, KeySource, Keystream};
use crate::correlator::{Aside, Portions, is_large};
use crate::simd::{self, Isa, Level, Lookup};

/// Coordinates that are made at a time: their bits, normals and a few buffers stay in the first-level cache.
pub(crate) const TILE: usize = 1024;

/// Groups that are made together where bits and normals are made in one loop.
pub(crate) const FUSED_GROUPS: usize = 4;

/// A floating-point type that normals are made in.
pub(crate) trait Real: Stored + Add<Output = Self> + Mul<Output = Self> {
    /// The number 1.
    const ONE: Self;

    /// `x` rounded to this type.
    fn rounded(x: f64) -> Self;

    /// self * factor + term, rounded once.
    fn times_plus(self, factor: Self, term: Self) -> Self;

    /// Normals made from one group of keystream.
    const PER_GROUP: usize;
    /// What tells, lane by lane, whether a word so far was rare: so near an end that it needs more bits.
    type Nearest: Copy;
    /// No word seen.
    const FAR: Self::Nearest;

    /// Makes the normals of one group, and takes note of its words.
    fn group<L: Lookup>(bits: &[u8; GROUP_BYTES], out: &mut [Self], nearest: &mut Self::Nearest);

    /// True when a word was rare.
    fn is_rare(nearest: &Self::Nearest) -> bool;

    /// Makes the rare normals of a group anew, with their further bits.
    fn refine(keystream: &Keystream, group: u64, bits: &[u8; GROUP_BYTES], out: &mut [Self]);
}

/// Normals of whole groups of bits; true when some are rare.
fn groups<T: Real>(isa: Isa, bits: &[[u8; GROUP_BYTES]], out: &mut [T]) -> bool {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,avx512f,avx512dq,avx512bw,avx512vl")]
    fn avx512<T: Real>(bits: &[[u8; GROUP_BYTES]], out: &mut [T]) -> bool {
        groups_body::<T, simd::Permuted>(bits, out)
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    fn avx2<T: Real>(bits: &[[u8; GROUP_BYTES]], out: &mut [T]) -> bool {
        groups_body::<T, simd::Blended>(bits, out)
    }
    match isa.level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa` of this level exists only where its features were detected.
        Level::Avx512 => unsafe { avx512(bits, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Avx2 => unsafe { avx2(bits, out) },
        Level::Portable => groups_body::<T, simd::Indexed>(bits, out),
    }
}

#[inline(always)]
fn groups_body<T: Real, L: Lookup>(bits: &[[u8; GROUP_BYTES]], out: &mut [T]) -> bool {
    let mut nearest = T::FAR;
    for (bits, out) in bits.iter().zip(out.chunks_exact_mut(T::PER_GROUP)) {
        T::group::<L>(bits, out, &mut nearest);
    }
    T::is_rare(&nearest)
}

/// Room for the bits and normals of one tile, whatever its alignment; wiped on drop.
pub(crate) struct NormalTile<T: Real> {
    isa: Isa,
    bits: Zeroizing<Box<[u8]>>,
    normals: AlignedNumbers<T>,
}

impl<T: Real> NormalTile<T> {
    pub(crate) fn new(isa: Isa) -> Self {
        Self::with_room(isa, TILE)
    }

    /// A tile of at most `room` coordinates, a multiple of [`TILE`].
    fn with_room(isa: Isa, room: usize) -> Self {
        let groups = (room / T::PER_GROUP + 1).next_multiple_of(FUSED_GROUPS);
        let bits = vec![0; groups * GROUP_BYTES].into_boxed_slice().into();
        Self { isa, bits, normals: AlignedNumbers::zeros(groups * T::PER_GROUP) }
    }

    /// Coordinates `start`, ..., `start + len - 1` of the keystream's vector; len is at most its room.
    pub(crate) fn make(&mut self, keystream: &Keystream, start: u64, len: usize) -> &[T] {
        self.make_near(keystream, start, len, &[])
    }

    /// The same, for a caller that works on in their place, while `near` is fetched.
    pub(crate) fn make_near(
        &mut self,
        keystream: &Keystream,
        start: u64,
        len: usize,
        near: &[T],
    ) -> &mut [T] {
        let (isa, mut aside) = (self.isa, Aside::fetching(near));
        let made = self.make_while(keystream, start, len, &mut aside);
        aside.finish(isa);
        made
    }

    /// The same, while `aside` goes on as far as it gets.
    fn make_while(
        &mut self,
        keystream: &Keystream,
        start: u64,
        len: usize,
        aside: &mut Aside<'_, T>,
    ) -> &mut [T] {
        let first_group = start / T::PER_GROUP as u64;
        let offset = (start % T::PER_GROUP as u64) as usize;
        let groups = (offset + len).div_ceil(T::PER_GROUP);
        let whole = groups.next_multiple_of(FUSED_GROUPS) * T::PER_GROUP;
        if !keystream.fused(self.isa, first_group, &mut self.normals[..whole], aside) {
            let normals = &mut self.normals[..groups * T::PER_GROUP];
            let bits = &mut self.bits[..groups * GROUP_BYTES];
            keystream.fill(first_group, bits);
            let (bits, _) = bits.as_chunks();
            if self::groups(self.isa, bits, normals) {
                for (g, (bits, out)) in bits.iter().zip(normals.chunks_exact_mut(T::PER_GROUP)).enumerate() {
                    T::refine(keystream, first_group + g as u64, bits, out);
                }
            }
        }
        &mut self.normals[offset..][..len]
    }

    /// The same, written to `out`.
    fn make_into(&mut self, keystream: &Keystream, start: u64, out: &mut [T]) {
        let per_group = T::PER_GROUP as u64;
        let whole = start.is_multiple_of(per_group) && out.len().is_multiple_of(FUSED_GROUPS * T::PER_GROUP);
        if !whole || !keystream.fused(self.isa, start / per_group, out, &mut Aside::fetching(&[])) {
            out.copy_from_slice(self.make(keystream, start, out.len()));
        }
    }
}

/// The seed noise itself: standard normals z_s\[j\] addressed by (seed s, coordinate j).
///
/// Each is within 2^-19 (single) or 2^-47 (double precision) of a true Gaussian, with tails to 11 standard
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
    single: [NormalTile<f32>; 2],
    double: [NormalTile<f64>; 2],
}

impl SeedNoise {
    /// Normals that no stream is made of: see [`StreamBuilder::seed_noise`](crate::StreamBuilder::seed_noise) for
    /// a stream's own.
    pub fn new(key: &Key, cipher: Cipher) -> Self {
        Self::of(&key.derive("normals", &[cipher.name().as_bytes()]), cipher)
    }

    /// The seed noise of the stream whose own key is `key`.
    pub(crate) fn of(key: &Key, cipher: Cipher) -> Self {
        Self::on(Isa::detect(), key, cipher)
    }

    pub(crate) fn on(isa: Isa, key: &Key, cipher: Cipher) -> Self {
        let keys = KeySource::new(key, cipher);
        let (single, double) = (
            [0; 2].map(|_| NormalTile::with_room(isa, portion::<f32>())),
            [0; 2].map(|_| NormalTile::with_room(isa, portion::<f64>())),
        );
        Self { keys, single, double }
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

/// Coordinates that [`SeedNoise`] makes at a time: each time, the first bits are made with nothing to do beside them.
/// Two portions fit in the first-level cache.
const fn portion<T>() -> usize {
    (16 << 10) / size_of::<T>()
}

fn fill<T: Real>(keystream: &Keystream, tiles: &mut [NormalTile<T>; 2], start: u64, out: &mut [T]) {
    if is_large(out) {
        return fill_past_caches(keystream, tiles, start, out);
    }
    let mut at = start;
    for part in out.chunks_mut(portion::<T>()) {
        tiles[0].make_into(keystream, at, part);
        at += part.len() as u64;
    }
}

/// Makes each tile while the one before it is written.
fn fill_past_caches<T: Real>(
    keystream: &Keystream,
    [made, written]: &mut [NormalTile<T>; 2],
    start: u64,
    out: &mut [T],
) {
    let isa = made.isa;
    let (mut made, mut written) = (made, written);
    let offset = (start % T::PER_GROUP as u64) as usize;
    let (len, mut waiting) = (out.len(), 0);
    let mut portions = Portions::new(out);
    for first in (0..len).step_by(portion::<T>()) {
        let mut aside = portions.next(isa, &written.normals[offset..][..waiting]);
        waiting = portion::<T>().min(len - first);
        made.make_while(keystream, start + first as u64, waiting, &mut aside);
        aside.finish(isa);
        std::mem::swap(&mut made, &mut written);
    }
    portions.next(isa, &written.normals[offset..][..waiting]).finish(isa);
    portions.finish();
}

impl fmt::Debug for SeedNoise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SeedNoise(..)")
    }
}

#[cfg(test)]
mod tests;
