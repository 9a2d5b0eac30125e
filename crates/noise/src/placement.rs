//! The choice between memory and time.

use std::fmt;

use antinoise_input::InvalidParameter;

use crate::flat_recursion::{FlatRecursion, History, Leaf};
use crate::simd::BEYOND_CACHE;

/// Where a stream keeps its past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// In memory, updated every step.
    Stored,
    /// Not stored: the seed noise that a step needs is regenerated.
    Regenerated,
    /// Not stored: the recursion is replayed from the start of its run, one cache-sized tile at a time, O(t) a step.
    Replayed,
}

/// How a stream is run; it decides speed and memory, never a bit of the noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placement {
    /// Where the past lives.
    pub state: State,
    /// Steps of a window: they are made in one iteration over the state, tile by tile in cache, since noise does not depend on data.
    pub look_ahead: usize,
    /// True where all tiles make the steps of a window at its first, false where they take turns.
    pub together: bool,
    /// Vectors of the shard's size that are stored: past ones and, beyond one step of look-ahead, coming ones.
    pub vectors: usize,
    /// Bytes of these vectors.
    pub bytes: u64,
}

/// A longer look-ahead gained nothing in measurements.
const LONGEST_LOOK_AHEAD: usize = 32;
/// Up to so many seeds are faster stored than regenerated.
const FEW_SEEDS: usize = 2;
/// Steps that a BLT makes in one pass on a grid.
const BLT_LOOK_AHEAD: usize = 8;
/// From so many vectors on a ring on a grid is read once for several steps: with 128 bands, one million coordinates and two threads 4.1 ns a coordinate,
/// where they were read for each step 5.7, and for banded C^-1 4.6 where 23.
pub(crate) const LONG_RING: usize = 40;
/// Few tiles compute together where a pass has so many steps: taking turns, they would leave threads idle.
const LONG_PASS: usize = 16;
/// Steps that a sum of many seeds makes in one pass on a grid: seeds come from main memory once for all of them.
const SUM_LOOK_AHEAD: usize = 32;
/// From so many seeds on, and of fewer where caches do not hold them. Of 26,010 coordinates on two cores, 1199 took 0.50 ms a step, where sixteen steps at a time
/// took 0.61 and one by one 1.9. Of 100 seeds, which caches hold, eight at a time took 0.21 ms and one by one 0.16.
const MANY_SEEDS: usize = 256;

/// What the caller allows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) bytes: u64,
    pub(crate) look_ahead: usize,
    /// Stores the past wherever it can be stored, regardless of memory.
    pub(crate) stored: bool,
}

/// How many numbers a vector has, in how many tiles, and of what size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbers {
    pub(crate) outputs: usize,
    pub(crate) tiles: usize,
    /// Of a number of the past.
    pub(crate) bytes: u64,
    /// Of a number in a row made ahead.
    pub(crate) row_bytes: u64,
    pub(crate) on_grid: bool,
    /// Of the whole stream.
    pub(crate) dim: usize,
}

impl Numbers {
    /// True where caches do not hold so many vectors of the whole stream: the same for each of its shards.
    fn beyond_cache(&self, vectors: usize) -> bool {
        self.dim as u128 * u128::from(self.bytes) * vectors as u128 >= BEYOND_CACHE as u128
    }
}

/// Half of the memory that is free now; 8 GiB where the system does not say.
pub(crate) fn default_budget() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kibibytes = line.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kibibytes.map_or(8 << 30, |kibibytes| kibibytes * 512)
}

impl Placement {
    /// The fastest placement within the limits; `rows_fit` says whether rows made ahead can be stored, and is asked only
    /// where there would be any.
    ///
    /// # Errors
    /// When seeds that have to be stored take more memory than that.
    pub(crate) fn choose(
        flat: &FlatRecursion,
        steps: usize,
        numbers: Numbers,
        limits: Limits,
        rows_fit: impl Fn() -> bool,
    ) -> std::result::Result<Self, InvalidParameter> {
        let vector = numbers.outputs as u64 * numbers.bytes;
        let row = numbers.outputs as u64 * numbers.row_bytes;
        let affordable = |bytes: u64| (limits.bytes / bytes.max(1)).min(usize::MAX as u64) as usize;
        let stored = flat.leaf.past_vectors();
        let is_affordable = limits.stored || stored <= affordable(vector);
        let ahead = LONGEST_LOOK_AHEAD.min(limits.look_ahead).min(steps);
        let made_again = |state| {
            let look_ahead = if rows_fit() { ahead.min(affordable(row)).max(1) } else { 1 };
            (state, look_ahead, 0, apart(look_ahead))
        };
        let (state, look_ahead, past, rows) = match &flat.leaf {
            Leaf::Sum { .. } => made_again(State::Regenerated),
            // A transform makes all rows: as many are kept as there is room for.
            Leaf::Circulant { .. } => {
                let look_ahead = limits.look_ahead.min(steps).min(affordable(row)).max(1);
                (State::Regenerated, look_ahead, 0, apart(look_ahead))
            }
            Leaf::Ring { history: History::Outputs, .. } if is_affordable => {
                (State::Stored, ahead.min(stored).max(1), stored, 0)
            }
            // A few seeds are read faster than made; more of them, made once for many steps, are not.
            Leaf::Ring { history: History::Seeds, .. }
                if !numbers.on_grid && (stored > FEW_SEEDS || !is_affordable) =>
            {
                made_again(State::Regenerated)
            }
            _ if is_affordable => {
                // Twice the bytes and more arithmetic: on a grid fewer passes over the state pay.
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
            // Run again, they would take the square of the steps so far.
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
        // Sums of seeds that are made again are listed for all tiles at once.
        let together = state != State::Stored || look_ahead >= LONG_PASS && numbers.tiles < 2 * look_ahead;
        Ok(Self { state, look_ahead, together, vectors: past + rows, bytes })
    }
}

/// Rows stored apart from the past when so many steps are made at a time.
fn apart(look_ahead: usize) -> usize {
    if look_ahead > 1 { look_ahead } else { 0 }
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
            "{state}, {} step(s) a pass{}, {} vectors, {} bytes",
            self.look_ahead,
            if self.together && self.state == State::Stored { " of all tiles" } else { "" },
            self.vectors,
            self.bytes
        )
    }
}
