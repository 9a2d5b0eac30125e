//! The steps whose noise is in use in this process. A row of noise hides one sum: two sums under the same row
//! reveal their difference.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::errors::{Raised, Result};

/// The identity of a run's noise: the run's public token, and the digest of everything else that the noise
/// depends on.
pub type Noise = (String, [u8; 32]);

/// The noise in use. Entries outlive their streams and last as long as the process.
static ALL: Mutex<Option<HashMap<Noise, Shared>>> = Mutex::new(None);

type Shared = Arc<Mutex<Vec<Shard>>>;

/// The use of a step's row of noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// The row is in the noisy sum with this digest.
    InNoisySum(u64),
    /// The row was handed out; the sum to which the caller adds it is unknown.
    HandedOut,
}

/// Coordinates of one stream, and the steps whose rows are in use.
struct Shard {
    coordinates: Vec<Range<u64>>,
    /// The indices of all shards that share a coordinate with this one, including its own.
    overlapping: Vec<usize>,
    steps: HashMap<usize, Use>,
}

/// The steps of a stream that are in use, 16 bytes each; shared by all streams of this process with the same
/// noise.
pub struct Uses {
    shards: Shared,
    own: usize,
}

impl Uses {
    /// The record for a stream of these coordinates. The record of `guessable` noise is cleared first, for
    /// tests and examples that are run twice.
    pub fn of(noise: Noise, mut coordinates: Vec<Range<u64>>, guessable: bool) -> Self {
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        let all = all.get_or_insert_default();
        if guessable {
            all.remove(&noise);
        }
        let shards = Arc::clone(all.entry(noise).or_default());
        coordinates.retain(|range| !range.is_empty());
        let own = enter(&mut locked(&shards), coordinates);
        Self { shards, own }
    }

    /// Records the use of a step's row; refused if the row has another use. The same noisy sum may be
    /// repeated, since it is the same bit by bit.
    pub fn take(&self, step: usize, now: Use) -> Result<()> {
        let mut shards = locked(&self.shards);
        for &other in &shards[self.own].overlapping {
            match shards[other].steps.get(&step) {
                Some(Use::InNoisySum(_)) if other == self.own && shards[other].steps[&step] == now => {}
                Some(&before) => return Err(in_use(step, before, now)),
                None => {}
            }
        }
        shards[self.own].steps.insert(step, now);
        Ok(())
    }

    /// Forgets the use of these coordinates' rows from `step` on.
    pub fn forget(&self, step: usize) {
        let mut shards = locked(&self.shards);
        for other in shards[self.own].overlapping.clone() {
            shards[other].steps.retain(|&used, _| used < step);
        }
    }
}

fn locked(shards: &Shared) -> MutexGuard<'_, Vec<Shard>> {
    shards.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Finds or adds the shard of these coordinates, and returns its place.
fn enter(shards: &mut Vec<Shard>, coordinates: Vec<Range<u64>>) -> usize {
    if let Some(own) = shards.iter().position(|shard| shard.coordinates == coordinates) {
        return own;
    }
    let own = shards.len();
    let mut overlapping = vec![own];
    for (number, shard) in shards.iter_mut().enumerate() {
        if overlap(&shard.coordinates, &coordinates) {
            shard.overlapping.push(own);
            overlapping.push(number);
        }
    }
    shards.push(Shard { coordinates, overlapping, steps: HashMap::new() });
    own
}

/// Whether a range of `a` overlaps a range of `b`. No range is empty, and the ranges of one list are
/// disjoint.
fn overlap(a: &[Range<u64>], b: &[Range<u64>]) -> bool {
    let mut all: Vec<&Range<u64>> = a.iter().chain(b).collect();
    all.sort_unstable_by_key(|range| range.start);
    all.windows(2).any(|pair| pair[0].end > pair[1].start)
}

fn in_use(step: usize, before: Use, now: Use) -> Raised {
    let (before, now) = match (before, now) {
        (Use::InNoisySum(_), Use::InNoisySum(_)) => ("is in a noisy sum of this process", "another sum"),
        (Use::InNoisySum(_), Use::HandedOut) => ("is in a noisy sum of this process", "anything else"),
        (Use::HandedOut, _) => ("was handed out in this process, to be added to something", "a second sum"),
    };
    Raised::failed(format!(
        "the noise of step {step} {before}: with {now} under the same noise, the difference of the two has none. No noisy sum was made. \
         Continue after that step, begin a run with another key or name, or, if nobody saw the earlier noisy sum and it is discarded, \
         call seek(step, reuse_noise_unprotected=True) first"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_overlap_where_they_share_a_coordinate() {
        let (a, b) = ([5..9, 0..2], [2..5, 9..12]);
        assert!(!overlap(&a, &b) && !overlap(&a, &[]) && overlap(&a, &a));
        for other in [1..2, 8..9, 0..20, 4..6] {
            assert!(overlap(&a, std::slice::from_ref(&other)), "{other:?}");
        }
    }
}
