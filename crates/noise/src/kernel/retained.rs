//! The kernel of sums of seeds on a grid, which stores every seed that a later step reads, with its rounding.

use std::sync::Arc;

use super::past_sum::{MAX_STEPS, PastSum, Shared};
use crate::flat_recursion::{Position, RetainedRow};

/// The seeds that each step reads, with their weights and slots.
pub(crate) struct Retained {
    rows: Arc<[RetainedRow]>,
}

impl Retained {
    pub(super) fn new(rows: &Arc<[RetainedRow]>) -> Self {
        Self { rows: rows.clone() }
    }

    fn row(&self, position: &Position) -> &RetainedRow {
        &self.rows[position.local]
    }
}

impl PastSum for Retained {
    fn terms(&self, position: &Position) -> usize {
        self.row(position).past.len()
    }

    fn weights<'a>(&'a self, position: &Position) -> impl Fn(usize) -> f64 + 'a {
        let past = &self.row(position).past;
        |k| past[k].1
    }

    fn slots<'a>(&'a self, position: &Position) -> impl Fn(usize) -> usize + 'a {
        let past = &self.row(position).past;
        |k| past[k].0
    }

    fn fresh(&self, position: &Position) -> f64 {
        self.row(position).fresh
    }

    fn shared(&self, positions: &[Position]) -> Shared {
        let all_of_the_first = self.terms(&positions[0]);
        let steps = positions[..positions.len() - 1].iter();
        let count = steps.map(|position| self.row(position).shared).fold(all_of_the_first, usize::min);
        Shared { first: [0; MAX_STEPS], count }
    }

    fn keeps_seeds(&self) -> bool {
        true
    }

    fn keep(&self, position: &Position, seed: &[f64], past: &mut [f64]) {
        if let Some(slot) = self.row(position).retained_at {
            past[slot * seed.len()..][..seed.len()].copy_from_slice(seed);
        }
    }
}
