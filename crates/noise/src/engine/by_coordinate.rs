//! The state by coordinate: the same numbers for every sharding of a stream, so that another one can go on with them.
//!
//! In memory each tile has its past vectors one after the other, then its rows made ahead. Here vectors go over all outputs of the
//! shard, as words of 4 bytes: word w of output j is number w outputs + j. A number of 8 bytes has two, the lower half first.

use super::Engine;
use crate::number::Number;
use crate::shard::Tiles;
use crate::{Mode, State};

/// Where the words of a state say that its stream was.
///
/// ```
/// use antinoise_mechanism::Recursion;
/// use antinoise_noise::{Key, NoiseStream, Shard};
/// let recursion = Recursion::Blt { scale: vec![0.5], decay: vec![0.9] };
/// let shard = |range| {
///     let builder = NoiseStream::builder(recursion.clone(), 10, 6, 1.0).shard(Shard::of_range(range));
///     builder.state_in_memory().build(Key::from_seed_insecure(7))
/// };
/// // Two shards write the state of all six coordinates.
/// let (mut left, mut right) = (shard(0..2)?, shard(2..6)?);
/// for stream in [&mut left, &mut right] {
///     let mut row = vec![0.0; stream.len()];
///     stream.next_into(&mut row)?;
/// }
/// let (mut words, mut others) = (vec![0; 2], vec![0; 4]);
/// let at = left.state(&mut words)?;
/// assert_eq!((left.state_words(), right.state(&mut others)?), (1, at));
/// words.extend(others);
/// // One that has them all goes on.
/// let (mut whole, mut row, mut rest) = (shard(0..6)?, [0.0; 6], [0.0; 4]);
/// whole.restore_state(at, &words)?;
/// whole.next_into(&mut row)?;
/// right.next_into(&mut rest)?;
/// assert_eq!(row[2..], rest);
/// # Ok::<(), antinoise_noise::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateAt {
    /// The step that comes next.
    pub step: usize,
    /// The step that the state belongs to; the rows from `step` to it are part of the state.
    pub made: usize,
}

impl<M: Mode> Engine<M> {
    /// Words of 4 bytes that the state has for each output.
    pub(crate) fn state_words(&self) -> usize {
        match self.placement.state {
            State::Stored => self.stored.0 * words::<M::Number>() + self.stored.1 * words::<M::Row>(),
            State::Regenerated | State::Replayed => 0,
        }
    }

    /// Brings all tiles to one step, the second of the two that are returned, and writes the state there by coordinate.
    pub(crate) fn state(&mut self, out: &mut [i32]) -> StateAt {
        self.align();
        if self.state_words() > 0 {
            let (past, ahead) = out.split_at_mut(self.stored.0 * words::<M::Number>() * self.tiles.outputs);
            copy_out::<M::Number>(&self.past, self.stored.0, &self.tiles, past);
            copy_out::<M::Row>(&self.ahead, self.stored.1, &self.tiles, ahead);
        }
        StateAt { step: self.stagger.next, made: self.stagger.alignment() }
    }

    /// Goes on where the state was written.
    pub(crate) fn restore_state(&mut self, at: StateAt, state: &[i32]) {
        if self.placement.state != State::Stored {
            return self.stagger.restore(at.step, at.step);
        }
        let (past, ahead) = state.split_at(self.stored.0 * words::<M::Number>() * self.tiles.outputs);
        copy_in::<M::Number>(past, self.stored.0, &self.tiles, &mut self.past);
        copy_in::<M::Row>(ahead, self.stored.1, &self.tiles, &mut self.ahead);
        self.stagger.restore(at.made, at.step);
    }

    /// Brings all tiles to one step. The next row is the one that it was.
    fn align(&mut self) {
        if self.placement.state == State::Stored {
            let last = self.stagger.alignment();
            self.make(last, self.stagger.next, &|_, _| last);
            self.stagger.align();
        }
    }
}

/// Words of a number of this type.
const fn words<T: Number>() -> usize {
    size_of::<T>() / size_of::<i32>()
}

/// Writes `vectors` vectors of `numbers`, tile by tile as the engine has them, by coordinate.
fn copy_out<T: Number>(numbers: &[T], vectors: usize, tiles: &Tiles, out: &mut [i32]) {
    each_place::<T>(vectors, tiles, |number, places| {
        for (half, place) in places.enumerate() {
            out[place] = (numbers[number].bits() >> (32 * half)) as i32;
        }
    });
}

/// Reads what [`copy_out`] wrote.
fn copy_in<T: Number>(words: &[i32], vectors: usize, tiles: &Tiles, numbers: &mut [T]) {
    each_place::<T>(vectors, tiles, |number, places| {
        let halves =
            places.enumerate().map(|(half, place)| u64::from(words[place].cast_unsigned()) << (32 * half));
        numbers[number] = T::from_bits(halves.sum());
    });
}

/// Calls `visit` with the place of each number in the engine, and those of its words by coordinate.
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
