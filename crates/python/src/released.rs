//! The steps whose noise is in use in this process: a row of noise hides one sum, and a second sum under it shows the difference of both.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::errors::{Raised, Result};

/// What has the same noise: a run's public token, and all that its noise depends on beside the key.
pub type Noise = (String, [u8; 32]);

/// All of this process, for as long as it lives: streams come and go.
static ALL: Mutex<Option<HashMap<Noise, Shared>>> = Mutex::new(None);

type Shared = Arc<Mutex<Vec<Shard>>>;

/// What became of a step's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// It is in the release of this digest.
    Released(u64),
    /// It was handed out: nobody knows what it is added to.
    HandedOut,
}

/// Coordinates that are made together, and the steps in use.
struct Shard {
    coordinates: Vec<Range<u64>>,
    /// Shards that have a coordinate in common with this one, itself among them.
    overlapping: Vec<usize>,
    steps: HashMap<usize, Use>,
}

/// The steps of a stream that are in use: 16 bytes each, and shared by all streams of this process that make the same noise.
pub struct Released {
    shards: Shared,
    own: usize,
}

impl Released {
    /// Of a stream of these coordinates. Noise that is `guessable` anyway begins anew, for tests and examples that are run twice.
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

    /// Puts a step's row to this use, if it has no other: what is released again is the same, bit by bit.
    pub fn take(&self, step: usize, now: Use) -> Result<()> {
        let mut shards = locked(&self.shards);
        for &other in &shards[self.own].overlapping {
            match shards[other].steps.get(&step) {
                Some(Use::Released(_)) if other == self.own && shards[other].steps[&step] == now => {}
                Some(&before) => return Err(in_use(step, before, now)),
                None => {}
            }
        }
        shards[self.own].steps.insert(step, now);
        Ok(())
    }

    /// Forgets what became of these coordinates' rows from `step` on.
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

/// The place of these coordinates.
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

/// Whether one of these ranges, none of which is empty or overlaps another of its list, overlaps one of those.
fn overlap(a: &[Range<u64>], b: &[Range<u64>]) -> bool {
    let mut all: Vec<&Range<u64>> = a.iter().chain(b).collect();
    all.sort_unstable_by_key(|range| range.start);
    all.windows(2).any(|pair| pair[0].end > pair[1].start)
}

fn in_use(step: usize, before: Use, now: Use) -> Raised {
    let (before, now) = match (before, now) {
        (Use::Released(_), Use::Released(_)) => {
            ("hides a sum that was released in this process", "another sum")
        }
        (Use::Released(_), Use::HandedOut) => {
            ("hides a sum that was released in this process", "anything else")
        }
        (Use::HandedOut, _) => ("was handed out in this process, to be added to something", "a second sum"),
    };
    Raised::failed(format!(
        "the noise of step {step} {before}: with {now} under the same noise, the difference of the two has none. Nothing was released. \
         Go on where that release ended, begin a run with another key or name, or, where what was released is seen by nobody and thrown away, \
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
