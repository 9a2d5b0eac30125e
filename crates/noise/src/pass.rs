//! One pass over the tiles: which steps it makes, from which seeds.

use std::ops::Range;

use crate::cipher::{KeySource, Keystream};
use crate::correlator::{Ahead, Correlator, PAST_CACHE, Scratch, Step, StepGrid, TileSteps, Use, settle};
use crate::placement::{Placement, State, history};
use crate::recipe::{Leaf, Place, Recipe};
use crate::shard::Tile;

/// Bytes of the next tile's past that are fetched while this tile makes a step: more would be waited for.
const FETCHED_A_STEP: usize = 32 << 10;

/// What one pass over the tiles computes: reused, so that a step allocates nothing.
pub(crate) struct Pass {
    /// The grid of a step of factor 1, if there is one.
    grid: Option<StepGrid>,
    /// The caches do not hold all vectors: rows made ahead are read again when they hold other ones.
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
            grid: per_unit.map(StepGrid::new),
            past_caches: placement.bytes >= PAST_CACHE as u64,
            keys,
            first_seed: 0,
            keystreams: Vec::with_capacity(keystreams),
            places: Vec::with_capacity(places),
            uses: Vec::with_capacity(uses),
        }
    }

    /// Runs some of the listed steps on one tile.
    pub(crate) fn run_tile<T: Step>(
        &self,
        correlator: &Correlator<T>,
        scratch: &mut Scratch<T>,
        tile: TileRun<'_, T>,
    ) {
        let TileRun { start, len, past, ahead, steps, first_row, near } = tile;
        // What the caches hold is near.
        let fetched = if self.past_caches { steps.len() * FETCHED_A_STEP / size_of::<T>() } else { 0 };
        let mut near = &near[..near.len().min(fetched)];
        let first = self.places[0].step;
        let mut ahead = Ahead { rows: ahead, len, first: first_row, past_caches: self.past_caches };
        if matches!(correlator, Correlator::Sum) || !self.uses.is_empty() {
            let keystream = |seed: u64| &self.keystreams[(seed - self.first_seed) as usize];
            scratch.sum(&self.uses, steps.len(), keystream, (start, len));
            return scratch.keep_rows(&self.places, self.grid, &mut ahead);
        }
        let mut replayed = std::mem::take(&mut scratch.past);
        let (from, past) = if replayed.is_empty() { (steps.start, past) } else { (first, &mut replayed[..]) };
        let mut places = &self.places[from - first..steps.end - first];
        while let Some(first) = places.first() {
            let count = at_once(places, T::at_once(correlator));
            let (now, later) = places.split_at(count);
            let (near_now, near_later) = near.split_at(near.len() * count / places.len());
            let seeds = &self.keystreams[first.step - self.first_seed as usize..][..count];
            let steps =
                TileSteps { correlator, places: now, seeds, start, len, near: near_now, grid: self.grid };
            T::steps(scratch, &steps, past, &mut ahead);
            (places, near) = (later, near_later);
        }
        scratch.past = replayed;
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

    /// Makes the keystreams of `seeds` available: those at hand are kept.
    fn ensure_keystreams(&mut self, seeds: Range<u64>) {
        match seeds.start.checked_sub(self.first_seed) {
            Some(past) if past < self.keystreams.len() as u64 => drop(self.keystreams.drain(..past as usize)),
            _ => self.keystreams.clear(),
        }
        self.first_seed = seeds.start;
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
            Leaf::Blt { .. } | Leaf::Kept { .. } => unreachable!("their seeds are not made again"),
        }
    }
    uses.sort_unstable_by_key(|used| (used.seed, used.row));
}

/// How many of `places` come before the next run starts, at most `most`.
fn at_once(places: &[Place], most: usize) -> usize {
    let runs = places.iter().skip(1).position(|place| place.local == 0);
    runs.map_or(places.len(), |found| found + 1).min(most)
}

/// One tile, and which steps of it are made.
pub(crate) struct TileRun<'a, T: Step> {
    pub(crate) start: u64,
    pub(crate) len: usize,
    pub(crate) past: &'a mut [T],
    /// Rows made ahead, if any are kept apart; without them the last row is left in the scratch.
    pub(crate) ahead: &'a mut [T::Row],
    pub(crate) steps: Range<usize>,
    /// The first step whose row is wanted.
    pub(crate) first_row: usize,
    /// Numbers to be brought near meanwhile.
    pub(crate) near: &'a [T],
}

/// What a tile keeps, and its part of the output.
pub(crate) struct TileParts<'a, T: Step> {
    pub(crate) past: &'a mut [T],
    pub(crate) ahead: &'a mut [T::Row],
    pub(crate) out: &'a mut [f32],
}

impl<'a, T: Step> TileParts<'a, T> {
    /// Those of the first `outputs` outputs, and the others, where an output keeps `past` numbers and `ahead` rows.
    fn split(self, outputs: usize, kept: (usize, usize)) -> (Self, Self) {
        let (past, past_rest) = self.past.split_at_mut(outputs * kept.0);
        let (ahead, ahead_rest) = self.ahead.split_at_mut(outputs * kept.1);
        // Without output there is nothing to split.
        let (out, out_rest) = self.out.split_at_mut(outputs.min(self.out.len()));
        (Self { past, ahead, out }, Self { past: past_rest, ahead: ahead_rest, out: out_rest })
    }
}

/// A tile, its parts, and the past of the tiles that follow.
type Work<'a, T> = dyn Fn(&mut Scratch<T>, &Tile, TileParts<'_, T>, &[T]) + Sync + 'a;

/// Calls `work` on every tile, split over the scratches. A tile keeps `kept.0` vectors and `kept.1` rows ahead.
pub(crate) fn each_tile<T: Step>(
    scratch: &mut [Scratch<T>],
    tiles: &[Tile],
    mut parts: TileParts<'_, T>,
    kept: (usize, usize),
    work: &Work<'_, T>,
) {
    let Some(first) = tiles.first().map(|tile| tile.output) else { return };
    if scratch.len() == 1 || tiles.len() == 1 {
        for tile in tiles {
            let (this, rest) = parts.split(tile.len, kept);
            work(&mut scratch[0], tile, this, rest.past);
            parts = rest;
        }
        settle();
        return;
    }
    let (left_scratch, right_scratch) = scratch.split_at_mut(scratch.len() / 2);
    let all = left_scratch.len() + right_scratch.len();
    let (left_tiles, right_tiles) = tiles.split_at(tiles.len() * left_scratch.len() / all);
    let outputs = right_tiles.first().map_or(0, |tile| tile.output) - first;
    let (left, right) = parts.split(outputs, kept);
    rayon::join(
        || each_tile(left_scratch, left_tiles, left, kept, work),
        || each_tile(right_scratch, right_tiles, right, kept, work),
    );
}
