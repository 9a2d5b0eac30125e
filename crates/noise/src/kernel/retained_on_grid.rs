//! Sums of retained seeds on a grid, several steps of a few coordinates at a time: the seeds of these coordinates cross the memory bus
//! once for all of the steps, and stay in a cache meanwhile.

use super::grid::{StepGrid, exact_at};
use super::retained::Retained;
use super::{Scratch, TileSteps};
use crate::normal::TILE;

/// Most steps that are made at a time.
pub(crate) const MOST_STEPS: usize = 8;
/// Coordinates made at a time: of 1000 seeds they take half of a cache of one core.
const BLOCK: usize = 128;

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
    let (rows, shares) = scratch.noise.split_at_mut(count * TILE);
    let block = if count > 1 { BLOCK } else { TILE };
    for from in (0..len).step_by(block) {
        let until = len.min(from + block);
        let (at, share) = ((from, len), &mut shares[..until - from]);
        for (k, position) in steps.positions.iter().enumerate() {
            let (z, out) = (&mut z[k][from..until], &mut rows[k * TILE..][from..until]);
            retained.recall(isa, position, past, at, share);
            out.copy_from_slice(share);
            let (weight, exact) = (retained.weight(position), exact_at(&steps.seeds[k], steps.coordinates));
            let recall = |out: &mut [f64]| out.copy_from_slice(share);
            grid.at(position).round(isa, weight, z, out, recall, |j| exact(from + j));
            let moved = out.iter().zip(&*share).map(|(noise, share)| (noise - share) / weight);
            z.iter_mut().zip(moved).for_each(|(z, moved)| *z = moved);
            retained.keep(position, z, at, past);
        }
    }
}
