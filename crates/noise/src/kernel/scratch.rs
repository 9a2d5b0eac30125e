//! The working memory of a thread.

use zeroize::Zeroizing;

use super::sum::{Term, accumulate};
use crate::keystream::Keystream;
use crate::normal::{Coordinates, Normal, NormalTile, TILE};
use crate::number::Number;
use crate::simd::{AlignedNumbers, Isa};

/// Memory for a tile's seed noise, correlated noise and, if the recursion is replayed, its past; wiped on
/// drop.
pub struct Scratch<T: Normal, R: Number> {
    pub(crate) isa: Isa,
    /// Seed noise of each of the steps that are made together.
    pub(super) normals: Vec<NormalTile<T>>,
    /// Rows of noise.
    pub(crate) noise: AlignedNumbers<T>,
    /// A row in the form in which it is stored.
    pub(super) row: AlignedNumbers<R>,
    /// The past of a replayed recursion.
    pub(crate) past: Zeroizing<Vec<T>>,
}

impl<T: Normal, R: Number> Scratch<T, R> {
    /// Allocates memory for the seed noise of `at_once` steps, `rows` rows of noise and `past_vectors`
    /// replayed past vectors.
    pub(crate) fn new(isa: Isa, at_once: usize, rows: usize, past_vectors: usize) -> Self {
        let normals = (0..at_once).map(|_| NormalTile::new(isa)).collect();
        let (noise, row) = (AlignedNumbers::zeros(rows * TILE), AlignedNumbers::zeros(TILE));
        Self { isa, normals, noise, row, past: vec![T::default(); past_vectors * TILE].into() }
    }

    /// Sets row k of the noise of one tile to the sum of weight * z_seed over the terms (seed, k, weight),
    /// for each k < `rows`.
    pub(crate) fn sum<'a>(
        &mut self,
        terms: &[Term],
        rows: usize,
        seed: impl Fn(u64) -> &'a Keystream,
        (coordinates, len): (Coordinates<'_>, usize),
    ) {
        self.noise[..rows * TILE].fill(T::default());
        for same_seed in terms.chunk_by(|a, b| a.seed == b.seed) {
            let z = self.normals[0].make(seed(same_seed[0].seed), coordinates, len);
            for term in same_seed {
                let row = &mut self.noise[term.row * TILE..][..len];
                accumulate(self.isa, T::rounded(term.weight), z, row);
            }
        }
    }
}
