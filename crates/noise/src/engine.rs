//! Runs a recipe over all tiles of a shard, on all threads, a window of steps at a time.

use std::ops::Range;

use zeroize::Zeroize;

use crate::cipher::{KeySource, Keystream};
use crate::correlator::{Correlator, Scratch, Use, add_scaled, is_large, write_scaled};
use crate::gaussian::TILE;
use crate::placement::{Placement, State, history};
use crate::recipe::{Keeps, Leaf, Place, Recipe};
use crate::shard::Tile;
use crate::simd::{Isa, prefetch};
use crate::stream::Plan;
use crate::{Key, NOISE, NoiseError};

/// Steps that a seek makes in one pass over the state.
const SEEK_PASS: usize = 256;

/// How a row leaves the engine.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Emit {
    Write,
    Add(f32),
}

pub(crate) struct Engine {
    recipe: Recipe,
    correlator: Correlator,
    placement: Placement,
    steps: usize,
    noise_std: f64,
    tiles: Vec<Tile>,
    outputs: usize,
    /// Past vectors in memory.
    past: usize,
    /// Vectors a tile keeps in all: `past`, then those made ahead.
    kept: usize,
    /// For each tile, its kept vectors one after the other.
    state: Vec<f32>,
    /// Steps whose noise is made; the state belongs to its end.
    window: Range<usize>,
    pass: Pass,
    scratch: Vec<Scratch>,
}

/// What one pass over the tiles computes: reused, so that a step allocates nothing.
struct Pass {
    keys: KeySource,
    first_seed: u64,
    keystreams: Vec<Keystream>,
    places: Vec<Place>,
    uses: Vec<Use>,
}

impl Engine {
    pub(crate) fn new(plan: &Plan, key: &Key, budget: u64, threads: usize) -> Result<Self, NoiseError> {
        Self::on(Isa::detect(), plan, key, budget, threads)
    }

    pub(crate) fn on(
        isa: Isa,
        plan: &Plan,
        key: &Key,
        budget: u64,
        threads: usize,
    ) -> Result<Self, NoiseError> {
        let recipe = Recipe::new(&plan.recursion, plan.steps)?;
        let tiles = plan.shard.tiles(plan.dim)?;
        let outputs = plan.shard.len();
        let placement = Placement::choose(&recipe, plan.steps, outputs, budget);
        let correlator = Correlator::new(&recipe.leaf);
        let past = if placement.state == State::Stored { history(&recipe.leaf) } else { 0 };
        let replayed = if placement.state == State::Replayed { history(&recipe.leaf) } else { 0 };
        let kept = placement.vectors;
        let state = zeros(kept as u64 * outputs as u64)?;
        let scratch = (0..threads).map(|_| Scratch::new(isa, replayed)).collect();
        let pass = Pass::new(KeySource::new(key, plan.cipher, NOISE), &recipe, &placement);
        let (steps, noise_std) = (plan.steps, plan.noise_std);
        Ok(Self {
            recipe,
            correlator,
            placement,
            steps,
            noise_std,
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

    pub(crate) fn state(&self) -> (&[f32], Range<usize>) {
        (&self.state, self.window.clone())
    }

    pub(crate) fn restore(&mut self, window: Range<usize>) -> &mut [f32] {
        self.window = window;
        &mut self.state
    }

    /// Hands out row `step`, which is the next one or one already made.
    pub(crate) fn emit(&mut self, step: usize, out: &mut [f32], emit: Emit) {
        let factor = self.noise_std * self.recipe.place(step).factor;
        let large = is_large(out);
        let send = move |isa: Isa, x: &[f32], out: &mut [f32]| match emit {
            Emit::Write => write_scaled(isa, large, factor as f32, x, out),
            Emit::Add(scale) => add_scaled(isa, (factor * f64::from(scale)) as f32, x, out),
        };
        let fused = self.placement.look_ahead == 1;
        if fused || !self.window.contains(&step) {
            let end = self.steps.min(step + self.placement.look_ahead);
            self.prepare(step..end);
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
        let work = |scratch: &mut Scratch, tile: &Tile, vectors: &mut [f32], out: &mut [f32]| {
            let Some(start) = tile.start else {
                return if matches!(emit, Emit::Write) {
                    out.fill(0.0)
                };
            };
            if fused {
                pass.run_tile(
                    correlator,
                    scratch,
                    start,
                    tile.len,
                    vectors.split_at_mut(*past * tile.len),
                    step,
                );
                send(scratch.isa(), &scratch.noise[..tile.len], out);
            } else {
                send(scratch.isa(), &vectors[slot * tile.len..][..tile.len], out);
            }
        };
        each_tile(scratch, tiles, state, *kept, Some(out), &work);
    }

    /// Brings the state to where `step` is the next one.
    pub(crate) fn seek(&mut self, step: usize) {
        if self.window.contains(&step) && self.placement.look_ahead > 1 || step == self.window.end {
            return;
        }
        if step < self.steps && self.placement.state == State::Stored {
            let place = self.recipe.place(step);
            let mut from = step - place.local;
            if matches!(&self.recipe.leaf, Leaf::Ring { keeps: Keeps::Seeds, .. }) {
                from = from.max(step.saturating_sub(self.past));
            }
            if self.window.end <= step {
                from = from.max(self.window.end);
            }
            for first in (from..step).step_by(SEEK_PASS) {
                let end = step.min(first + SEEK_PASS);
                self.prepare(first..end);
                // No row of these steps is wanted.
                self.run_window(end);
            }
        }
        self.window = step..step;
    }

    /// Lists what the steps of `window` need, from the start of their run if it is replayed.
    fn prepare(&mut self, window: Range<usize>) {
        let first = self.recipe.place(window.start);
        let from = match self.placement.state {
            State::Replayed => window.start - first.local,
            _ => window.start,
        };
        let Pass { places, uses, .. } = &mut self.pass;
        places.clear();
        places.extend((from..window.end).map(|step| self.recipe.place(step)));
        let seeds = if self.placement.state == State::Regenerated {
            list_uses(&self.recipe, &places[..], uses);
            match &self.recipe.leaf {
                Leaf::Sum { .. } => run_seeds(&self.recipe, places),
                _ => uses.first().map_or(0..0, |first| first.seed..uses[uses.len() - 1].seed + 1),
            }
        } else {
            from as u64..window.end as u64
        };
        self.pass.ensure_keystreams(seeds);
    }

    /// Runs the prepared pass over every tile; rows from `first_row` on are kept ahead.
    fn run_window(&mut self, first_row: usize) {
        let Self { correlator, past, kept, state, pass, scratch, tiles, .. } = self;
        let work = |scratch: &mut Scratch, tile: &Tile, vectors: &mut [f32], _: &mut [f32]| {
            if let Some(start) = tile.start {
                pass.run_tile(
                    correlator,
                    scratch,
                    start,
                    tile.len,
                    vectors.split_at_mut(*past * tile.len),
                    first_row,
                );
            }
        };
        each_tile(scratch, tiles, state, *kept, None, &work);
    }
}

impl Pass {
    /// A pass with room for the longest that a step needs.
    fn new(keys: KeySource, recipe: &Recipe, placement: &Placement) -> Self {
        let window = placement.look_ahead;
        let runs = window.div_ceil(recipe.run_steps) + 1;
        let (places, keystreams, uses) = match (placement.state, &recipe.leaf) {
            (State::Stored, _) => (window, window, 0),
            (State::Replayed, _) => (recipe.run_steps + window, recipe.run_steps + window, 0),
            (State::Regenerated, Leaf::Sum { rows }) => {
                let longest = rows.iter().map(Vec::len).max().unwrap_or(0);
                (window, runs * recipe.run_seeds, window * longest)
            }
            (State::Regenerated, leaf) => (window, history(leaf) + window, window * (history(leaf) + 1)),
        };
        Self {
            keys,
            first_seed: 0,
            keystreams: Vec::with_capacity(keystreams),
            places: Vec::with_capacity(places),
            uses: Vec::with_capacity(uses),
        }
    }

    /// Runs the listed steps on one tile. Rows from `first_row` on go to the vectors kept ahead, if there are any;
    /// the last row is left in the scratch.
    fn run_tile(
        &self,
        correlator: &Correlator,
        scratch: &mut Scratch,
        start: u64,
        len: usize,
        (past, ahead): (&mut [f32], &mut [f32]),
        first_row: usize,
    ) {
        let keystream = |seed: u64| &self.keystreams[(seed - self.first_seed) as usize];
        if matches!(correlator, Correlator::Sum) || !self.uses.is_empty() {
            let mut noise = std::mem::take(&mut scratch.noise);
            let rows = if ahead.is_empty() { &mut noise[..len] } else { ahead };
            scratch.sum(&self.uses, keystream, start, len, rows);
            scratch.noise = noise;
            return;
        }
        let mut replayed = std::mem::take(&mut scratch.past);
        let past = if replayed.is_empty() { past } else { &mut replayed[..] };
        for place in &self.places {
            scratch.step(correlator, place, keystream(place.step as u64), start, len, past);
            if place.step >= first_row && !ahead.is_empty() {
                ahead[(place.step - first_row) * len..][..len].copy_from_slice(&scratch.noise[..len]);
            }
        }
        scratch.past = replayed;
    }

    /// Makes the keystreams of `seeds` available: adds to those at hand when they start alike, else makes them all.
    fn ensure_keystreams(&mut self, seeds: Range<u64>) {
        if seeds.start != self.first_seed {
            self.keystreams.clear();
            self.first_seed = seeds.start;
        }
        for seed in seeds.start + self.keystreams.len() as u64..seeds.end {
            self.keystreams.push(self.keys.keystream(seed));
        }
    }
}

fn zeros(count: u64) -> Result<Vec<f32>, NoiseError> {
    let refused = || NoiseError::input("memory", format!("{} bytes", count as u128 * 4), "available");
    let count = usize::try_from(count).map_err(|_| refused())?;
    let mut check: Vec<f32> = Vec::new();
    check.try_reserve_exact(count).map_err(|_| refused())?;
    drop(check);
    Ok(vec![0.0; count])
}

/// The seeds of the runs that `places` lie in.
fn run_seeds(recipe: &Recipe, places: &[Place]) -> Range<u64> {
    let last = places[places.len() - 1].first_seed;
    places[0].first_seed..last + recipe.run_seeds as u64
}

/// Which seeds the steps at `places` are sums of, in rising order of seed, then of step.
fn list_uses(recipe: &Recipe, places: &[Place], uses: &mut Vec<Use>) {
    uses.clear();
    for (row, place) in places.iter().enumerate() {
        let mut push = |seed: usize, weight: f64| {
            uses.push(Use { seed: place.first_seed + seed as u64, row, weight: weight as f32 });
        };
        match &recipe.leaf {
            Leaf::Sum { rows } => rows[place.local].iter().for_each(|&(seed, weight)| push(seed, weight)),
            Leaf::Ring { weights, .. } => {
                weights.row(place.local).iter().enumerate().for_each(|(lag, &w)| push(place.local - lag, w));
            }
            Leaf::Blt { .. } => unreachable!("a BLT is never a sum of seeds"),
        }
    }
    uses.sort_unstable_by_key(|used| (used.seed, used.row));
}

/// Numbers of the next tile's state that are fetched while this tile's seed noise is made.
const PREFETCHED: usize = 16 * TILE;

type Work<'a> = dyn Fn(&mut Scratch, &Tile, &mut [f32], &mut [f32]) + Sync + 'a;

/// Calls `work` on every tile with its vectors of the state and its part of `out`, split over the scratches.
fn each_tile(
    scratch: &mut [Scratch],
    tiles: &[Tile],
    state: &mut [f32],
    kept: usize,
    mut out: Option<&mut [f32]>,
    work: &Work<'_>,
) {
    let Some(first) = tiles.first().map(|tile| tile.output) else { return };
    if scratch.len() == 1 || tiles.len() == 1 {
        for (i, tile) in tiles.iter().enumerate() {
            let at = tile.output - first;
            if let Some(next) = tiles.get(i + 1) {
                prefetch(&state[(next.output - first) * kept..][..(next.len * kept).min(PREFETCHED)]);
            }
            let vectors = &mut state[at * kept..][..tile.len * kept];
            let part = out.as_mut().map_or(&mut [][..], |out| &mut out[at..at + tile.len]);
            work(&mut scratch[0], tile, vectors, part);
        }
        return;
    }
    let (left_scratch, right_scratch) = scratch.split_at_mut(scratch.len() / 2);
    let all = left_scratch.len() + right_scratch.len();
    let (left_tiles, right_tiles) = tiles.split_at(tiles.len() * left_scratch.len() / all);
    let outputs = right_tiles.first().map_or(0, |tile| tile.output) - first;
    let (left_state, right_state) = state.split_at_mut(outputs * kept);
    let (left_out, right_out) = out.map(|out| out.split_at_mut(outputs)).unzip();
    rayon::join(
        || each_tile(left_scratch, left_tiles, left_state, kept, left_out, work),
        || each_tile(right_scratch, right_tiles, right_state, kept, right_out, work),
    );
}

impl Drop for Engine {
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
            let plan = Plan { recursion, steps, dim, noise_std: 1.0, shard, cipher };
            let run = |isa: Isa| {
                let mut engine = Engine::on(isa, &plan, &Key::from_seed_insecure(4), u64::MAX, 1).unwrap();
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
