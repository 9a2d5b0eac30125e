//! Placement: what a stream stores and what it recomputes.
//!
//! 1. The past is stored if the memory budget allows (or the caller requires it). Otherwise it is recomputed:
//!    sums of seeds regenerate their seeds, and other recursions are replayed from the start of their run.
//!    The past of a sum of seeds on a grid must be stored, since replaying it takes time quadratic in the
//!    number of steps.
//! 2. The past of a plain sum of more than [`MAX_STORED_SEEDS`] past seeds is always regenerated: making a
//!    seed once for many steps is faster than reading it from memory in each step.
//! 3. Look-ahead divides the memory traffic of the past by the number of steps of a window. An autoregressive
//!    recursion stores rows made ahead in its past; other recursions need further memory for them, and on a
//!    grid their numbers must fit in 4 bytes.
//! 4. Tiles look ahead at different steps (staggered). They look ahead together if the past is recomputed, or
//!    if few tiles with long windows would leave threads idle.

use std::fmt;

use antinoise_input::InvalidParameter;

use crate::flat_recursion::{FlatRecursion, History, Leaf};
use crate::simd::BEYOND_CACHE;

/// How the past of a stream is stored or recomputed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Stored in memory, and updated at every step.
    Stored,
    /// Not stored: past seed noise is regenerated.
    Regenerated,
    /// Not stored: each step (or window) replays the recursion from the start of its run, tile by tile in
    /// cache. O(t) time at step t.
    Replayed,
}

/// How a stream trades memory for time. It changes no bit of the noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Placement {
    /// Storage of the past.
    pub state: State,
    /// Number of steps of a window, which are made in one iteration over the past, tile by tile in cache.
    /// This is possible since noise does not depend on data.
    pub look_ahead: usize,
    /// Whether all tiles make the steps of a window at its first step; otherwise tiles are staggered.
    pub together: bool,
    /// Number of stored vectors of the shard's size: the past and, if a window has several steps, rows made
    /// ahead.
    pub vectors: usize,
    /// Number of bytes of these vectors.
    pub bytes: u64,
}

/// Maximum look-ahead: measurements showed no gain from more.
const MAX_LOOK_AHEAD: usize = 32;
/// Maximum number of stored seeds that are read faster than they are regenerated.
const MAX_STORED_SEEDS: usize = 2;
/// Number of steps of a window of a BLT on a grid.
const BLT_LOOK_AHEAD: usize = 8;
/// Minimum length of a ring on a grid for which several steps are made together. With 128 bands, one million
/// coordinates and two threads, this takes 4.1 ns per coordinate, and single steps 5.7 ns; for banded C^-1,
/// 4.6 ns and 23 ns.
pub(crate) const LONG_RING: usize = 40;
/// Minimum number of steps of a window for which few tiles look ahead together; staggered, they would leave
/// threads idle.
const LONG_PASS: usize = 16;
/// Number of steps of a window of a sum of many seeds on a grid. Seeds are read from main memory once for all
/// of these steps.
const SUM_LOOK_AHEAD: usize = 32;
/// Minimum number of seeds for which sums on a grid always use long windows; recursions of at least
/// [`LONG_RING`] vectors use them if the vectors do not fit in the caches. With 26,010 coordinates on two
/// cores, 1199 seeds took 0.50 ms a step in windows of 32 steps, 0.61 ms in windows of 16 steps, and 1.9 ms
/// in single steps. 100 seeds, which fit in the caches, took 0.21 ms in windows of eight steps and 0.16 ms in
/// single steps.
const MANY_SEEDS: usize = 256;

/// The limits that the caller sets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) bytes: u64,
    pub(crate) look_ahead: usize,
    /// Whether to store the past whenever possible, however much memory it takes.
    pub(crate) stored: bool,
}

/// The size of a vector: its numbers, tiles and bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VectorLayout {
    pub(crate) outputs: usize,
    pub(crate) tiles: usize,
    /// Bytes of each element of the past.
    pub(crate) bytes: u64,
    /// Bytes of each element of a row made ahead.
    pub(crate) row_bytes: u64,
    pub(crate) on_grid: bool,
    /// Number of coordinates of the whole stream.
    pub(crate) dim: usize,
}

impl VectorLayout {
    /// Whether `vectors` vectors of the whole stream exceed the caches. The answer is the same for each of
    /// its shards.
    fn beyond_cache(&self, vectors: usize) -> bool {
        self.dim as u128 * u128::from(self.bytes) * vectors as u128 >= BEYOND_CACHE as u128
    }
}

/// Returns half of the free memory, or 8 GiB if the system does not report it.
pub(crate) fn default_budget() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kibibytes = line.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kibibytes.map_or(8 << 30, |kibibytes| kibibytes * 512)
}

impl Placement {
    /// Chooses the fastest placement within the limits. `rows_fit`, which is called only if there would be
    /// rows made ahead, returns whether their numbers fit in 4 bytes.
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
            // Fourier transforms make all rows of a run together, and as many are stored as fit in memory.
            Leaf::Circulant { .. } => {
                let look_ahead = limits.look_ahead.min(steps).min(affordable(row)).max(1);
                (State::Regenerated, look_ahead, 0, apart(look_ahead))
            }
            Leaf::Ring { history: History::Outputs, .. } if is_affordable => {
                (State::Stored, ahead.min(stored).max(1), stored, 0)
            }
            // Few seeds are faster to read from memory; more seeds are faster to regenerate, once for many
            // steps.
            Leaf::Ring { history: History::Seeds, .. }
                if !numbers.on_grid && (stored > MAX_STORED_SEEDS || !is_affordable) =>
            {
                made_again(State::Regenerated)
            }
            _ if is_affordable => {
                // On a grid, numbers have twice as many bytes and need more arithmetic, so that windows of
                // several steps are faster in fewer cases.
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
            // Recomputation would take time quadratic in the number of steps.
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
            Leaf::Ring { .. } | Leaf::Blt { .. } | Leaf::VaryingBlt(_) | Leaf::Rational { .. } => {
                made_again(State::Replayed)
            }
        };
        let bytes = past as u64 * vector + rows as u64 * row;
        // If seeds are regenerated, the terms of a window are listed once for all tiles, which therefore look
        // ahead together.
        let together = state != State::Stored || look_ahead >= LONG_PASS && numbers.tiles < 2 * look_ahead;
        Ok(Self { state, look_ahead, together, vectors: past + rows, bytes })
    }
}

/// Returns the number of rows that are stored separately from the past, for windows of `look_ahead` steps.
fn apart(look_ahead: usize) -> usize {
    if look_ahead > 1 { look_ahead } else { 0 }
}

/// Checkpoints store this text. If its words change, streams that are resumed from older checkpoints
/// recompute their past.
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
