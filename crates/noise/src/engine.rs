//! Runs a recipe over all tiles of a shard, on all threads, a window of steps at a time.

use crate::aligned::AlignedNumbers;
use crate::builder::Plan;
use crate::cipher::KeySource;
use crate::correlator::{Correlator, Emit, Leave, Scratch, Step, ahead, is_large};
use crate::gaussian::TILE;
use crate::pass::{Pass, TileParts, TileRun, each_tile};
use crate::placement::{Limits, Numbers, Placement, State, history};
use crate::recipe::{Keeps, Leaf, Recipe};
use crate::release::{Grid, check_grid, points_fit};
use crate::shard::Tile;
use crate::simd::Isa;
use crate::turns::Turns;
use crate::{Key, NoiseError, range};

/// Steps that a seek makes in one pass over the state.
const SEEK_PASS: usize = 256;

pub(crate) struct Engine<T: Step> {
    recipe: Recipe,
    correlator: Correlator<T>,
    placement: Placement,
    noise_std: f64,
    spacing: Option<f64>,
    tiles: Vec<Tile>,
    outputs: usize,
    /// Past vectors and rows made ahead that are in memory.
    kept: (usize, usize),
    /// For each tile, its past vectors one after the other.
    past: AlignedNumbers<T>,
    /// For each tile, its rows made ahead.
    ahead: AlignedNumbers<T::Row>,
    turns: Turns,
    pass: Pass,
    scratch: Vec<Scratch<T>>,
}

impl<T: Step> Engine<T> {
    /// The engine of the stream whose own key is `key`.
    pub(crate) fn new(plan: &Plan, key: &Key, limits: Limits, threads: usize) -> Result<Self, NoiseError> {
        Self::on(Isa::detect(), plan, key, limits, threads)
    }

    pub(crate) fn on(
        isa: Isa,
        plan: &Plan,
        key: &Key,
        limits: Limits,
        threads: usize,
    ) -> Result<Self, NoiseError> {
        let recipe = match plan.grid {
            Some(_) => Recipe::on_grid(&plan.recursion, plan.steps)?,
            None => Recipe::in_single_precision(&plan.recursion, plan.steps)?,
        };
        range::check(&recipe, plan)?;
        let tiles = plan.shard.tiles(plan.dim)?;
        let outputs = plan.shard.len();
        let per_unit = plan.grid.map(|grid| plan.noise_std / grid.spacing());
        if let Some(per_unit) = per_unit {
            check_grid(&recipe, plan.steps, per_unit)?;
        }
        let rows_fit = || per_unit.is_none_or(|per_unit| points_fit(&recipe, plan.steps, per_unit));
        let numbers = Numbers {
            outputs,
            bytes: size_of::<T>() as u64,
            row_bytes: size_of::<T::Row>() as u64,
            on_grid: plan.grid.is_some(),
        };
        let placement = Placement::choose(&recipe, plan.steps, numbers, limits, rows_fit)?;
        let correlator = Correlator::new(&recipe.leaf);
        let past = if placement.state == State::Stored { history(&recipe.leaf) } else { 0 };
        let replayed = if placement.state == State::Replayed { history(&recipe.leaf) } else { 0 };
        let kept = (past, placement.vectors - past);
        let past = AlignedNumbers::try_zeros(kept.0 as u64 * outputs as u64)?;
        let ahead = AlignedNumbers::try_zeros(kept.1 as u64 * outputs as u64)?;
        let rows = if placement.state == State::Regenerated { placement.look_ahead } else { 1 };
        let scratch = (0..threads).map(|_| Scratch::new(isa, &correlator, rows, replayed)).collect();
        let pass = Pass::new(KeySource::new(key, plan.cipher), &recipe, &placement, per_unit);
        // Sums of seeds are listed for all tiles at once.
        let staggered = placement.state == State::Stored;
        let turns = Turns::new(plan.steps, placement.look_ahead, staggered);
        let spacing = plan.grid.map(Grid::spacing);
        Ok(Self {
            recipe,
            correlator,
            placement,
            noise_std: plan.noise_std,
            spacing,
            tiles,
            outputs,
            kept,
            past,
            ahead,
            turns,
            pass,
            scratch,
        })
    }

    pub(crate) fn outputs(&self) -> usize {
        self.outputs
    }

    pub(crate) fn placement(&self) -> Placement {
        self.placement
    }

    pub(crate) fn turns(&self) -> &Turns {
        &self.turns
    }

    /// Past vectors and rows made ahead.
    pub(crate) fn memory(&self) -> (&[T], &[T::Row]) {
        (&self.past, &self.ahead)
    }

    /// The memory, to be filled as it was after `next` - `start` steps from `start` on.
    pub(crate) fn restore(&mut self, start: usize, next: usize) -> (&mut [T], &mut [T::Row]) {
        self.turns.restore(start, next);
        (&mut self.past, &mut self.ahead)
    }

    /// Hands out the next row.
    pub(crate) fn emit(&mut self, out: &mut [f32], emit: Emit<'_>) {
        let step = self.turns.next();
        if self.turns.is_due(step, self.tiles.len()) {
            self.pass.prepare(&self.recipe, self.placement.state, step..self.turns.horizon(step));
        }
        let factor = self.noise_std * self.recipe.place(step).factor;
        let leave = Leave { emit, factor, spacing: self.spacing, large: is_large(out) };
        let slots = self.placement.look_ahead;
        let place = match self.correlator.output_slot(step) {
            Some(slot) if self.placement.state == State::Stored => Waits::AmongPast(slot),
            _ if slots == 1 => Waits::InScratch,
            _ => Waits::Apart(ahead::slot(step, slots)),
        };
        let Self { correlator, kept, past, ahead, pass, scratch, tiles, turns, .. } = self;
        let work = |scratch: &mut Scratch<T>, tile: &Tile, parts: TileParts<'_, T>, following: &[T]| {
            let TileParts { past, ahead, out } = parts;
            let Some(start) = tile.start else {
                return if !matches!(emit, Emit::Add(_)) {
                    out.fill(0.0)
                };
            };
            if turns.made(tile.number, step) == step {
                let steps = step..turns.made(tile.number, step + 1);
                let near = past_of_next(following, turns.idle(step), kept.0);
                let run = TileRun { start, len: tile.len, past, ahead, steps, first_row: step, near };
                pass.run_tile(correlator, scratch, run);
            }
            let isa = scratch.isa();
            let leave = Leave { emit: emit.part(tile.output, tile.len), ..leave };
            match place {
                Waits::InScratch => T::leave(isa, &leave, &scratch.noise[..tile.len], out),
                Waits::AmongPast(slot) => T::leave(isa, &leave, &past[slot * tile.len..][..tile.len], out),
                Waits::Apart(slot) => T::leave_row(isa, &leave, &ahead[slot * tile.len..][..tile.len], out),
            }
        };
        each_tile(scratch, tiles, TileParts { past, ahead, out }, *kept, &work);
        self.turns.advance(step + 1);
    }

    /// Makes `step` the next one.
    pub(crate) fn seek(&mut self, step: usize) {
        if step == self.turns.next() {
            return;
        }
        if step == self.turns.steps() || self.placement.state != State::Stored {
            return self.turns.restore(step, step);
        }
        let place = self.recipe.place(step);
        let mut from = step - place.local;
        // Plain seed noise needs no more than itself; on a grid it carries the roundings of all steps.
        if self.spacing.is_none() && matches!(&self.recipe.leaf, Leaf::Ring { keeps: Keeps::Seeds, .. }) {
            from = from.max(step.saturating_sub(self.kept.0));
        }
        if !(from..=step).contains(&self.turns.next()) {
            self.turns.restore(from, from);
        }
        self.run_until(step);
    }

    /// Makes the noise of the steps before `step`, and of those after it that a tile would have made by then.
    fn run_until(&mut self, step: usize) {
        let now = self.turns.next();
        let last = if now < step { self.turns.horizon(step - 1) } else { now };
        for first in (now..last).step_by(SEEK_PASS) {
            let end = last.min(first + SEEK_PASS);
            self.pass.prepare(&self.recipe, self.placement.state, first..end);
            let Self { correlator, kept, past, ahead, pass, scratch, tiles, turns, .. } = self;
            let work = |scratch: &mut Scratch<T>,
                        tile: &Tile,
                        TileParts { past, ahead, .. }: TileParts<'_, T>,
                        following: &[T]| {
                let steps = first.max(turns.made(tile.number, now))..end.min(turns.made(tile.number, step));
                let Some(start) = tile.start.filter(|_| !steps.is_empty()) else { return };
                let near = past_of_next(following, 0, kept.0);
                let run = TileRun { start, len: tile.len, past, ahead, steps, first_row: step, near };
                pass.run_tile(correlator, scratch, run);
            };
            each_tile(scratch, tiles, TileParts { past, ahead, out: &mut [] }, *kept, &work);
        }
        self.turns.advance(step);
    }
}

/// The past of the tile after the next `idle` ones: tiles are taken to be whole, for a line too many costs little.
fn past_of_next<T>(following: &[T], idle: usize, kept: usize) -> &[T] {
    let following = &following[(idle * kept * TILE).min(following.len())..];
    &following[..(kept * TILE).min(following.len())]
}

/// Where the row that is handed out lies.
#[derive(Clone, Copy)]
enum Waits {
    InScratch,
    AmongPast(usize),
    Apart(usize),
}

#[cfg(test)]
mod tests {
    use antinoise_mechanism::Recursion;

    use super::*;
    use crate::{Cipher, Shard};

    #[test]
    fn every_instruction_set_gives_the_same_bits() {
        let (steps, dim) = (6, 5000);
        let taps = vec![1.0, -0.5, 0.3, 0.2, 0.1, 0.05];
        let blt = |order: usize| Recursion::Blt { scale: vec![0.1; order], decay: vec![0.9; order] };
        for recursion in [
            Recursion::AutoRegressive { taps: taps.clone() },
            Recursion::MovingAverage { taps },
            blt(1),
            blt(4),
            blt(6),
        ] {
            let (shard, cipher) = (Shard::of_range(3..dim as u64), Cipher::default());
            let plan = Plan { recursion, steps, dim, noise_std: 1.0, shard, cipher, grid: None };
            let limits = Limits { bytes: u64::MAX, look_ahead: usize::MAX };
            let run = |isa: Isa| {
                let mut engine =
                    Engine::<f32>::on(isa, &plan, &Key::from_seed_insecure(4), limits, 1).unwrap();
                let mut rows = vec![0.5; steps * (dim - 3)];
                for (step, row) in rows.chunks_exact_mut(dim - 3).enumerate() {
                    engine.emit(row, if step % 2 == 0 { Emit::Write } else { Emit::Add(0.3) });
                }
                rows
            };
            let reference = run(Isa::available()[Isa::available().len() - 1]);
            for &isa in Isa::available() {
                assert_eq!(run(isa), reference, "{} on {isa:?}", plan.recursion.state_vectors());
            }
        }
    }

    /// The C that runs is that of `in_single_precision`: kernels that are given those coefficients round nothing more.
    #[test]
    fn kernels_multiply_by_the_coefficients_that_single_precision_holds() {
        let (steps, dim) = (13, 100);
        let taps: Vec<f64> = (0..7).map(|i| 1.0 / (1.1 + f64::from(i))).collect();
        let blt = Recursion::Blt { scale: vec![0.3, 0.15], decay: vec![0.999, 0.88] };
        let banded = Recursion::Banded { bands: 3, rows: (1..=3 * steps).map(|i| 1.0 / i as f64).collect() };
        let rows = (0..steps).map(|t| vec![(t, 0.7), (100 + t / 3, 0.1)]).collect();
        let scaled = Recursion::Scaled {
            inner: Box::new(blt.clone()),
            factors: (0..steps).map(|t| 0.5 + 0.1 * (t as f64).sin()).collect(),
        };
        for recursion in [
            Recursion::Independent,
            Recursion::AutoRegressive { taps: taps.clone() },
            Recursion::MovingAverage { taps },
            Recursion::Restarted { inner: Box::new(banded.clone()), period: 5 },
            Recursion::Combination { rows },
            banded,
            blt,
            scaled,
        ] {
            let noise = |recursion: Recursion| {
                let (shard, cipher) = (Shard::of_range(0..dim as u64), Cipher::default());
                let plan = Plan { recursion, steps, dim, noise_std: 1.0, shard, cipher, grid: None };
                let limits = Limits { bytes: u64::MAX, look_ahead: usize::MAX };
                let mut engine = Engine::<f32>::new(&plan, &Key::from_seed_insecure(5), limits, 1).unwrap();
                let mut rows = vec![0.0; steps * dim];
                rows.chunks_exact_mut(dim).for_each(|row| engine.emit(row, Emit::Write));
                rows
            };
            assert_eq!(noise(recursion.clone()), noise(recursion.in_single_precision()), "{recursion:?}");
        }
    }
}
