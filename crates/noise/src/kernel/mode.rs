//! Modes: the operations in which plain streams and streams on a grid differ.

use antinoise_mechanism::{Grid, Recursion};

use super::{Kernel, LookAhead, Scratch, Seen};
use crate::error::Result;
use crate::flat_recursion::{FlatRecursion, Position};
use crate::keystream::Keystream;
use crate::normal::{Coordinates, Normal, TILE};
use crate::number::Number;
use crate::simd::Isa;
use crate::slices::{InputSlices, Pieces};

/// How a stream computes and returns its noise: [`Plain`](super::Plain) or [`OnGrid`](super::OnGrid).
pub(crate) trait Mode: Emits<f32> {
    /// Adds a row to this sum.
    fn to_sum<'a>(sum: InputSlices<'a, 'a, f64>) -> <Self as Emits<f32>>::Target<'a>;
}

/// How a mode makes steps. A value of the type holds the constants of a stream.
pub(crate) trait Steps: Copy + Send + Sync + Sized + 'static {
    /// The precision of the noise.
    type Number: Normal;
    /// The element type of rows that are made ahead.
    type Row: Number;

    /// Number of rows of scratch memory for one step. Each further step that is made together with it needs
    /// one more.
    const ROOM: usize;

    /// The grid; `None` for plain streams.
    fn grid(self) -> Option<Grid>;

    /// Flattens a recursion, with the coefficients that the kernels use.
    fn flatten(self, recursion: &Recursion, steps: usize) -> Result<FlatRecursion>;

    /// The maximum number of steps in a call of [`Steps::run`].
    fn at_once(kernel: &Kernel<Self::Number>) -> usize;

    /// Makes consecutive steps of a tile, and updates `past`. Stores each row z~ in `ahead` or, if rows are
    /// not stored, leaves the last one in the scratch memory.
    fn run(
        self,
        scratch: &mut Scratch<Self::Number, Self::Row>,
        steps: &TileSteps<'_, Self::Number>,
        past: &mut [Self::Number],
        ahead: &mut LookAhead<'_, Self::Row>,
    );

    /// Converts a row of noise to the form in which it is stored, in `room` unless the form is the same.
    fn as_row<'a>(
        self,
        isa: Isa,
        position: &Position,
        noise: &'a [Self::Number],
        room: &'a mut [Self::Row],
    ) -> &'a [Self::Row];
}

/// A mode that returns rows as numbers of type `O`.
pub(crate) trait Emits<O>: Steps {
    /// What a row of noise does to the output: it is written over the output (the default), added to it, or
    /// added to a sum that the output receives.
    type Target<'a>: Copy + Default + Send + Sync + Pieces;

    /// Writes outputs that are padding, which has no noise. Here and below, an output and its part of the
    /// target are each contiguous in memory.
    fn emit_padding(isa: Isa, target: Self::Target<'_>, out: &mut [O]);

    /// Writes the row `noise`, which is given for seed noise of variance 1, to `out` as `how` says.
    fn emit(self, isa: Isa, how: &Emit<Self::Target<'_>>, noise: &[Self::Number], out: &mut [O]);

    /// Writes a stored row, which was generated at an earlier step, to `out` as `how` says.
    fn emit_row(self, isa: Isa, how: &Emit<Self::Target<'_>>, row: &[Self::Row], out: &mut [O]);

    /// Returns the digest and finiteness of the outputs from index `first` on, or `None` if they are noise
    /// without a sum.
    fn see(isa: Isa, target: &Self::Target<'_>, first: usize, out: &[O]) -> Option<Seen>;
}

/// The scratch memory of a thread in this mode.
pub(crate) type ScratchOf<M> = Scratch<<M as Steps>::Number, <M as Steps>::Row>;

/// How the noise of one step is returned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Emit<T> {
    pub(crate) target: T,
    /// The factor by which noise is multiplied, for seed noise of variance 1.
    pub(crate) factor: f64,
    /// Whether the output is too large to stay in the caches.
    pub(crate) large: bool,
}

/// Consecutive steps of one tile, and what they need.
pub(crate) struct TileSteps<'a, T> {
    pub(crate) kernel: &'a Kernel<T>,
    /// Positions of the steps; only the first may be the start of a run.
    pub(crate) positions: &'a [Position],
    /// The seed noise's keystream of each step.
    pub(crate) seeds: &'a [Keystream],
    pub(crate) coordinates: Coordinates<'a>,
    pub(crate) len: usize,
    /// Numbers that are prefetched into the cache while these steps are made.
    pub(crate) fetched: &'a [T],
}

/// Stores the rows of noise of these steps. If rows are not stored separately, moves the last one to the
/// front of the scratch memory.
pub(crate) fn store_rows<M: Steps>(
    mode: M,
    scratch: &mut ScratchOf<M>,
    steps: &[Position],
    ahead: &mut LookAhead<'_, M::Row>,
) {
    if ahead.rows.is_empty() {
        let last = (steps.len() - 1) * TILE;
        return scratch.noise.copy_within(last..last + ahead.len, 0);
    }
    for (position, noise) in steps.iter().zip(scratch.noise.chunks(TILE)) {
        if let Some(range) = ahead.range(position.step) {
            let row = mode.as_row(scratch.isa, position, &noise[..ahead.len], &mut scratch.row[..ahead.len]);
            ahead.store(scratch.isa, range, row);
        }
    }
}
