//! The kernel of a recursion: one step of one tile, in three operations that both modes are made of.

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
    /// A few buffers.
    Blt(Blt<T>),
    /// Sums of seeds need no step-by-step kernel: a window of rows is summed at once.
    Sum,
    /// So do the rows of a circulant, all of which a transform makes.
    Circulant(Convolution),
    /// Sums of seeds that are retained.
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

    /// The slot of the past that holds z~ of `step` itself, where there is one.
    pub(crate) fn output_slot(&self, step: usize) -> Option<usize> {
        match self {
            Self::Ring(ring) if ring.history == History::Outputs && ring.slots > 0 => Some(step % ring.slots),
            _ => None,
        }
    }

    /// The most past vectors, from the first on, that so many steps write.
    pub(crate) fn written(&self, steps: usize) -> usize {
        match self {
            Self::Blt(_) if steps > 0 => usize::MAX,
            // A step writes one, at the first place that none of before has, or over an old one.
            _ => steps,
        }
    }

    /// The BLT, where one of its steps can be made in one pass over its buffers.
    pub(super) fn fused_blt(&self) -> Option<&Blt<T>> {
        match self {
            Self::Blt(blt) if blt.is_fused() => Some(blt),
            _ => None,
        }
    }

    /// Whether this step's noise is its seed noise, of which nothing is kept.
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

    /// out = what the past adds to this step's weighted seed noise.
    pub(super) fn recall(&self, isa: Isa, position: &Position, past: &mut [T], out: &mut [T]) {
        match self {
            Self::Ring(ring) => ring.recall(isa, position, past, out),
            Self::Blt(blt) => blt.recall(isa, position, past, out),
            Self::Retained(_) | Self::Sum | Self::Circulant(_) => {
                unreachable!("sums are made several steps at a time")
            }
        }
    }

    /// Brings the past to the next step, after the row `noise` was made of the seed noise `z`.
    pub(super) fn keep(&self, isa: Isa, position: &Position, z: &[T], noise: &[T], past: &mut [T]) {
        match self {
            Self::Ring(ring) if ring.history == History::Outputs => ring.keep(position, noise, past),
            Self::Ring(ring) => ring.keep(position, z, past),
            Self::Blt(blt) => blt.keep(isa, noise, past),
            Self::Retained(_) | Self::Sum | Self::Circulant(_) => {}
        }
    }

    /// True where a ring keeps seed noise, not what is made of it.
    pub(super) fn keeps_seeds(&self) -> bool {
        match self {
            Self::Ring(ring) => ring.history == History::Seeds,
            Self::Retained(_) | Self::Blt(_) | Self::Sum | Self::Circulant(_) => false,
        }
    }
}
