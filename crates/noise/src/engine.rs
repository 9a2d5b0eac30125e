//! Runs a recipe over all tiles of a shard, on all threads, a window of steps at a time.

use std::ops::Range;

use zeroize::Zeroize;

use crate::cipher::KeySource;
use crate::correlator::{Correlator, Emit, Leave, Scratch, Step, is_large};
use crate::pass::{Pass, each_tile};
use crate::placement::{Limits, Numbers, Placement, State, history};
use crate::recipe::{Keeps, Leaf, Recipe};
use crate::release::{Grid, check_grid};
use crate::shard::Tile;
use crate::simd::{Isa, prefetch};
use crate::stream::Plan;
use crate::{Key, NOISE, NoiseError};

/// Steps that a seek makes in one pass over the state.
const SEEK_PASS: usize = 256;

pub(crate) struct Engine<T: Step> {
    recipe: Recipe,
    correlator: Correlator<T>,
    placement: Placement,
    steps: usize,
    noise_std: f64,
    spacing: Option<f64>,
    tiles: Vec<Tile>,
    outputs: usize,
    /// Past vectors in memory.
    past: usize,
    /// Vectors a tile keeps in all: `past`, then those made ahead.
    kept: usize,
    /// For each tile, its kept vectors one after the other.
    state: Vec<T>,
    /// Steps whose noise is made; the state belongs to its end.
    window: Range<usize>,
    pass: Pass,
    scratch: Vec<Scratch<T>>,
}

impl<T: Step> Engine<T> {
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
        let recipe = Recipe::new(&plan.recursion, plan.steps)?;
        let tiles = plan.shard.tiles(plan.dim)?;
        let outputs = plan.shard.len();
        let per_unit = plan.grid.map(|grid| plan.noise_std / grid.spacing());
        if let Some(per_unit) = per_unit {
            check_grid(&recipe, plan.steps, per_unit)?;
        }
        let numbers = Numbers { outputs, bytes: size_of::<T>() as u64, on_grid: plan.grid.is_some() };
        let placement = Placement::choose(&recipe, plan.steps, numbers, limits);
        let correlator = Correlator::new(&recipe.leaf);
        let past = if placement.state == State::Stored { history(&recipe.leaf) } else { 0 };
        let replayed = if placement.state == State::Replayed { history(&recipe.leaf) } else { 0 };
        let kept = placement.vectors;
        let state = zeros(kept as u64 * outputs as u64)?;
        let scratch = (0..threads).map(|_| Scratch::new(isa, T::at_once(&correlator), replayed)).collect();
        let pass = Pass::new(KeySource::new(key, plan.cipher, NOISE), &recipe, &placement, per_unit);
        let (steps, noise_std) = (plan.steps, plan.noise_std);
        let spacing = plan.grid.map(Grid::spacing);
        Ok(Self {
            recipe,
            correlator,
            placement,
            steps,
            noise_std,
            spacing,
            tiles,
            outputs,
            past,
            kept,
            state,
            window: 0..0,
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

    pub(crate) fn state(&self) -> (&[T], Range<usize>) {
        (&self.state, self.window.clone())
    }

    pub(crate) fn restore(&mut self, window: Range<usize>) -> &mut [T] {
        self.window = window;
        &mut self.state
    }

    /// Hands out row `step`, which is the next one or one already made.
    pub(crate) fn emit(&mut self, step: usize, out: &mut [f32], emit: Emit) {
        let factor = self.noise_std * self.recipe.place(step).factor;
        let leave = Leave { emit, factor, spacing: self.spacing, large: is_large(out) };
        let fused = self.placement.look_ahead == 1;
        if fused || !self.window.contains(&step) {
            let end = self.steps.min(step + self.placement.look_ahead);
            self.pass.prepare(&self.recipe, self.placement.state, step..end);
            if !fused {
                self.run_window(step);
            }
            self.window = step..end;
        }
        let slot = match self.correlator.output_slot(step) {
            Some(slot) if self.placement.state == State::Stored => slot,
            _ => self.past + step - self.window.start,
        };
        let Self { correlator, past, kept, state, pass, scratch, tiles, .. } = self;
        let work = |scratch: &mut Scratch<T>, tile: &Tile, vectors: &mut [T], out: &mut [f32], near: &[T]| {
            let Some(start) = tile.start else {
                return if matches!(emit, Emit::Write) {
                    out.fill(0.0)
                };
            };
            if fused {
                pass.run_tile(
                    correlator,
                    scratch,
                    (start, tile.len),
                    vectors.split_at_mut(*past * tile.len),
                    step,
                    near,
                );
                T::leave(scratch.isa(), &leave, &scratch.noise[..tile.len], out);
            } else {
                prefetch(near);
                T::leave(scratch.isa(), &leave, &vectors[slot * tile.len..][..tile.len], out);
            }
        };
        let fetched = if fused { 0..*kept } else { slot..slot + 1 };
        each_tile(scratch, tiles, state, *kept, fetched, Some(out), &work);
    }

    /// Brings the state to where `step` is the next one.
    pub(crate) fn seek(&mut self, step: usize) {
        if self.window.contains(&step) && self.placement.look_ahead > 1 || step == self.window.end {
            return;
        }
        if step < self.steps && self.placement.state == State::Stored {
            let place = self.recipe.place(step);
            let mut from = step - place.local;
            // Plain seed noise needs no more than itself; on a grid it carries the roundings of all steps.
            if self.spacing.is_none() && matches!(&self.recipe.leaf, Leaf::Ring { keeps: Keeps::Seeds, .. }) {
                from = from.max(step.saturating_sub(self.past));
            }
            if self.window.end <= step {
                from = from.max(self.window.end);
            }
            for first in (from..step).step_by(SEEK_PASS) {
                let end = step.min(first + SEEK_PASS);
                self.pass.prepare(&self.recipe, self.placement.state, first..end);
                // No row of these steps is wanted.
                self.run_window(end);
            }
        }
        self.window = step..step;
    }

    /// Runs the prepared pass over every tile; rows from `first_row` on are kept ahead.
    fn run_window(&mut self, first_row: usize) {
        let Self { correlator, past, kept, state, pass, scratch, tiles, .. } = self;
        let work = |scratch: &mut Scratch<T>, tile: &Tile, vectors: &mut [T], _: &mut [f32], near: &[T]| {
            if let Some(start) = tile.start {
                pass.run_tile(
                    correlator,
                    scratch,
                    (start, tile.len),
                    vectors.split_at_mut(*past * tile.len),
                    first_row,
                    near,
                );
            }
        };
        each_tile(scratch, tiles, state, *kept, 0..*past, None, &work);
    }
}

fn zeros<T: Step>(count: u64) -> Result<Vec<T>, NoiseError> {
    let refused = || {
        NoiseError::input("memory", format!("{} bytes", count as u128 * size_of::<T>() as u128), "available")
    };
    let count = usize::try_from(count).map_err(|_| refused())?;
    let mut check: Vec<T> = Vec::new();
    check.try_reserve_exact(count).map_err(|_| refused())?;
    drop(check);
    Ok(vec![T::default(); count])
}

impl<T: Step> Drop for Engine<T> {
    fn drop(&mut self) {
        self.state.zeroize();
        for scratch in &mut self.scratch {
            scratch.noise.zeroize();
            scratch.past.zeroize();
        }
    }
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
                    engine.emit(step, row, if step % 2 == 0 { Emit::Write } else { Emit::Add(0.3) });
                }
                rows
            };
            let reference = run(Isa::available()[Isa::available().len() - 1]);
            for &isa in Isa::available() {
                assert_eq!(run(isa), reference, "{} on {isa:?}", plan.recursion.state_vectors());
            }
        }
    }
}
