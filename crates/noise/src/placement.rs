//! The choice between memory and time.

use std::fmt;

use crate::recipe::{Keeps, Leaf, Recipe};

/// Where a stream's past lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// In memory, updated every step.
    Stored,
    /// Nowhere: the seed noise that a step needs is made again.
    Regenerated,
    /// Nowhere: the recursion is run again from the start of its run, one cache-sized tile at a time, O(t) a step.
    Replayed,
}

/// How a stream is run; it decides speed and memory, never a bit of the noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placement {
    /// Where the past lives.
    pub state: State,
    /// Steps made in one pass over the state, tile by tile in cache: noise does not depend on data.
    pub look_ahead: usize,
    /// Vectors of the shard's size that are kept: past ones and, beyond one step of look-ahead, coming ones.
    pub vectors: usize,
    /// Bytes of these vectors.
    pub bytes: u64,
}

/// Looking further ahead than this gains nothing that was measured.
const LONGEST_LOOK_AHEAD: usize = 32;
/// Seeds that are better stored than made again.
const FEW_SEEDS: usize = 2;
/// Steps that a BLT on a grid makes in one pass.
const GRID_LOOK_AHEAD: usize = 4;

/// What the caller allows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) bytes: u64,
    pub(crate) look_ahead: usize,
}

/// How many numbers a vector has, and of what kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbers {
    pub(crate) outputs: usize,
    pub(crate) bytes: u64,
    pub(crate) on_grid: bool,
}

/// Half of the memory that is free now; 8 GiB where the system does not say.
pub(crate) fn default_budget() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kibibytes = line.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kibibytes.map_or(8 << 30, |kibibytes| kibibytes * 512)
}

impl Placement {
    /// The fastest placement within the limits.
    pub(crate) fn choose(recipe: &Recipe, steps: usize, numbers: Numbers, limits: Limits) -> Self {
        let vector = numbers.outputs as u64 * numbers.bytes;
        let affordable = (limits.bytes / vector.max(1)).min(usize::MAX as u64) as usize;
        let stored = history(&recipe.leaf);
        let ahead = LONGEST_LOOK_AHEAD.min(limits.look_ahead).min(steps);
        let extra = |look_ahead: usize| if look_ahead > 1 { look_ahead } else { 0 };
        let made_again = |state| {
            let look_ahead = ahead.min(affordable).max(1);
            (state, look_ahead, extra(look_ahead))
        };
        let (state, look_ahead, vectors) = match &recipe.leaf {
            Leaf::Sum { .. } => made_again(State::Regenerated),
            Leaf::Ring { keeps: Keeps::Outputs, .. } if stored <= affordable => {
                (State::Stored, ahead.min(stored).max(1), stored)
            }
            // A few seeds are read faster than made; more of them, made once for many steps, are not.
            Leaf::Ring { keeps: Keeps::Seeds, .. }
                if stored <= affordable && (stored <= FEW_SEEDS || numbers.on_grid) =>
            {
                (State::Stored, 1, stored)
            }
            Leaf::Ring { keeps: Keeps::Seeds, .. } if !numbers.on_grid => made_again(State::Regenerated),
            // Twice the bytes and more arithmetic: here fewer passes over the state pay.
            Leaf::Blt { .. } if numbers.on_grid && stored + GRID_LOOK_AHEAD <= affordable => {
                let ahead = GRID_LOOK_AHEAD.min(ahead);
                (State::Stored, ahead, stored + extra(ahead))
            }
            Leaf::Blt { .. } if stored <= affordable => (State::Stored, 1, stored),
            Leaf::Ring { .. } | Leaf::Blt { .. } => made_again(State::Replayed),
        };
        Self { state, look_ahead, vectors, bytes: vectors as u64 * vector }
    }
}

/// Past vectors that one step needs.
pub(crate) fn history(leaf: &Leaf) -> usize {
    match leaf {
        Leaf::Ring { weights, .. } => weights.bands() - 1,
        Leaf::Blt { scale, .. } => scale.len(),
        Leaf::Sum { .. } => 0,
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Stored => "state in memory",
            State::Regenerated => "seed noise made again",
            State::Replayed => "recursion replayed",
        };
        write!(
            f,
            "{state}, {} step(s) a pass, {} vectors, {} bytes",
            self.look_ahead, self.vectors, self.bytes
        )
    }
}
