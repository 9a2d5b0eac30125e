//! The pair of a step that is in the worse direction for each loss: the least curve above the curves of both
//! directions of one sampled example.
//!
//! Removal has the larger curve D(t) for t >= 1, and addition for t <= 1. Neighbours that can choose the
//! direction anew in each step, by what they have released, are dominated by this pair and by neither
//! direction's.

use super::pair::{Component, Pair, Point, Rounding};
use super::profile::{Direction, Profile};

/// A step with noise multiplier 1/`mu` and sampling rate `q`, in the worse direction for each loss.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnyDirection {
    pub mu: f64,
    pub q: f64,
}

impl AnyDirection {
    fn of(&self, direction: Direction) -> Profile {
        Profile { mu: self.mu, q: self.q, direction }
    }

    fn removal(&self) -> Profile {
        self.of(Direction::Remove)
    }

    /// Whether the loss at `z` is 0. Each direction has positive losses beyond mu / 2; the mass between is
    /// that by which the slopes of the two curves differ at t = 1.
    fn is_between(&self, z: f64) -> bool {
        z.abs() <= 0.5 * self.mu
    }
}

impl Pair for AnyDirection {
    fn loss(&self, z: f64) -> f64 {
        if self.is_between(z) { 0.0 } else { self.removal().loss(z.abs()) * z.signum() }
    }

    fn steepness(&self, z: f64) -> f64 {
        if self.is_between(z) { 0.0 } else { self.removal().steepness(z.abs()) }
    }

    fn bound(&self) -> f64 {
        f64::INFINITY
    }

    fn greatest(&self, reach: f64) -> f64 {
        self.removal().greatest(reach)
    }

    fn at(&self, loss: f64, rounding: Rounding) -> Point {
        let worse = if loss >= 0.0 { Direction::Remove } else { Direction::Add };
        self.of(worse).at(loss, rounding)
    }

    /// The components of removal: those of addition differ from them by a mass of q.
    fn components(&self) -> Vec<Component> {
        self.removal().components()
    }
}
