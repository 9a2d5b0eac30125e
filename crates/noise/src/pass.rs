//! One pass over the tiles: which steps it makes, from which seeds.

use std::ops::Range;

use crate::cipher::{KeySource, Keystream};
use crate::correlator::{Aside, Correlator, PAST_CACHE, Scratch, Step, StepGrid, TileSteps, Use, settle};
use crate::gaussian::TILE;
use crate::placement::{Placement, State, history};
use crate::recipe::{Leaf, Place, Recipe};
use crate::shard::Tile;
use crate::simd::Isa;

/// What one pass over the tiles computes: reused, so that a step allocates nothing.
pub(crate) struct Pass {
    /// Points of the grid for one unit of a step's noise, of factor 1; none without a grid.
    per_unit: Option<f64>,
    /// Rows made ahead are read again when the caches hold other ones.
    past_caches: bool,
    keys: KeySource,
    first_seed: u64,
    keystreams: Vec<Keystream>,
    places: Vec<Place>,
    uses: Vec<Use>,
}

impl Pass {
    /// A pass with room for the longest that a step needs.
    pub(crate) fn new(
        keys: KeySource,
        recipe: &Recipe,
        placement: &Placement,
        per_unit: Option<f64>,
    ) -> Self {
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
            per_unit,
            past_caches: placement.bytes >= PAST_CACHE as u64,
            keys,
            first_seed: 0,
            keystreams: Vec::with_capacity(keystreams),
            places: Vec::with_capacity(places),
            uses: Vec::with_capacity(uses),
        }
    }

    /// Runs the listed steps on one tile. Rows from `first_row` on go to the vectors kept ahead, if there are any;
    /// without such vectors the last row is left in the
    /// scratch. Meanwhile `near` is fetched.
    pub(crate) fn run_tile<T: Step>(
        &self,
        correlator: &Correlator<T>,
        scratch: &mut Scratch<T>,
        (start, len): (u64, usize),
        (past, ahead): (&mut [T], &mut [T]),
        first_row: usize,
        near: &[T],
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
        let grid = self.per_unit.map(StepGrid::new);
        let mut near_left = near;
        let mut places = &self.places[..];
        while let Some(first) = places.first() {
            let count = at_once(places, T::at_once(correlator));
            let (now, later) = places.split_at(count);
            let (near, rest) = near_left.split_at(near_left.len() * count / places.len());
            (places, near_left) = (later, rest);
            let seeds = &self.keystreams[first.step - self.first_seed as usize..][..count];
            let steps = TileSteps { correlator, places: now, seeds, start, len, near, grid };
            T::steps(scratch, &steps, past);
            if ahead.is_empty() {
                scratch.noise.copy_within((count - 1) * TILE..(count - 1) * TILE + len, 0);
                continue;
            }
            for (place, noise) in now.iter().zip(scratch.noise.chunks(TILE)) {
                if place.step >= first_row {
                    let row = &mut ahead[(place.step - first_row) * len..][..len];
                    self.put_ahead(scratch.isa(), &noise[..len], row);
                }
            }
        }
        scratch.past = replayed;
    }

    /// Keeps a row for later: past the caches if there are many of them.
    fn put_ahead<T: Step>(&self, isa: Isa, noise: &[T], row: &mut [T]) {
        if self.past_caches {
            Aside::copying(noise, row).finish(isa);
        } else {
            row.copy_from_slice(noise);
        }
    }

    /// Lists what the steps of `window` need, from the start of their run if it is replayed.
    pub(crate) fn prepare(&mut self, recipe: &Recipe, state: State, window: Range<usize>) {
        let from = match state {
            State::Replayed => window.start - recipe.place(window.start).local,
            _ => window.start,
        };
        self.places.clear();
        self.places.extend((from..window.end).map(|step| recipe.place(step)));
        let seeds = if state == State::Regenerated {
            list_uses(recipe, &self.places, &mut self.uses);
            match &recipe.leaf {
                Leaf::Sum { .. } => run_seeds(recipe, &self.places),
                _ => self
                    .uses
                    .first()
                    .map_or(0..0, |first| first.seed..self.uses[self.uses.len() - 1].seed + 1),
            }
        } else {
            from as u64..window.end as u64
        };
        self.ensure_keystreams(seeds);
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
            uses.push(Use { seed: place.first_seed + seed as u64, row, weight });
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

/// How many of `places` come before the next run starts, at most `most`.
fn at_once(places: &[Place], most: usize) -> usize {
    let runs = places.iter().skip(1).position(|place| place.local == 0);
    runs.map_or(places.len(), |found| found + 1).min(most)
}

/// Numbers of the next tile's state that are fetched while this tile's seed noise is made.
const PREFETCHED: usize = 16 * TILE;

type Work<'a, T> = dyn Fn(&mut Scratch<T>, &Tile, &mut [T], &mut [f32], &[T]) + Sync + 'a;

/// Calls `work` on every tile with its vectors of the state and its part of `out`, split over the scratches.
/// It is given those of the next tile's vectors that are numbered `fetched`, to bring them near meanwhile.
pub(crate) fn each_tile<T: Step>(
    scratch: &mut [Scratch<T>],
    tiles: &[Tile],
    state: &mut [T],
    kept: usize,
    fetched: Range<usize>,
    mut out: Option<&mut [f32]>,
    work: &Work<'_, T>,
) {
    let Some(first) = tiles.first().map(|tile| tile.output) else { return };
    if scratch.len() == 1 || tiles.len() == 1 {
        for (i, tile) in tiles.iter().enumerate() {
            let at = tile.output - first;
            let (vectors, rest) = state[at * kept..].split_at_mut(tile.len * kept);
            let next_len = tiles.get(i + 1).map_or(0, |next| next.len);
            let near = &rest[fetched.start * next_len..][..(next_len * fetched.len()).min(PREFETCHED)];
            let part = out.as_mut().map_or(&mut [][..], |out| &mut out[at..at + tile.len]);
            work(&mut scratch[0], tile, vectors, part, near);
        }
        settle();
        return;
    }
    let (left_scratch, right_scratch) = scratch.split_at_mut(scratch.len() / 2);
    let all = left_scratch.len() + right_scratch.len();
    let (left_tiles, right_tiles) = tiles.split_at(tiles.len() * left_scratch.len() / all);
    let outputs = right_tiles.first().map_or(0, |tile| tile.output) - first;
    let (left_state, right_state) = state.split_at_mut(outputs * kept);
    let (left_out, right_out) = out.map(|out| out.split_at_mut(outputs)).unzip();
    rayon::join(
        || each_tile(left_scratch, left_tiles, left_state, kept, fetched.clone(), left_out, work),
        || each_tile(right_scratch, right_tiles, right_state, kept, fetched.clone(), right_out, work),
    );
}
