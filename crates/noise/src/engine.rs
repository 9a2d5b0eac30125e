//! The engine of a stream, which runs a recursion over all tiles of a shard, on all threads, one window of
//! steps after another.
//!
//! 1. A window is a range of steps, at most `look_ahead` long. [`Window::prepare`] lists, once for all tiles,
//!    the positions, keystreams and terms that these steps need.
//! 2. [`each_tile`] visits the tiles on all threads. A tile that is due at this step ([`Stagger::made`])
//!    makes all rows up to its next due step while it is in cache: first the seed noise, then the kernel,
//!    which writes the rows to `ahead` (rows made ahead) or, without look-ahead, to the thread's scratch
//!    memory. The past of an autoregressive recursion holds its rows itself.
//! 3. The row of the current step is taken from its [`Source`], multiplied by noise_std and the step's
//!    factor, and written to the output, added to it, or added to a sum.
//! 4. A seek runs windows of [`SEEK_PASS`] steps, without output.
//!
//! Every bit is a function of key, step and coordinate alone, so that windows, the order of tiles, and
//! threads change no bit.

use crate::flat_recursion::{FlatRecursion, History, Leaf};
use crate::kernel::Mode;
use crate::kernel::{Emit, Emits, Kernel, Scratch, ScratchOf, Seen, SeenByAll, slot};
use crate::keystream::KeySource;
use crate::normal::TILE;
use crate::parts::{Parts, each_tile};
use crate::past::Past;
use crate::placement::{Limits, VectorLayout};
use crate::portable_state::{StateAt, copy_in, copy_out, words};
use crate::shard::{Tile, Tiles};
use crate::simd::{AlignedNumbers, Isa, is_large};
use crate::slices::{OutputSlices, each_piece};
use crate::spec::Spec;
use crate::stagger::Stagger;
use crate::window::{TileRun, Window};
use crate::{Key, Placement, Result, State, range};

/// Number of steps of a window during a seek.
const SEEK_PASS: usize = 256;

pub(crate) struct Engine<M: Mode> {
    mode: M,
    flat: FlatRecursion,
    /// Whether every number of a row, in whole grid points, fits in a 32-bit integer; computed on first use.
    points_fit: Option<bool>,
    kernel: Kernel<M::Number>,
    pub(crate) placement: Placement,
    noise_std: f64,
    pub(crate) tiles: Tiles,
    /// The numbers of stored vectors: past vectors, and rows made ahead.
    stored: (usize, usize),
    /// The past: for each tile, its past vectors one after the other.
    past: AlignedNumbers<M::Number>,
    /// Rows made ahead: for each tile, its rows one after the other.
    ahead: AlignedNumbers<M::Row>,
    pub(crate) stagger: Stagger,
    window: Window,
    scratch: Vec<ScratchOf<M>>,
}

impl<M: Mode> Engine<M> {
    /// Creates the engine of a stream; `key` is the key of its noise.
    pub(crate) fn new(
        isa: Isa,
        mode: M,
        spec: &Spec,
        key: &Key,
        limits: Limits,
        threads: usize,
    ) -> Result<Self> {
        let flat = mode.flatten(&spec.recursion, spec.steps)?;
        range::check(&flat, spec, mode.grid())?;
        let tiles = spec.shard.tiles::<M::Number>(spec.dim)?;
        let numbers = VectorLayout {
            outputs: tiles.outputs,
            tiles: tiles.count,
            bytes: size_of::<M::Number>() as u64,
            row_bytes: size_of::<M::Row>() as u64,
            on_grid: mode.grid().is_some(),
            dim: spec.dim,
        };
        let rows_fit = || range::points_fit(&flat, spec, mode.grid());
        let placement = Placement::choose(&flat, spec.steps, numbers, limits, rows_fit)?;
        let kernel = Kernel::new(&flat.leaf);
        let vectors = flat.leaf.past_vectors();
        let (past, replayed) = match placement.state {
            State::Stored => (vectors, 0),
            State::Replayed => (0, vectors),
            State::Regenerated => (0, 0),
        };
        let stored = (past, placement.vectors - past);
        let zeros = |vectors: usize| vectors as u128 * tiles.outputs as u128;
        // The kernel of a circulant writes its rows directly to their place in memory.
        let summed = placement.state == State::Regenerated && !matches!(kernel, Kernel::Circulant(_));
        let rows = if summed { placement.look_ahead } else { 1 };
        let at_once = M::at_once(&kernel);
        let room = rows.max(at_once + M::ROOM - 1);
        Ok(Self {
            mode,
            placement,
            noise_std: spec.noise_std,
            stored,
            past: AlignedNumbers::try_zeros(zeros(stored.0))?,
            ahead: AlignedNumbers::try_zeros(zeros(stored.1))?,
            stagger: Stagger::new(spec.steps, placement.look_ahead, !placement.together),
            window: Window::new(KeySource::new(key, spec.cipher), &flat, &placement),
            scratch: (0..threads).map(|_| Scratch::new(isa, at_once, room, replayed)).collect(),
            flat,
            points_fit: None,
            kernel,
            tiles,
        })
    }

    /// The stored past and the stored rows made ahead, for a checkpoint.
    pub(crate) fn memory(&self) -> (Past<'_, M::Number>, &[M::Row]) {
        let vectors = self.stored.0;
        let written = self.kernel.written(self.stagger.unmade()).min(vectors);
        (Past { numbers: &self.past, tiles: &self.tiles, vectors, written }, &self.ahead)
    }

    /// The number of threads that share the tiles.
    pub(crate) fn threads(&self) -> usize {
        self.scratch.len()
    }

    /// Whether every number of a row, in whole grid points, fits in a 32-bit integer. For rows of different
    /// weights a number may fail to, with probability 1e-44.
    pub(crate) fn points_fit(&mut self, spec: &Spec) -> bool {
        *self.points_fit.get_or_insert_with(|| range::rows_fit(&self.flat, spec, self.mode.grid()))
    }

    /// Returns the memory of the past and of rows made ahead, which the caller fills with the state of a
    /// stream that was aligned at `start` and whose next step is `next`.
    pub(crate) fn restore(&mut self, start: usize, next: usize) -> (&mut [M::Number], &mut [M::Row]) {
        self.stagger.restore(start, next);
        (&mut self.past, &mut self.ahead)
    }

    /// The number of 4-byte words of state per output.
    pub(crate) fn state_words(&self) -> usize {
        match self.placement.state {
            State::Stored => self.stored.0 * words::<M::Number>() + self.stored.1 * words::<M::Row>(),
            State::Regenerated | State::Replayed => 0,
        }
    }

    /// Aligns all tiles, writes the state by coordinate to `out`, and returns its steps.
    pub(crate) fn state(&mut self, out: &mut [i32]) -> StateAt {
        self.align();
        if self.state_words() > 0 {
            let (past, ahead) = out.split_at_mut(self.stored.0 * words::<M::Number>() * self.tiles.outputs);
            copy_out::<M::Number>(&self.past, self.stored.0, &self.tiles, past);
            copy_out::<M::Row>(&self.ahead, self.stored.1, &self.tiles, ahead);
        }
        StateAt { step: self.stagger.next, made: self.stagger.alignment() }
    }

    /// Continues from a state by coordinate.
    pub(crate) fn restore_state(&mut self, at: StateAt, state: &[i32]) {
        if self.placement.state != State::Stored {
            return self.stagger.restore(at.step, at.step);
        }
        let (past, ahead) = state.split_at(self.stored.0 * words::<M::Number>() * self.tiles.outputs);
        copy_in::<M::Number>(past, self.stored.0, &self.tiles, &mut self.past);
        copy_in::<M::Row>(ahead, self.stored.1, &self.tiles, &mut self.ahead);
        self.stagger.restore(at.made, at.step);
    }

    /// Makes the noise of all tiles up to the same step, [`Stagger::alignment`]. The next row to be returned
    /// does not change.
    fn align(&mut self) {
        if self.placement.state == State::Stored {
            let last = self.stagger.alignment();
            self.make(last, self.stagger.next, &|_, _| last);
            self.stagger.align();
        }
    }

    /// Writes the next row to `out` as `target` says. Returns the digest and finiteness of the noisy sum, for
    /// the caller to check.
    pub(crate) fn emit<O: Copy + Send + Sync>(
        &mut self,
        out: OutputSlices<'_, '_, O>,
        target: Target<'_, M, O>,
    ) -> Seen
    where
        M: Emits<O>,
    {
        let step = self.stagger.next;
        if self.stagger.is_due(step, self.tiles.count) {
            self.window.prepare(&self.flat, self.placement.state, step..self.stagger.horizon(step));
        }
        let factor = self.noise_std * self.flat.position(step).factor;
        let large = is_large::<O>(self.tiles.outputs);
        let source = self.source(step);
        let Self { mode, kernel, stored, past, ahead, window, scratch, tiles, stagger, .. } = self;
        let (mode, past_vectors, seen) = (*mode, stored.0, SeenByAll::default());
        let work = |scratch: &mut ScratchOf<M>,
                    tile: Tile<'_>,
                    parts: Parts<'_, M, (OutputSlices<'_, '_, O>, Target<'_, M, O>)>| {
            let Parts { past, ahead, out, following } = parts;
            let Some(coordinates) = tile.coordinates else {
                return each_piece(out, tile.len, |at, (out, target)| {
                    let out = out.first();
                    <M as Emits<O>>::emit_padding(scratch.isa, target, out);
                    seen.add(<M as Emits<O>>::see(scratch.isa, &target, tile.output + at, out));
                });
            };
            if stagger.made(tile.number, step) == step {
                let steps = step..stagger.made(tile.number, step + 1);
                let fetched = past_of_next(following, stagger.idle(step), past_vectors);
                let run =
                    TileRun { coordinates, len: tile.len, past, ahead, steps, first_row: step, fetched };
                window.run_tile(mode, kernel, scratch, run);
            }
            each_piece(out, tile.len, |at, (out, target)| {
                let (isa, how, out) = (scratch.isa, &Emit { target, factor, large }, out.first());
                let len = out.len();
                match source {
                    Source::Scratch => mode.emit(isa, how, &scratch.noise[at..][..len], out),
                    Source::Past(slot) => mode.emit(isa, how, &past[slot * tile.len + at..][..len], out),
                    Source::Ahead(slot) => {
                        mode.emit_row(isa, how, &ahead[slot * tile.len + at..][..len], out);
                    }
                }
                seen.add(<M as Emits<O>>::see(isa, &target, tile.output + at, out));
            });
        };
        each_tile(scratch, tiles, 0..tiles.count, Parts::new(past, ahead, (out, target)), *stored, &work);
        self.stagger.next = step + 1;
        seen.all()
    }

    /// Returns where the row of `step` is in memory once it is made.
    fn source(&self, step: usize) -> Source {
        let slots = self.placement.look_ahead;
        match self.kernel.output_slot(step) {
            Some(slot) if self.placement.state == State::Stored => Source::Past(slot),
            _ if slots == 1 => Source::Scratch,
            _ => Source::Ahead(slot(step, slots)),
        }
    }

    /// Moves to `step`, the next step to be made.
    pub(crate) fn seek(&mut self, step: usize) {
        let from = self.rebuild_start(step);
        if from != self.stagger.next {
            self.stagger.restore(from, from);
        }
        if from < step {
            self.run_until(step);
        }
    }

    /// The step from which a seek to `step` rebuilds the past; `step` itself if nothing has to be rebuilt.
    pub(crate) fn rebuild_start(&self, step: usize) -> usize {
        let next = self.stagger.next;
        if step == next || step == self.stagger.steps || self.placement.state != State::Stored {
            return step;
        }
        let mut from = step - self.flat.position(step).local;
        // The past of a plain sum of seeds is its last few seeds, which can be regenerated. On a grid, stored
        // seeds depend on the rounding of every step.
        if self.mode.grid().is_none() && matches!(&self.flat.leaf, Leaf::Ring { history: History::Seeds, .. })
        {
            from = from.max(step.saturating_sub(self.stored.0));
        }
        if (from..=step).contains(&next) { next } else { from }
    }

    /// Makes the noise of all steps before `step`, and the later rows that tiles have made ahead when `step`
    /// is the next step.
    fn run_until(&mut self, step: usize) {
        let now = self.stagger.next;
        let last = if now < step { self.stagger.horizon(step - 1) } else { now };
        self.make(last, step, &|stagger, tile| stagger.made(tile, step));
        self.stagger.next = step;
    }

    /// Makes the noise of each tile up to the step `until(stagger, tile)`, which is at most `last`. Rows from
    /// `first_row` on are stored.
    fn make(&mut self, last: usize, first_row: usize, until: &(dyn Fn(&Stagger, usize) -> usize + Sync)) {
        let now = self.stagger.next;
        for first in (now..last).step_by(SEEK_PASS) {
            let end = last.min(first + SEEK_PASS);
            self.window.prepare(&self.flat, self.placement.state, first..end);
            let Self { mode, kernel, stored, past, ahead, window, scratch, tiles, stagger, .. } = self;
            let (mode, past_vectors) = (*mode, stored.0);
            let work = |scratch: &mut ScratchOf<M>, tile: Tile<'_>, parts: Parts<'_, M, ()>| {
                let Parts { past, ahead, following, .. } = parts;
                let made = stagger.made(tile.number, now);
                let steps = first.max(made)..end.min(until(stagger, tile.number));
                let Some(coordinates) = tile.coordinates.filter(|_| !steps.is_empty()) else { return };
                let fetched = past_of_next(following, 0, past_vectors);
                let run = TileRun { coordinates, len: tile.len, past, ahead, steps, first_row, fetched };
                window.run_tile(mode, kernel, scratch, run);
            };
            each_tile(scratch, tiles, 0..tiles.count, Parts::new(past, ahead, ()), *stored, &work);
        }
    }
}

/// How a row is combined with outputs of type `O`: see [`Emits::Target`].
type Target<'a, M, O> = <M as Emits<O>>::Target<'a>;

/// Where the row to be returned is in memory.
#[derive(Clone, Copy)]
enum Source {
    Scratch,
    Past(usize),
    Ahead(usize),
}

/// The past of the tile that follows `idle` tiles that are not due. All tiles are assumed to be full, since
/// fetching a few lines too many takes little time.
fn past_of_next<T>(following: &[T], idle: usize, past_vectors: usize) -> &[T] {
    let following = &following[(idle * past_vectors * TILE).min(following.len())..];
    &following[..(past_vectors * TILE).min(following.len())]
}

#[cfg(test)]
mod tests;
