//! Windows, which are the steps made in one iteration over the tiles, with the seeds that they need.

use std::ops::Range;

use crate::flat_recursion::{FlatRecursion, Leaf, Position};
use crate::kernel::Mode;
use crate::kernel::{Kernel, LookAhead, ScratchOf, Term, TileSteps, make_circulant, store_rows};
use crate::keystream::{KeySource, Keystream};
use crate::normal::Coordinates;
use crate::simd::BEYOND_CACHE;
use crate::{Placement, State};

/// Number of bytes of the next tile's past that are prefetched while a tile makes a step; more would slow the
/// step down.
const FETCHED_A_STEP: usize = 32 << 10;

/// The inputs of an iteration over the tiles. Its memory is reused, so that a step allocates nothing.
pub(crate) struct Window {
    /// Whether stored vectors exceed the caches, so that rows made ahead are written directly to main memory.
    beyond_cache: bool,
    keys: KeySource,
    first_seed: u64,
    /// Keystreams of seeds `first_seed`, `first_seed` + 1, ...
    keystreams: Vec<Keystream>,
    positions: Vec<Position>,
    /// The terms of the rows, if seeds are regenerated.
    terms: Vec<Term>,
}

/// A tile, its memory, and which of the listed steps it makes.
pub(crate) struct TileRun<'a, M: Mode> {
    pub(crate) coordinates: Coordinates<'a>,
    pub(crate) len: usize,
    pub(crate) past: &'a mut [M::Number],
    /// Rows made ahead, if they are stored separately; otherwise the last row is left in the scratch.
    pub(crate) ahead: &'a mut [M::Row],
    pub(crate) steps: Range<usize>,
    /// The first step whose row is stored.
    pub(crate) first_row: usize,
    /// Numbers to prefetch into the cache while the steps are made.
    pub(crate) fetched: &'a [M::Number],
}

impl Window {
    /// Creates a window with capacity for the longest lists that a step needs.
    pub(crate) fn new(keys: KeySource, flat: &FlatRecursion, placement: &Placement) -> Self {
        let steps = placement.look_ahead;
        let runs = steps.div_ceil(flat.run_steps) + 1;
        let (positions, keystreams, terms) = match (placement.state, &flat.leaf) {
            (State::Stored, _) => (steps, steps, 0),
            (State::Replayed, _) => (flat.run_steps + steps, flat.run_steps + steps, 0),
            (State::Regenerated, Leaf::Sum { rows }) => {
                let longest = rows.iter().map(Vec::len).max().unwrap_or(0);
                (steps, runs * flat.run_seeds, steps * longest)
            }
            (State::Regenerated, Leaf::Circulant { .. }) => (steps, runs * flat.run_seeds, 0),
            (State::Regenerated, leaf) => {
                (steps, leaf.past_vectors() + steps, steps * (leaf.past_vectors() + 1))
            }
        };
        Self {
            beyond_cache: placement.bytes >= BEYOND_CACHE as u64,
            keys,
            first_seed: 0,
            keystreams: Vec::with_capacity(keystreams),
            positions: Vec::with_capacity(positions),
            terms: Vec::with_capacity(terms),
        }
    }

    /// Lists the positions, terms and keystreams of these steps; if the past is replayed, from the start of
    /// their run on.
    pub(crate) fn prepare(&mut self, flat: &FlatRecursion, state: State, steps: Range<usize>) {
        let from = match state {
            State::Replayed => steps.start - flat.position(steps.start).local,
            _ => steps.start,
        };
        self.positions.clear();
        self.positions.extend((from..steps.end).map(|step| flat.position(step)));
        let seeds = if state == State::Regenerated {
            list_terms(flat, &self.positions, &mut self.terms);
            match (&flat.leaf, self.terms.first(), self.terms.last()) {
                (Leaf::Ring { .. }, Some(first), Some(last)) => first.seed..last.seed + 1,
                _ => seeds_of_runs(flat, &self.positions),
            }
        } else {
            from as u64..steps.end as u64
        };
        self.make_keystreams(seeds);
    }

    /// Makes some of the listed steps of one tile.
    pub(crate) fn run_tile<M: Mode>(
        &self,
        mode: M,
        kernel: &Kernel<M::Number>,
        scratch: &mut ScratchOf<M>,
        tile: TileRun<'_, M>,
    ) {
        let TileRun { coordinates, len, past, ahead, steps, first_row, fetched } = tile;
        let keystream = |seed: u64| &self.keystreams[(seed - self.first_seed) as usize];
        let mut ahead = LookAhead { rows: ahead, len, first: first_row, beyond_cache: self.beyond_cache };
        if let Kernel::Circulant(convolution) = kernel {
            return make_circulant(
                mode,
                convolution,
                scratch,
                &self.positions,
                keystream,
                coordinates,
                &mut ahead,
            );
        }
        if matches!(kernel, Kernel::Sum) || !self.terms.is_empty() {
            scratch.sum(&self.terms, steps.len(), keystream, (coordinates, len));
            return store_rows(mode, scratch, &self.positions, &mut ahead);
        }
        // The past is not prefetched if it fits in the caches.
        let most = if self.beyond_cache { steps.len() * FETCHED_A_STEP / size_of::<M::Number>() } else { 0 };
        let mut fetched = &fetched[..fetched.len().min(most)];
        let first = self.positions[0].step;
        let mut replayed = std::mem::take(&mut scratch.past);
        let (from, past) = if replayed.is_empty() { (steps.start, past) } else { (first, &mut replayed[..]) };
        let mut positions = &self.positions[from - first..steps.end - first];
        while let Some(first) = positions.first() {
            let count = before_next_run(positions).min(M::at_once(kernel));
            let (now, later) = positions.split_at(count);
            let (fetched_now, fetched_later) = fetched.split_at(fetched.len() * count / positions.len());
            let seeds = &self.keystreams[first.step - self.first_seed as usize..][..count];
            let steps = TileSteps { kernel, positions: now, seeds, coordinates, len, fetched: fetched_now };
            mode.run(scratch, &steps, past, &mut ahead);
            (positions, fetched) = (later, fetched_later);
        }
        scratch.past = replayed;
    }

    /// Creates the keystreams of `seeds`, and reuses those that the previous window also had.
    fn make_keystreams(&mut self, seeds: Range<u64>) {
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

/// Returns the seeds of all runs to which these steps belong.
fn seeds_of_runs(flat: &FlatRecursion, steps: &[Position]) -> Range<u64> {
    steps[0].first_seed..steps[steps.len() - 1].first_seed + flat.run_seeds as u64
}

/// Lists the terms of the rows of these steps, sorted by seed, then by step.
fn list_terms(flat: &FlatRecursion, steps: &[Position], terms: &mut Vec<Term>) {
    terms.clear();
    for (row, position) in steps.iter().enumerate() {
        let mut push = |seed: usize, weight: f64| {
            terms.push(Term { seed: position.first_seed + seed as u64, row, weight });
        };
        match &flat.leaf {
            Leaf::Sum { rows } => rows[position.local].iter().for_each(|&(seed, weight)| push(seed, weight)),
            Leaf::Ring { weights, .. } => {
                let weights = weights.row(position.local).iter().enumerate();
                weights.for_each(|(lag, &w)| push(position.local - lag, w));
            }
            // A circulant's rows read all seeds of their run.
            Leaf::Circulant { .. } => {}
            Leaf::Blt { .. } | Leaf::VaryingBlt(_) | Leaf::Rational { .. } | Leaf::Retained { .. } => {
                unreachable!("their seeds are not regenerated")
            }
        }
    }
    terms.sort_unstable_by_key(|term| (term.seed, term.row));
}

/// Returns the number of these steps that are before the start of the next run.
fn before_next_run(steps: &[Position]) -> usize {
    let next = steps.iter().skip(1).position(|position| position.local == 0);
    next.map_or(steps.len(), |found| found + 1)
}
