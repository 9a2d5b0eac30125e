//! The state of a stream by coordinate, whose numbers do not depend on the sharding, so that another sharding
//! can continue from it.
//!
//! In memory each tile has its past vectors, one after another, and its rows made ahead. By coordinate, each
//! vector extends over all outputs of the shard, in words of 4 bytes: word w of output j has index w *
//! outputs + j. A number of 8 bytes is two words, the lower half first.

use crate::number::Number;
use crate::shard::Tiles;

/// The steps at which a state by coordinate was written.
///
/// ```
/// use antinoise_mechanism::Recursion;
/// use antinoise_noise::{Key, NoiseStream, Shard};
/// let recursion = Recursion::Blt { scale: vec![0.5], decay: vec![0.9] };
/// let builder = |range| {
///     let builder = NoiseStream::builder(recursion.clone(), 10, 6, 1.0).shard(Shard::of_range(range));
///     builder.state_in_memory()
/// };
/// let shard = |range| builder(range).build(Key::from_seed_insecure(7));
/// // Two shards write the state of all six coordinates.
/// let (mut left, mut right) = (shard(0..2)?, shard(2..6)?);
/// for stream in [&mut left, &mut right] {
///     let mut row = vec![0.0; stream.len()];
///     stream.next_into(&mut row)?;
/// }
/// let (mut words, mut others) = (vec![0; 2], vec![0; 4]);
/// let (at, sum) = left.state(&mut words)?;
/// let (same, other_sum) = right.state(&mut others)?;
/// assert_eq!((left.state_words(), same), (1, at));
/// words.extend(others);
/// let total = sum.wrapping_add(other_sum);
/// let commitment = left.state_commitment(at, total, b"");
/// let run_key = || left.expose_run_key(|bytes| Key::from_reader(|key| Ok::<_, ()>(key.copy_from_slice(bytes))).unwrap());
/// // A shard that has them all continues.
/// let (mut row, mut rest) = ([0.0; 6], [0.0; 4]);
/// let restored = builder(0..6).resume_state(run_key(), at, &words)?;
/// assert_eq!(restored.sum(), total);
/// restored.checked(total, b"", &commitment)?.next_into(&mut row)?;
/// right.next_into(&mut rest)?;
/// assert_eq!(row[2..], rest);
/// // Other words are refused.
/// words[3] ^= 1;
/// let altered = builder(0..6).resume_state(run_key(), at, &words)?;
/// let sum = altered.sum();
/// assert!(altered.checked(sum, b"", &commitment).is_err());
/// # Ok::<(), antinoise_noise::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateAt {
    /// The step that comes next.
    pub step: usize,
    /// The step up to which every tile has made its noise; the rows of steps `step` to `made` - 1 are part of
    /// the state.
    pub made: usize,
}

/// The number of 4-byte words of a `T`.
pub(crate) const fn words<T: Number>() -> usize {
    size_of::<T>() / size_of::<i32>()
}

/// Writes `vectors` vectors of `numbers`, which are in the engine's order, tile by tile, to `out` by
/// coordinate.
pub(crate) fn copy_out<T: Number>(numbers: &[T], vectors: usize, tiles: &Tiles, out: &mut [i32]) {
    each_place::<T>(vectors, tiles, |number, places| {
        for (half, place) in places.enumerate() {
            out[place] = (numbers[number].bits() >> (32 * half)) as i32;
        }
    });
}

/// The inverse of [`copy_out`].
pub(crate) fn copy_in<T: Number>(words: &[i32], vectors: usize, tiles: &Tiles, numbers: &mut [T]) {
    each_place::<T>(vectors, tiles, |number, places| {
        let halves =
            places.enumerate().map(|(half, place)| u64::from(words[place].cast_unsigned()) << (32 * half));
        numbers[number] = T::from_bits(halves.sum());
    });
}

/// Calls `visit` for each number, with its index in the engine's order and the indices of its words by
/// coordinate.
fn each_place<T: Number>(
    vectors: usize,
    tiles: &Tiles,
    mut visit: impl FnMut(usize, std::iter::StepBy<std::ops::Range<usize>>),
) {
    let outputs = tiles.outputs;
    for tile in (0..tiles.count).map(|number| tiles.get(number)) {
        for vector in 0..vectors {
            for j in 0..tile.len {
                let number = tile.output * vectors + vector * tile.len + j;
                let first = vector * words::<T>() * outputs + tile.output + j;
                visit(number, (first..first + words::<T>() * outputs).step_by(outputs));
            }
        }
    }
}
