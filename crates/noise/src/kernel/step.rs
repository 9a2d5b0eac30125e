//! The kernel of a recursion: one step of one tile in three operations, recall, accumulate and keep, that
//! both modes share.

use antinoise_mechanism::Convolution;

use super::blt::Blt;
use super::retained::Retained;
use super::ring::Ring;
use crate::flat_recursion::{History, Leaf, Position};
use crate::number::Real;
use crate::simd::Isa;

/// The coefficients of a leaf in the precision of the noise.
pub enum Kernel<T> {
    /// Banded C, or banded C^-1.
    Ring(Ring<T>),
    /// BLT, whose past is a few buffers.
    Blt(Blt<T>),
    /// Weighted sums of regenerated seeds: a window of rows is summed at once, without a step-by-step kernel.
    Sum,
    /// Circulant: a transform makes all rows of a run at once.
    Circulant(Convolution),
    /// Weighted sums of retained seeds.
    Retained(Retained),
}

impl<T: Real> Kernel<T> {
    pub(crate) fn new(leaf: &Leaf) -> Self {
        match leaf {
            Leaf::Ring { weights, history } => Self::Ring(Ring::new(weights, *history)),
            Leaf::Blt { scale, rate } => Self::Blt(Blt::new(scale, rate)),
            Leaf::Sum { .. } => Self::Sum,
            Leaf::Circulant { root, .. } => Self::Circulant(Convolution::new(root)),
            Leaf::Retained { rows, .. } => Self::Retained(Retained::new(rows)),
        }
    }

    /// The slot of the past that holds the row z~ of `step` itself, if one does.
    pub(crate) fn output_slot(&self, step: usize) -> Option<usize> {
        match self {
            Self::Ring(ring) if ring.history == History::Outputs && ring.slots > 0 => Some(step % ring.slots),
            _ => None,
        }
    }

    /// Upper bound on the number of past vectors that the first `steps` steps write.
    pub(crate) fn written(&self, steps: usize) -> usize {
        match self {
            Self::Blt(_) if steps > 0 => usize::MAX,
            // A step writes one vector: to the first slot that was never written, or over an old vector.
            _ => steps,
        }
    }

    /// The BLT, if one pass over its buffers can make a step.
    pub(super) fn fused_blt(&self) -> Option<&Blt<T>> {
        match self {
            Self::Blt(blt) if blt.is_fused() => Some(blt),
            _ => None,
        }
    }

    /// Whether the row is the step's seed noise, and nothing is stored.
    pub(super) fn is_independent(&self, position: &Position) -> bool {
        matches!(self, Self::Ring(ring) if ring.slots == 0 && ring.weight(position).widened() == 1.0)
    }

    /// The weight of this step's seed noise.
    pub(super) fn weight(&self, position: &Position) -> T {
        match self {
            Self::Ring(ring) => ring.weight(position),
            Self::Retained(_) | Self::Blt(_) | Self::Sum | Self::Circulant(_) => T::rounded(1.0),
        }
    }

    /// out = the history term: what past vectors contribute to the row.
    pub(super) fn recall(&self, isa: Isa, position: &Position, past: &mut [T], out: &mut [T]) {
        match self {
            Self::Ring(ring) => ring.recall(isa, position, past, out),
            Self::Blt(blt) => blt.recall(isa, position, past, out),
            Self::Retained(_) | Self::Sum | Self::Circulant(_) => {
                unreachable!("sums are made several steps at a time")
            }
        }
    }

    /// Moves the past to the next step, given the seed noise `z` and the row `noise` of this step.
    pub(super) fn keep(&self, isa: Isa, position: &Position, z: &[T], noise: &[T], past: &mut [T]) {
        match self {
            Self::Ring(ring) if ring.history == History::Outputs => ring.keep(position, noise, past),
            Self::Ring(ring) => ring.keep(position, z, past),
            Self::Blt(blt) => blt.keep(isa, noise, past),
            Self::Retained(_) | Self::Sum | Self::Circulant(_) => {}
        }
    }

    /// Whether past vectors are seed noise, not rows of noise.
    pub(super) fn keeps_seeds(&self) -> bool {
        match self {
            Self::Ring(ring) => ring.history == History::Seeds,
            Self::Retained(_) | Self::Blt(_) | Self::Sum | Self::Circulant(_) => false,
        }
    }
}
