//! Sums of retained seeds on a grid, several steps at a time: the seeds that all of them read cross the memory bus once.

use super::grid::{StepGrid, exact_at};
use super::retained::Retained;
use super::{Scratch, TileSteps};
use crate::normal::TILE;

/// Most steps that are made at a time.
pub(crate) const MOST_STEPS: usize = 32;

/// Leaves the noise of each step in the scratch, and retains seeds moved by what the grid moved the noise by.
pub(super) fn run(
    retained: &Retained,
    grid: StepGrid,
    scratch: &mut Scratch<f64, i32>,
    steps: &TileSteps<'_, f64>,
    past: &mut [f64],
) {
    let (count, len, isa) = (steps.positions.len(), steps.len, scratch.isa);
    let mut fetched = steps.fetched.chunks(steps.fetched.len().div_ceil(count).max(1));
    let mut z: [&mut [f64]; MOST_STEPS] = Default::default();
    for ((z, seed), tile) in z.iter_mut().zip(steps.seeds).zip(&mut scratch.normals) {
        *z = tile.make_fetching(seed, steps.coordinates, len, fetched.next().unwrap_or_default());
    }
    let (rows, share) = scratch.noise.split_at_mut(count * TILE);
    let share = &mut share[..len];
    rows.chunks_mut(TILE).for_each(|row| row[..len].fill(0.0));
    let known = retained.recall_shared(isa, steps.positions, past, (&mut *rows, len));
    for (k, position) in steps.positions.iter().enumerate() {
        let (z, out) = (&mut *z[k], &mut rows[k * TILE..][..len]);
        retained.recall(isa, position, known, past, out);
        share.copy_from_slice(out);
        let (weight, exact) = (retained.weight(position), exact_at(&steps.seeds[k], steps.coordinates));
        grid.at(position).round(isa, weight, z, out, |out| out.copy_from_slice(share), exact);
        let moved = out.iter().zip(&*share).map(|(noise, share)| (noise - share) / weight);
        z.iter_mut().zip(moved).for_each(|(z, moved)| *z = moved);
        retained.keep(position, z, past);
    }
}
