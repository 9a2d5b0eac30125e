//! Placement: memory against time.
//!
//! 1. The past is stored if the memory budget allows (or the caller requires it). Otherwise it is recomputed:
//!    sums of seeds regenerate their seeds, other recursions are replayed from the start of their run. A sum
//!    of seeds on a grid must be stored: replaying it would be quadratic in the number of steps.
//! 2. A plain sum of more than [`MAX_STORED_SEEDS`] past seeds is always regenerated: making a seed once for
//!    many steps is faster than reading it from memory at each step.
//! 3. Look-ahead divides the memory traffic of the past by the number of steps of a window. An autoregressive
//!    recursion looks ahead within its past vectors; others need memory for rows made ahead, and on a grid
//!    those rows must fit in 4 bytes.
//! 4. Tiles look ahead at different steps (staggered), except where the noise is recomputed, or where a few
//!    tiles with long windows would leave threads idle: these make a window together.

use std::fmt;

use antinoise_input::InvalidParameter;

use crate::flat_recursion::{FlatRecursion, History, Leaf};
use crate::simd::BEYOND_CACHE;

/// Storage of a stream's past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// In memory, updated every step.
    Stored,
    /// Not stored: the seed noise that a step reads is regenerated.
    Regenerated,
    /// Not stored: each step (or window) replays the recursion from the start of its run, one cache-sized
    /// tile at a time; O(t) at step t.
    Replayed,
}

/// Placement of a stream's work and memory: it decides speed and memory, never a bit of the noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Placement {
    /// Storage of the past.
    pub state: State,
    /// Steps of a window: they are made in one iteration over the state, tile by tile in cache, since noise
    /// does not depend on data.
    pub look_ahead: usize,
    /// True if all tiles make the steps of a window at its first step, false if they are staggered.
    pub together: bool,
    /// Stored vectors of the shard's size: the past and, if a window has several steps, rows made ahead.
    pub vectors: usize,
    /// Bytes of these vectors.
    pub bytes: u64,
}

/// Maximum look-ahead: measurements showed no gain from more.
const MAX_LOOK_AHEAD: usize = 32;
/// Maximum number of stored seeds that are read faster than they are regenerated.
const MAX_STORED_SEEDS: usize = 2;
/// Steps of a window of a BLT on a grid.
const BLT_LOOK_AHEAD: usize = 8;
/// Minimum length of a ring on a grid that makes several steps at a time. Times with 128 bands, one million
/// coordinates and two threads: 4.1 ns per coordinate, against 5.7 with one step at a time; for banded C^-1
/// 4.6 against 23.
pub(crate) const LONG_RING: usize = 40;
/// Minimum window length at which a few tiles make windows together: staggered, they would leave threads
/// idle.
const LONG_PASS: usize = 16;
/// Steps of a window of a sum of many seeds on a grid: seeds come from main memory once for all of them.
const SUM_LOOK_AHEAD: usize = 32;
/// Minimum number of seeds at which sums on a grid use long windows; with fewer seeds, recursions of at least
/// [`LONG_RING`] vectors use them if caches do not hold the vectors. With 26,010 coordinates on two cores,
/// 1199 seeds took 0.50 ms a step, against 0.61 with windows of sixteen steps and 1.9 with one step. With 100
/// seeds, which caches hold, windows of eight took 0.21 ms and single steps 0.16.
const MANY_SEEDS: usize = 256;

/// The limits set by the caller.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) bytes: u64,
    pub(crate) look_ahead: usize,
    /// Store the past whenever possible, regardless of memory.
    pub(crate) stored: bool,
}

/// The size of a vector: its numbers, tiles and bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VectorLayout {
    pub(crate) outputs: usize,
    pub(crate) tiles: usize,
    /// Bytes of each element of the noise state.
    pub(crate) bytes: u64,
    /// Bytes of each element of a row of noise that is generated before its step.
    pub(crate) row_bytes: u64,
    pub(crate) on_grid: bool,
    /// Coordinates of the whole stream.
    pub(crate) dim: usize,
}

impl VectorLayout {
    /// Whether `vectors` vectors of the whole stream exceed the caches: the same answer for each of its
    /// shards.
    fn beyond_cache(&self, vectors: usize) -> bool {
        self.dim as u128 * u128::from(self.bytes) * vectors as u128 >= BEYOND_CACHE as u128
    }
}

/// Half of the memory that is free now; 8 GiB if the system does not report it.
pub(crate) fn default_budget() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kibibytes = line.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kibibytes.map_or(8 << 30, |kibibytes| kibibytes * 512)
}

impl Placement {
    /// The fastest placement within the limits. `rows_fit`: whether rows made ahead can be stored; called
    /// only if there would be any.
    ///
    /// # Errors
    /// If seeds that have to be stored exceed the memory budget.
    pub(crate) fn choose(
        flat: &FlatRecursion,
        steps: usize,
        numbers: VectorLayout,
        limits: Limits,
        rows_fit: impl Fn() -> bool,
    ) -> std::result::Result<Self, InvalidParameter> {
        let vector = numbers.outputs as u64 * numbers.bytes;
        let row = numbers.outputs as u64 * numbers.row_bytes;
        let affordable = |bytes: u64| (limits.bytes / bytes.max(1)).min(usize::MAX as u64) as usize;
        let stored = flat.leaf.past_vectors();
        let is_affordable = limits.stored || stored <= affordable(vector);
        let ahead = MAX_LOOK_AHEAD.min(limits.look_ahead).min(steps);
        let made_again = |state| {
            let look_ahead = if rows_fit() { ahead.min(affordable(row)).max(1) } else { 1 };
            (state, look_ahead, 0, apart(look_ahead))
        };
        let (state, look_ahead, past, rows) = match &flat.leaf {
            Leaf::Sum { .. } => made_again(State::Regenerated),
            // A transform makes all rows of a run: as many are stored as fit in memory.
            Leaf::Circulant { .. } => {
                let look_ahead = limits.look_ahead.min(steps).min(affordable(row)).max(1);
                (State::Regenerated, look_ahead, 0, apart(look_ahead))
            }
            Leaf::Ring { history: History::Outputs, .. } if is_affordable => {
                (State::Stored, ahead.min(stored).max(1), stored, 0)
            }
            // A few stored seeds are read faster than made; more seeds are faster made once for many steps.
            Leaf::Ring { history: History::Seeds, .. }
                if !numbers.on_grid && (stored > MAX_STORED_SEEDS || !is_affordable) =>
            {
                made_again(State::Regenerated)
            }
            _ if is_affordable => {
                // On a grid, numbers have twice the bytes and more arithmetic: windows of several steps pay
                // in fewer cases.
                let wanted = match &flat.leaf {
                    _ if !numbers.on_grid => 1,
                    Leaf::Blt { .. } => BLT_LOOK_AHEAD.min(ahead),
                    _ if stored >= MANY_SEEDS => SUM_LOOK_AHEAD.min(ahead),
                    _ if stored >= LONG_RING && numbers.beyond_cache(stored) => SUM_LOOK_AHEAD.min(ahead),
                    _ => 1,
                };
                let left = limits.bytes.saturating_sub(stored as u64 * vector);
                let has_room = limits.stored || apart(wanted) as u64 * row <= left;
                let fits = wanted > 1 && has_room && rows_fit();
                let look_ahead = if fits { wanted } else { 1 };
                (State::Stored, look_ahead, stored, apart(look_ahead))
            }
            // Recomputation would be quadratic in the number of steps.
            Leaf::Retained { .. } => {
                let needed = stored as u128 * u128::from(vector);
                let must_be = format!(
                    "at least {needed} bytes, in which a sum of seeds on a grid keeps {stored} past seeds of {} outputs",
                    numbers.outputs
                );
                return Err(InvalidParameter::new(
                    "memory_budget",
                    format!("{} bytes", limits.bytes),
                    must_be,
                ));
            }
            Leaf::Ring { .. } | Leaf::Blt { .. } => made_again(State::Replayed),
        };
        let bytes = past as u64 * vector + rows as u64 * row;
        // The terms of a window that regenerates seeds are listed once for all tiles.
        let together = state != State::Stored || look_ahead >= LONG_PASS && numbers.tiles < 2 * look_ahead;
        Ok(Self { state, look_ahead, together, vectors: past + rows, bytes })
    }
}

/// Rows stored separately from the past, for windows of `look_ahead` steps.
fn apart(look_ahead: usize) -> usize {
    if look_ahead > 1 { look_ahead } else { 0 }
}

/// Checkpoints store this text: after a change of its words they recompute their past from the key.
impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Stored => "state in memory",
            State::Regenerated => "seed noise regenerated",
            State::Replayed => "recursion replayed",
        };
        write!(
            f,
            "{state}, {} step(s) a pass{}, {} vectors, {} bytes",
            self.look_ahead,
            if self.together && self.state == State::Stored { " of all tiles" } else { "" },
            self.vectors,
            self.bytes
        )
    }
}
