//! The kernel of banded C (autoregressive noise) and of banded C^-1 (moving averages): O(bands) time per
//! coordinate, and bands - 1 past vectors.

use super::past_sum::{MAX_STEPS, PastSum, Shared};
use super::sum::weighted_sum;
use crate::flat_recursion::{History, Position, Weights};
use crate::number::Real;
use crate::placement::LONG_RING;
use crate::simd::Isa;

/// The weights, and the layout of the past as a ring buffer.
pub(crate) struct Ring<T> {
    weights: Weights<T>,
    pub(super) history: History,
    /// Number of slots; the past vector of step t is in slot t mod slots.
    pub(super) slots: usize,
}

impl<T: Real> Ring<T> {
    pub(super) fn new(weights: &Weights, history: History) -> Self {
        Self { weights: weights.rounded(), history, slots: weights.bands - 1 }
    }

    /// Whether the ring is so long that making several steps together is faster.
    pub(super) fn is_long(&self) -> bool {
        self.slots >= LONG_RING
    }

    /// Returns the weight of this step's seed noise.
    pub(super) fn weight(&self, position: &Position) -> T {
        self.weights.row(position.local)[0]
    }

    /// Sets out to the weighted sum of the past vectors, oldest first.
    pub(super) fn recall(&self, isa: Isa, position: &Position, past: &[T], out: &mut [T]) {
        let (weights, len) = (self.weights.row(position.local), out.len());
        let of = |lag: usize| &past[(position.step + self.slots - lag) % self.slots * len..][..len];
        let most = weights.len() - 1;
        weighted_sum(isa, most, |k| weights[most - k], |k| of(most - k), out);
    }

    /// Stores this step's vector over the oldest one.
    pub(super) fn keep(&self, position: &Position, vector: &[T], past: &mut [T]) {
        if self.slots > 0 {
            past[position.step % self.slots * vector.len()..][..vector.len()].copy_from_slice(vector);
        }
    }
}

impl PastSum for Ring<f64> {
    fn terms(&self, position: &Position) -> usize {
        self.weights.row(position.local).len() - 1
    }

    fn weights<'a>(&'a self, position: &Position) -> impl Fn(usize) -> f64 + 'a {
        let weights = self.weights.row(position.local);
        move |k| weights[weights.len() - 1 - k]
    }

    fn slots<'a>(&'a self, position: &Position) -> impl Fn(usize) -> usize + 'a {
        let oldest = position.step - self.terms(position);
        move |k| (oldest + k) % self.slots
    }

    fn fresh(&self, position: &Position) -> f64 {
        self.weight(position)
    }

    fn shared(&self, positions: &[Position]) -> Shared {
        let oldest = |position: &Position| position.step - self.terms(position);
        let now = positions[0].step;
        let oldest_of_all = now.min(oldest(&positions[positions.len() - 1]));
        let mut first = [0; MAX_STEPS];
        for (first, position) in first.iter_mut().zip(positions) {
            *first = oldest_of_all.saturating_sub(oldest(position));
        }
        Shared { first, count: now - oldest_of_all }
    }

    fn keeps_seeds(&self) -> bool {
        self.history == History::Seeds
    }

    fn keep(&self, position: &Position, vector: &[f64], past: &mut [f64]) {
        Ring::keep(self, position, vector, past);
    }
}
