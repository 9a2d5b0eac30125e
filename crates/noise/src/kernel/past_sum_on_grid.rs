//! The kernel of weighted sums of stored vectors on a grid, for several steps together.

use super::grid::{StepGrid, exact_at, fed_back};
use super::past_sum::{MAX_STEPS, PastSum, recall, recall_shared};
use super::{Scratch, TileSteps};
use crate::normal::TILE;

/// Leaves the rounded noise of each step in the scratch memory. Stores either that noise, or the seed noise
/// that would have given it without rounding, in the past.
pub(super) fn run(
    sum: &impl PastSum,
    grid: StepGrid,
    scratch: &mut Scratch<f64, i32>,
    steps: &TileSteps<'_, f64>,
    past: &mut [f64],
) {
    let (count, len, isa) = (steps.positions.len(), steps.len, scratch.isa);
    let mut fetched = steps.fetched.chunks(steps.fetched.len().div_ceil(count).max(1));
    let mut z: [&mut [f64]; MAX_STEPS] = Default::default();
    for ((z, seed), tile) in z.iter_mut().zip(steps.seeds).zip(&mut scratch.normals) {
        *z = tile.make_fetching(seed, steps.coordinates, len, fetched.next().unwrap_or_default());
    }
    let (rows, share) = scratch.noise.split_at_mut(count * TILE);
    let share = &mut share[..len];
    rows.chunks_mut(TILE).for_each(|row| row[..len].fill(0.0));
    let known = recall_shared(sum, isa, steps.positions, past, (&mut *rows, len));
    for (k, position) in steps.positions.iter().enumerate() {
        let (z, out) = (&mut *z[k], &mut rows[k * TILE..][..len]);
        recall(sum, isa, position, known[k]..sum.terms(position), past, out);
        share.copy_from_slice(out);
        let (weight, exact) = (sum.fresh(position), exact_at(&steps.seeds[k], steps.coordinates));
        grid.at(position).round(isa, weight, z, out, |out| out.copy_from_slice(share), exact);
        if sum.keeps_seeds() {
            fed_back(isa, weight, out, share, z);
        }
        sum.keep(position, if sum.keeps_seeds() { z } else { out }, past);
    }
}
