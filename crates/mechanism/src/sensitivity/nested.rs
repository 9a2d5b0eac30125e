//! The sensitivity of trees under min-sep: a dynamic program over nested ranges of steps.
//!
//! All entries of C^T C are non-negative, so that sens^2 is the maximum over patterns of the sum over all
//! nodes of w^2 m^2, for m participations below a node of weight w. A pattern matters to the nodes outside a
//! range only by its number of participations in the range, the steps before the first and the steps after
//! the last. So each range has, for every number of participations, a list of [`Placement`]s that no other
//! one replaces. They are sets of patterns, which are closed under joining ranges:
//!
//! 1. The left range has room (A, Z, T) for other participations, see [`Placement`], and the right one (A',
//!    Z', T'). Two participations are at least b apart if the z steps after the last one on the left and the
//!    a steps before the first one on the right have z + a >= b - 1.
//! 2. For given room a on the left of both and z on the right of both, the former is at most min(Z, T - a)
//!    and the latter at most min(A', T' - z).
//! 3. So Z + A' >= b - 1 is necessary, and then a <= min(A, T + A' - (b - 1)), z <= min(Z', Z + T' - (b -
//!    1)) and a + z <= T + T' - (b - 1) are necessary and sufficient.

use std::cmp::Reverse;

use antinoise_input::largest;

use crate::Separation;
use crate::tree::{Nested, Range};

/// Maximum number of pairs of placements that are joined or compared: about a second.
const MAX_JOINED: usize = 1 << 27;
/// The largest squared weight, in the units in which values are added up: as integers, so that equal sums are
/// equal. The squares of k < 2^27 participations times 2^64 fit in 128 bits.
const UNIT: f64 = 18_446_744_073_709_551_616.0;

/// Patterns of one value: for all a <= `before` and z <= `after` with a + z <= `around`, one that leaves a
/// steps before its first participation in the range, and z steps after its last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Placement {
    value: u128,
    before: usize,
    after: usize,
    around: usize,
}

impl Placement {
    /// Returns whether this placement can replace `other`.
    fn covers(&self, other: &Self) -> bool {
        self.value >= other.value
            && self.before >= other.before
            && self.after >= other.after
            && self.around >= other.around
    }

    /// Returns the placement of the patterns of both, if that is one.
    fn merged(&self, other: &Self) -> Option<Self> {
        // No a > the smaller `before` goes with a z > the smaller `after`.
        let complete = self.before.min(other.before) + self.after.min(other.after) + 1 >= self.around;
        ((self.value, self.around) == (other.value, other.around) && complete).then(|| Self {
            before: self.before.max(other.before),
            after: self.after.max(other.after),
            ..*self
        })
    }
}

/// The placements of m participations in a range of this length, at index m.
#[derive(Debug, Clone)]
struct Placements {
    steps: usize,
    of: Vec<Vec<Placement>>,
}

/// Returns sens^2 = max over patterns of the sum over t, tau of (C^T C)\[t, tau\]; `None` if it takes too
/// many operations, or squared weights are all 0 or not finite.
pub(super) fn min_sep(nested: &Nested, separation: Separation) -> Option<f64> {
    let scale = largest(nested.ranges.iter().map(|range| range.square));
    if !(scale > 0.0 && scale.is_finite()) {
        return None;
    }
    let mut joined = Join { separation, left: MAX_JOINED };
    let mut all: Vec<Placements> = Vec::with_capacity(nested.ranges.len());
    for Range { square, parts, .. } in &nested.ranges {
        let square = (square / scale * UNIT).ceil() as u128;
        let mut found = match parts.split_first() {
            None => joined.of_step(),
            Some((&first, others)) => {
                let mut sum = all[first].clone();
                for &other in others {
                    sum = joined.of(&sum, &all[other])?;
                }
                sum
            }
        };
        for (m, placements) in found.of.iter_mut().enumerate() {
            let effect = square * (m as u128).pow(2);
            placements.iter_mut().for_each(|placement| placement.value += effect);
        }
        all.push(found);
    }
    let best = all.last()?.of.iter().flatten().map(|placement| placement.value).max()?;
    Some(best as f64 / UNIT * scale)
}

/// Joins placements until too many have been joined.
struct Join {
    separation: Separation,
    left: usize,
}

impl Join {
    fn of_step(&self) -> Placements {
        let none = Placement { value: 0, before: 1, after: 1, around: 1 };
        let once = Placement { value: 0, before: 0, after: 0, around: 0 };
        Placements { steps: 1, of: vec![vec![none], vec![once]] }
    }

    /// Joins the placements of two adjacent ranges.
    fn of(&mut self, left: &Placements, right: &Placements) -> Option<Placements> {
        let steps = left.steps + right.steps;
        let Separation { min_sep, max_participations } = self.separation;
        let most = max_participations.min((steps - 1) / min_sep + 1);
        let mut of = vec![vec![Placement { value: 0, before: steps, after: steps, around: steps }]];
        for m in 1..=most {
            let mut found = Vec::new();
            for on_left in m.saturating_sub(right.of.len() - 1)..=m.min(left.of.len() - 1) {
                let (before, after) = (&left.of[on_left], &right.of[m - on_left]);
                self.left = self.left.checked_sub(before.len() * after.len())?;
                let of_pair = |x: &Placement, y: &Placement| match (on_left, m - on_left) {
                    (0, _) => {
                        Some(Placement { before: left.steps + y.before, around: left.steps + y.around, ..*y })
                    }
                    (_, 0) => {
                        Some(Placement { after: right.steps + x.after, around: right.steps + x.around, ..*x })
                    }
                    _ => adjacent(x, y, min_sep - 1),
                };
                found.extend(before.iter().flat_map(|x| after.iter().filter_map(move |y| of_pair(x, y))));
            }
            let count = found.len();
            let kept = irreplaceable(found.into_iter().map(|x| capped(x, min_sep - 1)).collect());
            self.left = self.left.checked_sub(count.saturating_mul(kept.len()))?;
            of.push(kept);
        }
        Some(Placements { steps, of })
    }
}

/// Returns the placement of the participations of two adjacent ranges that are at least `gap` + 1 apart.
fn adjacent(left: &Placement, right: &Placement, gap: usize) -> Option<Placement> {
    (left.after + right.before >= gap).then(|| Placement {
        value: left.value + right.value,
        // The room on each side is at most that on both, so that no difference is negative.
        before: left.before.min(left.around + right.before - gap),
        after: right.after.min(left.after + right.around - gap),
        around: left.around + right.around - gap,
    })
}

/// Caps the room at what can matter: `gap` steps on each side.
fn capped(of: Placement, gap: usize) -> Placement {
    let (before, after) = (of.before.min(gap), of.after.min(gap));
    Placement { before, after, around: of.around.min(before + after), ..of }
}

/// Returns the placements that no other one covers.
fn irreplaceable(mut found: Vec<Placement>) -> Vec<Placement> {
    found.sort_unstable_by_key(|x| (Reverse((x.value, x.around)), x.before));
    let mut kept: Vec<Placement> = Vec::new();
    for next in found {
        match kept.last().and_then(|last| last.merged(&next)) {
            Some(both) => *kept.last_mut().expect("it has just been read") = both,
            None if kept.iter().any(|other| other.covers(&next)) => {}
            None => kept.push(next),
        }
    }
    kept
}
