//! What one thread works in.

use zeroize::Zeroize;

use super::sum::{Term, accumulate};
use crate::keystream::Keystream;
use crate::normal::{Normal, NormalTile, TILE};
use crate::number::Number;
use crate::simd::Isa;

/// A tile's seed noise and correlated noise, for as many steps as are made at once, and, when replaying, its past;
/// wiped on drop.
pub struct Scratch<T: Normal, R: Number> {
    pub(crate) isa: Isa,
    /// Seed noise, of each step.
    pub(super) normals: Vec<NormalTile<T>>,
    /// Rows of noise.
    pub(crate) noise: Box<[T]>,
    /// A row as it is stored until it is handed out.
    pub(super) row: Box<[R]>,
    /// The past, where it is replayed.
    pub(crate) past: Vec<T>,
}

impl<T: Normal, R: Number> Scratch<T, R> {
    /// Room for the seed noise of `at_once` steps, `rows` rows of noise and `past_vectors` replayed vectors.
    pub(crate) fn new(isa: Isa, at_once: usize, rows: usize, past_vectors: usize) -> Self {
        let normals = (0..at_once).map(|_| NormalTile::new(isa)).collect();
        let noise = vec![T::default(); rows * TILE].into_boxed_slice();
        let row = vec![R::default(); TILE].into_boxed_slice();
        Self { isa, normals, noise, row, past: vec![T::default(); past_vectors * TILE] }
    }

    /// Row k of the noise = sum over terms (seed, k, weight) of weight z_seed, for `rows` rows of one tile.
    pub(crate) fn sum<'a>(
        &mut self,
        terms: &[Term],
        rows: usize,
        seed: impl Fn(u64) -> &'a Keystream,
        (start, len): (u64, usize),
    ) {
        self.noise[..rows * TILE].fill(T::default());
        for same_seed in terms.chunk_by(|a, b| a.seed == b.seed) {
            let z = self.normals[0].make(seed(same_seed[0].seed), start, len);
            for term in same_seed {
                let row = &mut self.noise[term.row * TILE..][..len];
                accumulate(self.isa, T::rounded(term.weight), z, row);
            }
        }
    }
}

/// The normals wipe themselves.
impl<T: Normal, R: Number> Drop for Scratch<T, R> {
    fn drop(&mut self) {
        self.noise.zeroize();
        self.row.zeroize();
        self.past.zeroize();
    }
}
