//! Weighted sums of stored vectors, for several steps together: vectors that all of these steps use are read
//! from main memory once.
//!
//! 1. Consecutive steps of a long ring, or of a sum of retained seeds, use mostly the same past vectors
//!    ([`Shared`]).
//! 2. [`recall_shared`] reads these vectors in groups of `VECTORS`, and adds each group to the sums of all
//!    steps, [`ROWS`] steps at a time. So a vector is read from main memory once, and from the caches after
//!    that.
//! 3. Terms before and after the shared ones are added step by step by [`recall`]. Every sum adds its terms
//!    in order, so that bits do not depend on the number of steps that are made together.

use std::ops::Range;

use super::sum::{ROWS, accumulate_rows, add_weighted};
use crate::flat_recursion::Position;
use crate::normal::TILE;
use crate::simd::Isa;

/// Maximum number of steps that are made together.
pub(super) const MAX_STEPS: usize = 32;
/// Number of vectors in a group, which is read once for each [`ROWS`] steps, from the caches after the first
/// time.
const VECTORS: usize = 32;

/// Recursions whose step is a weighted sum of stored vectors, oldest first, and of its own seed noise.
pub(super) trait PastSum {
    /// Number of stored vectors that the step reads.
    fn terms(&self, position: &Position) -> usize;

    /// Returns a function that maps the index of a term to its weight.
    fn weights<'a>(&'a self, position: &Position) -> impl Fn(usize) -> f64 + 'a;

    /// Returns a function that maps the index of a term to the slot of its vector.
    fn slots<'a>(&'a self, position: &Position) -> impl Fn(usize) -> usize + 'a;

    /// The weight of the step's own seed noise.
    fn fresh(&self, position: &Position) -> f64;

    /// The terms that all these consecutive steps have in common.
    fn shared(&self, positions: &[Position]) -> Shared;

    /// Whether past vectors are seed noise, not rows of noise.
    fn keeps_seeds(&self) -> bool;

    /// Stores this step's vector if a later step reads it.
    fn keep(&self, position: &Position, vector: &[f64], past: &mut [f64]);
}

/// The terms that several steps have in common: terms `first[s]` to `first[s] + count` - 1 of each step s.
/// Like the terms before them, they use vectors that were stored before all of these steps.
pub(super) struct Shared {
    pub(super) first: [usize; MAX_STEPS],
    pub(super) count: usize,
}

/// Adds all terms up to the last shared one to each step's sum (`len` numbers of a tile). Returns the number
/// of terms that were added, for each step.
pub(super) fn recall_shared(
    sum: &impl PastSum,
    isa: Isa,
    positions: &[Position],
    past: &[f64],
    (shares, len): (&mut [f64], usize),
) -> [usize; MAX_STEPS] {
    let Shared { first, count } = sum.shared(positions);
    for ((position, first), share) in positions.iter().zip(first).zip(shares.chunks_mut(TILE)) {
        recall(sum, isa, position, 0..first, past, &mut share[..len]);
    }
    let slot = sum.slots(&positions[0]);
    for from in (0..count).step_by(VECTORS) {
        let vectors = from..count.min(from + VECTORS);
        let mut x = [&[][..]; VECTORS];
        for (x, k) in x.iter_mut().zip(vectors.clone()) {
            *x = &past[slot(first[0] + k) * len..][..len];
        }
        let firsts = first.chunks(ROWS);
        for ((positions, first), shares) in
            positions.chunks(ROWS).zip(firsts).zip(shares.chunks_mut(ROWS * TILE))
        {
            add_vectors(sum, isa, (vectors.clone(), &x), (positions, first), (shares, len));
        }
    }
    first.map(|first| first + count)
}

/// Adds the given terms to `out`, in order.
pub(super) fn recall(
    sum: &impl PastSum,
    isa: Isa,
    position: &Position,
    terms: Range<usize>,
    past: &[f64],
    out: &mut [f64],
) {
    let (slot, len) = (sum.slots(position), out.len());
    add_weighted(isa, terms, sum.weights(position), |k| &past[slot(k) * len..][..len], out);
}

/// Adds the shared vectors `x` to the sums of at most [`ROWS`] steps.
fn add_vectors(
    sum: &impl PastSum,
    isa: Isa,
    (vectors, x): (Range<usize>, &[&[f64]; VECTORS]),
    (positions, first): (&[Position], &[usize]),
    (shares, len): (&mut [f64], usize),
) {
    let count = vectors.len();
    if let (Some(positions), Some(first)) = (positions.first_chunk::<ROWS>(), first.first_chunk::<ROWS>()) {
        let mut w = [[0.0; ROWS]; VECTORS];
        for (r, (position, first)) in positions.iter().zip(first).enumerate() {
            let weight = sum.weights(position);
            w.iter_mut().zip(vectors.clone()).for_each(|(w, k)| w[r] = weight(first + k));
        }
        let mut shares = shares.chunks_mut(TILE);
        let mut shares = std::array::from_fn(|_| &mut shares.next().expect("a share for each step")[..len]);
        return accumulate_rows(isa, &w[..count], &x[..count], &mut shares);
    }
    for ((position, first), share) in positions.iter().zip(first).zip(shares.chunks_mut(TILE)) {
        let weight = sum.weights(position);
        add_weighted(isa, 0..count, |i| weight(first + vectors.start + i), |i| x[i], &mut share[..len]);
    }
}
