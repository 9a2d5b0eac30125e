//! Sums of seeds whose past seeds are retained in memory: which past seeds each step reads, and their slots
//! in memory.
//!
//! 1. Row t reads seed t, for the first time, and some earlier seeds. A seed that a later row reads is
//!    stored, with its rounding, in a slot.
//! 2. Slots are assigned as a compiler assigns registers: a slot is free after the last row that reads its
//!    seed, and the next seed to be stored uses it. So the number of slots is the maximum number of seeds
//!    that are live at the same time.
//! 3. Consecutive rows often begin with the same past seeds; `shared` counts them, so that several steps read
//!    these vectors from main memory once.

use std::sync::Arc;

/// The row of one step t: fresh * z_t + sum over past terms of weight * z'_s, where z'_s is the retained seed
/// s.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RetainedRow {
    /// The weight of the step's own seed.
    pub(crate) fresh: f64,
    /// (slot, weight) of each past seed, oldest first.
    pub(crate) past: Vec<(usize, f64)>,
    /// How many of the first past seeds are the same, in the same order, in this row and the next.
    pub(crate) shared: usize,
    /// The slot in which the step's own seed is stored, if a later step reads it.
    pub(crate) retained_at: Option<usize>,
}

/// Assigns slots to the seeds of `rows`, where row t is the first to read seed t; returns the rows and the
/// number of slots.
pub(crate) fn retained_rows(rows: &[Vec<(usize, f64)>]) -> (Arc<[RetainedRow]>, usize) {
    let mut last_use: Vec<usize> = (0..rows.len()).collect();
    for (t, row) in rows.iter().enumerate() {
        row.iter().for_each(|&(seed, _)| last_use[seed] = t);
    }
    let (mut slots, mut free) = (0, Vec::new());
    let mut slot_of = vec![0; rows.len()];
    let kept = rows.iter().enumerate().map(|(t, row)| {
        let past = row.iter().filter(|&&(seed, _)| seed < t);
        let past: Vec<_> = past.map(|&(seed, weight)| (slot_of[seed], weight)).collect();
        // A step reads earlier seeds before it stores its own, so slots of seeds that are read here for the
        // last time can be reused.
        free.extend(
            row.iter().filter(|&&(seed, _)| seed < t && last_use[seed] == t).map(|&(seed, _)| slot_of[seed]),
        );
        let retained_at = (last_use[t] > t).then(|| {
            free.pop().unwrap_or_else(|| {
                slots += 1;
                slots - 1
            })
        });
        slot_of[t] = retained_at.unwrap_or_default();
        let fresh = row.last().map_or(0.0, |&(_, weight)| weight);
        let next = rows.get(t + 1).map_or(&[][..], |next| next);
        let shared = row.iter().zip(next).take_while(|(this, next)| this.0 < t && this.0 == next.0).count();
        RetainedRow { fresh, past, shared, retained_at }
    });
    let kept = kept.collect();
    (kept, slots)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulated slots give every row the seeds that it reads.
    #[test]
    fn no_slot_is_taken_before_its_last_use() {
        for period in [1, 2, 5, 40] {
            let rows: Vec<Vec<(usize, f64)>> = (0..40)
                .map(|t: usize| {
                    (0..=t)
                        .filter(|s| s + period >= t && (s * t) % 3 != 1 || *s == t)
                        .map(|s| (s, 1.0))
                        .collect()
                })
                .collect();
            let (kept, slots) = retained_rows(&rows);
            assert!(slots <= period);
            let mut memory = vec![usize::MAX; slots];
            for (t, (row, kept)) in rows.iter().zip(kept.iter()).enumerate() {
                let found: Vec<usize> = kept.past.iter().map(|&(slot, _)| memory[slot]).collect();
                let wanted: Vec<usize> = row.iter().map(|&(seed, _)| seed).filter(|&seed| seed < t).collect();
                assert_eq!(found, wanted, "step {t}");
                let next = rows.get(t + 1).map_or(&[][..], |next| next).iter().map(|&(seed, _)| seed);
                assert!(next.clone().take(kept.shared).eq(wanted[..kept.shared].iter().copied()), "step {t}");
                assert_ne!(
                    wanted.get(kept.shared).copied().map(Some),
                    Some(next.clone().nth(kept.shared)),
                    "step {t}"
                );
                if let Some(slot) = kept.retained_at {
                    memory[slot] = t;
                }
            }
        }
    }
}
