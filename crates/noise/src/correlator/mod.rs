//! One step of a recursion on one tile of coordinates, in cache.
//!
//! Each kernel takes this step's seed noise, reads and updates the tile's past, and leaves z~ in `out`. The order
//! of operations on a coordinate is fixed (oldest first), so that every placement gives the same bits.

mod blt;
mod output;
mod ring;
mod sum;

pub(crate) use output::{add_scaled, is_large, write_scaled};
pub(crate) use sum::Use;

use crate::cipher::Keystream;
use crate::gaussian::{NormalTile, TILE};
use crate::recipe::{Keeps, Leaf, Place};
use crate::simd::Isa;

/// The coefficients of a leaf in single precision.
pub(crate) enum Correlator {
    Ring(ring::Ring),
    Blt(blt::Blt),
    /// Sums of seeds need no step-by-step kernel: see [`Scratch::sum`].
    Sum,
}

impl Correlator {
    pub(crate) fn new(leaf: &Leaf) -> Self {
        match leaf {
            Leaf::Ring { weights, keeps } => Self::Ring(ring::Ring::new(weights, *keeps)),
            Leaf::Blt { scale, rate } => Self::Blt(blt::Blt::new(scale, rate)),
            Leaf::Sum { .. } => Self::Sum,
        }
    }

    /// The slot of the past that holds z~ of `step` itself, where there is one.
    pub(crate) fn output_slot(&self, step: usize) -> Option<usize> {
        match self {
            Self::Ring(ring) if ring.keeps == Keeps::Outputs && ring.slots > 0 => Some(step % ring.slots),
            _ => None,
        }
    }
}

/// What one thread works in: a tile's seed noise, its correlated noise and, when replaying, its past.
pub(crate) struct Scratch {
    isa: Isa,
    normals: NormalTile<f32>,
    pub(crate) noise: Box<[f32]>,
    pub(crate) past: Vec<f32>,
}

impl Scratch {
    /// Room for tiles with `past_vectors` replayed vectors.
    pub(crate) fn new(isa: Isa, past_vectors: usize) -> Self {
        let noise = vec![0.0; TILE].into_boxed_slice();
        Self { isa, normals: NormalTile::new(isa), noise, past: vec![0.0; past_vectors * TILE] }
    }

    pub(crate) fn isa(&self) -> Isa {
        self.isa
    }

    /// Leaves z~ of `place` in `noise[..len]` and brings `past` to the next step.
    pub(crate) fn step(
        &mut self,
        correlator: &Correlator,
        place: &Place,
        seed: &Keystream,
        start: u64,
        len: usize,
        past: &mut [f32],
    ) {
        let z = self.normals.make(seed, start, len);
        let out = &mut self.noise[..len];
        match correlator {
            Correlator::Ring(ring) => ring.step(self.isa, place, z, past, out),
            Correlator::Blt(blt) => blt.step(self.isa, place, z, past, out),
            Correlator::Sum => unreachable!("sums are made a window at a time"),
        }
    }

    /// outs\[k\] = sum over uses (seed, k, weight) of weight z_seed, for one tile; `outs` holds rows of `len`.
    pub(crate) fn sum<'a>(
        &mut self,
        uses: &[Use],
        seed: impl Fn(u64) -> &'a Keystream,
        start: u64,
        len: usize,
        outs: &mut [f32],
    ) {
        outs.fill(0.0);
        for same_seed in uses.chunk_by(|a, b| a.seed == b.seed) {
            let z = self.normals.make(seed(same_seed[0].seed), start, len);
            for used in same_seed {
                let out = &mut outs[used.row * len..][..len];
                sum::accumulate(self.isa, used.weight, z, out);
            }
        }
    }
}
