//! What the two kinds of streams differ in.

use antinoise_mechanism::{Grid, Recursion};

use super::{Kernel, LookAhead, Scratch, Seen};
use crate::error::Result;
use crate::flat_recursion::{FlatRecursion, Position};
use crate::keystream::Keystream;
use crate::normal::{Coordinates, Normal, TILE};
use crate::number::Number;
use crate::places::Pieces;
use crate::simd::Isa;

/// How a stream computes and returns its noise: [`Plain`](super::Plain) or [`OnGrid`](super::OnGrid), and nothing
/// else.
pub trait Mode: HandsOut<f32> {}

/// What a mode does, step by step. A value holds what does not change from step to step.
pub trait Steps: Copy + Send + Sync + Sized + 'static {
    /// The precision of the noise.
    type Number: Normal;
    /// What a row is stored as until it is handed out.
    type Row: Number;

    /// Tiles of noise that a step works in; several steps share all but one of them.
    const ROOM: usize;

    /// The grid, where there is one.
    fn grid(self) -> Option<Grid>;

    /// The recursion in the form, and with the coefficients, that the kernels run.
    fn flatten(self, recursion: &Recursion, steps: usize) -> Result<FlatRecursion>;

    /// Most steps that one call of [`Steps::run`] makes.
    fn at_once(kernel: &Kernel<Self::Number>) -> usize;

    /// Stores z~ of each step ahead or, if rows are not stored, leaves the last one in the scratch's noise, and brings
    /// `past` to the step after the last.
    fn run(
        self,
        scratch: &mut Scratch<Self::Number, Self::Row>,
        steps: &TileSteps<'_, Self::Number>,
        past: &mut [Self::Number],
        ahead: &mut LookAhead<'_, Self::Row>,
    );

    /// A row of noise as it is stored, in `room` where that is something else.
    fn as_row<'a>(
        self,
        isa: Isa,
        position: &Position,
        noise: &'a [Self::Number],
        room: &'a mut [Self::Row],
    ) -> &'a [Self::Row];
}

/// Rows that are handed out as numbers of type `O`.
pub trait HandsOut<O>: Steps {
    /// What a row is written over, which is the default, or added to.
    type Target<'a>: Copy + Default + Send + Sync + Pieces;

    /// Hands out padding, which has no noise. Here and below the output and its part of the target lie in one piece.
    fn hand_out_padding(target: Self::Target<'_>, out: &mut [O]);

    /// Hands out noise of unit variance.
    fn hand_out(self, isa: Isa, how: &HandOut<Self::Target<'_>>, noise: &[Self::Number], out: &mut [O]);

    /// Hands out a row that was stored.
    fn hand_out_row(self, isa: Isa, how: &HandOut<Self::Target<'_>>, row: &[Self::Row], out: &mut [O]);

    /// What is seen of the outputs from `first` on; nothing where they are noise alone.
    fn see(isa: Isa, target: &Self::Target<'_>, first: usize, out: &[O]) -> Option<Seen>;
}

/// What a thread of this mode works in.
pub(crate) type ScratchOf<M> = Scratch<<M as Steps>::Number, <M as Steps>::Row>;

/// How the noise of one step is handed out.
#[derive(Debug, Clone, Copy)]
pub struct HandOut<T> {
    pub(crate) target: T,
    /// What noise of unit variance is multiplied by.
    pub(crate) factor: f64,
    /// The output will not be found in a cache again.
    pub(crate) large: bool,
}

/// Which steps, and of which tile.
pub struct TileSteps<'a, T> {
    pub(crate) kernel: &'a Kernel<T>,
    /// No run starts at one of them but the first.
    pub(crate) positions: &'a [Position],
    /// Of each step.
    pub(crate) seeds: &'a [Keystream],
    pub(crate) coordinates: Coordinates<'a>,
    pub(crate) len: usize,
    /// Numbers to be brought into the cache meanwhile.
    pub(crate) fetched: &'a [T],
}

/// Stores the rows of noise of these steps; where none are stored apart, the last one is put first.
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
