//! The keyed sum of a state's words, by which altered words are detected. Each process computes the sum of
//! its part; the total of all parts covers every word.
//!
//! x(w, j) is word w of coordinate j: 32 bits, as an unsigned integer. The sum is
//!
//! S = sum over w and j of c(w, j) x(w, j) modulo 2^128,
//!
//! where c(w, j) is block j of keystream w (128 bits), under a key that is derived from the run's key for
//! this purpose alone. S depends on the words and their coordinates, not on the sharding.
//!
//! **Collisions.** Let x and y be different words, altered by chance or by someone who does not know the key.
//! At some (w, j) they differ by d, 0 < |d| < 2^32: an odd number times 2^k, k <= 31. Given all other
//! coefficients, S(x) = S(y) fixes c(w, j) d modulo 2^128, which holds for at most 2^k values of c(w, j). AES
//! blocks differ from each other: after q blocks, c(w, j) is one of 2^128 - q values. So S is the same with a
//! probability below 2^31 / (2^128 - q) < 2^-96, plus the advantage of an attack on the cipher. This detects
//! flipped bits, zeroed words, and words of another step, vector, coordinate or run.
//!
//! S itself is not published; a commitment hides it (`RunKey::state_commitment`). Anyone who knows the run's
//! key can compute a valid commitment to any words. A file with a state holds that key, so that only its
//! owner may be able to read the file.

use std::ops::Range;

use zeroize::Zeroizing;

use crate::keystream::{BLOCK_BYTES, KeySource, Keystream};
use crate::normal::TILE;
use crate::shard::{Tile, Tiles};

/// Returns the sum S of `words`, which are whole vectors over all outputs of the shard, on `threads` threads.
/// Padding contributes 0.
pub(crate) fn word_sum(keys: &KeySource, tiles: &Tiles, words: &[i32], threads: usize) -> u128 {
    let of_vector = |(number, vector): (u64, &[i32])| {
        let keystream = keys.keystream(number);
        over_tiles(0..tiles.count, threads, &|bits, number| {
            of_tile(&keystream, tiles.get(number), vector, bits)
        })
    };
    (0..).zip(words.chunks_exact(tiles.outputs.max(1))).map(of_vector).fold(0, u128::wrapping_add)
}

/// Returns the sum of `of(tile)` over these tiles.
fn over_tiles(tiles: Range<usize>, threads: usize, of: &(dyn Fn(&mut [u8], usize) -> u128 + Sync)) -> u128 {
    if threads <= 1 || tiles.len() <= 1 {
        let mut bits = Zeroizing::new(vec![0; TILE * BLOCK_BYTES]);
        return tiles.map(|number| of(&mut bits, number)).fold(0, u128::wrapping_add);
    }
    let middle = tiles.start + tiles.len() / 2;
    let (left, right) = rayon::join(
        || over_tiles(tiles.start..middle, threads / 2, of),
        || over_tiles(middle..tiles.end, threads - threads / 2, of),
    );
    left.wrapping_add(right)
}

fn of_tile(keystream: &Keystream, tile: Tile<'_>, vector: &[i32], bits: &mut [u8]) -> u128 {
    let Some(coordinates) = tile.coordinates else { return 0 };
    let ranges = coordinates.ranges(tile.len).map(|(_, range)| range.start..range.start + range.len as u64);
    let bits = &mut bits[..tile.len * BLOCK_BYTES];
    keystream.fill_blocks(ranges.flatten(), bits);
    let words = &vector[tile.output..][..tile.len];
    let terms = bits.as_chunks().0.iter().zip(words);
    terms.fold(0, |sum: u128, (&bits, &word)| {
        sum.wrapping_add(u128::from_le_bytes(bits).wrapping_mul(word.cast_unsigned().into()))
    })
}
