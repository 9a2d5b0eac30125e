//! The kernel of a recursion. A step of a tile has three operations, which both modes share: recall (the
//! history term), accumulate (the seed noise) and keep (what later steps need).

use antinoise_mechanism::Convolution;

use super::blt::Blt;
use super::rational::Rational;
use super::retained::Retained;
use super::ring::Ring;
use super::varying_blt::VaryingBlt;
use crate::flat_recursion::{History, Leaf, Position};
use crate::number::Real;
use crate::simd::Isa;

/// The coefficients of a leaf in the precision of the noise.
pub enum Kernel<T> {
    /// Banded C, or banded C^-1.
    Ring(Ring<T>),
    /// A BLT, whose past consists of a few buffers.
    Blt(Blt<T>),
    /// A BLT whose weights vary by step.
    VaryingBlt(VaryingBlt<T>),
    /// A rational C, whose past consists of a few running sums.
    Rational(Rational<T>),
    /// Weighted sums of regenerated seeds. All rows of a window are summed together, not step by step.
    Sum,
    /// A circulant. Fourier transforms make all rows of a run together.
    Circulant(Convolution),
    /// Weighted sums of retained seeds.
    Retained(Retained),
}

impl<T: Real> Kernel<T> {
    pub(crate) fn new(leaf: &Leaf) -> Self {
        match leaf {
            Leaf::Ring { weights, history } => Self::Ring(Ring::new(weights, *history)),
            Leaf::Blt { scale, rate } => Self::Blt(Blt::new(scale, rate)),
            Leaf::VaryingBlt(weights) => Self::VaryingBlt(VaryingBlt::new(weights)),
            Leaf::Rational { gain, feedback } => Self::Rational(Rational::new(gain, feedback)),
            Leaf::Sum { .. } => Self::Sum,
            Leaf::Circulant { root, .. } => Self::Circulant(Convolution::new(root)),
            Leaf::Retained { rows, .. } => Self::Retained(Retained::new(rows)),
        }
    }

    /// The slot of the past in which the row z~ of `step` is stored, if it is.
    pub(crate) fn output_slot(&self, step: usize) -> Option<usize> {
        match self {
            Self::Ring(ring) if ring.history == History::Outputs && ring.slots > 0 => Some(step % ring.slots),
            _ => None,
        }
    }

    /// Returns an upper bound on the number of past vectors that the first `steps` steps write.
    pub(crate) fn written(&self, steps: usize) -> usize {
        match self {
            Self::Blt(_) | Self::VaryingBlt(_) | Self::Rational(_) if steps > 0 => usize::MAX,
            // A step writes one vector: to the first unused slot, or over an old vector.
            _ => steps,
        }
    }

    /// The BLT, if a step can be made in one pass over its buffers.
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
            Self::Retained(_)
            | Self::Blt(_)
            | Self::VaryingBlt(_)
            | Self::Rational(_)
            | Self::Sum
            | Self::Circulant(_) => T::rounded(1.0),
        }
    }

    /// Sets out to the history term: the contribution of past vectors to the row.
    pub(super) fn recall(&self, isa: Isa, position: &Position, past: &mut [T], out: &mut [T]) {
        match self {
            Self::Ring(ring) => ring.recall(isa, position, past, out),
            Self::Blt(blt) => blt.recall(isa, position, past, out),
            Self::VaryingBlt(blt) => blt.recall(isa, position, past, out),
            Self::Rational(sums) => sums.recall(isa, position, past, out),
            Self::Retained(_) | Self::Sum | Self::Circulant(_) => {
                unreachable!("sums are made several steps at a time")
            }
        }
    }

    /// Updates the past for the next step, given the seed noise `z` and the row `noise` of this step.
    pub(super) fn keep(&self, isa: Isa, position: &Position, z: &[T], noise: &[T], past: &mut [T]) {
        match self {
            Self::Ring(ring) if ring.history == History::Outputs => ring.keep(position, noise, past),
            Self::Ring(ring) => ring.keep(position, z, past),
            Self::Blt(blt) => blt.keep(isa, noise, past),
            Self::VaryingBlt(blt) => blt.keep(isa, position, noise, past),
            Self::Rational(sums) => sums.keep(isa, noise, past),
            Self::Retained(_) | Self::Sum | Self::Circulant(_) => {}
        }
    }

    /// Whether there are past vectors, and they are seed noise, not rows of noise.
    pub(super) fn keeps_seeds(&self) -> bool {
        match self {
            Self::Ring(ring) => ring.history == History::Seeds && ring.slots > 0,
            Self::Retained(_)
            | Self::Blt(_)
            | Self::VaryingBlt(_)
            | Self::Rational(_)
            | Self::Sum
            | Self::Circulant(_) => false,
        }
    }
}
