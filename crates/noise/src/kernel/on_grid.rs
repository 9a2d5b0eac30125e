//! Releases on a grid: noise in double precision, rounded to the grid, with the rounding error fed back.

use antinoise_mechanism::{Grid, Recursion};

use super::grid::{StepGrid, exact_at, release, release_points, whole_points};
use super::{
    HandOut, HandsOut, Kernel, LookAhead, Mode, Scratch, Steps, TileSteps, blt_on_grid, retained_on_grid,
    store_rows,
};
use crate::error::Result;
use crate::flat_recursion::{FlatRecursion, Position};
use crate::normal::TILE;
use crate::places::Given;
use crate::simd::Isa;

/// The mode of [`GridStream`](crate::GridStream): releases are multiples of a grid's spacing.
#[derive(Debug, Clone, Copy)]
pub struct OnGrid {
    grid: Grid,
    /// The grid of a step whose noise is multiplied by 1.
    step_grid: StepGrid,
}

impl OnGrid {
    /// Releases on `grid` of noise of this standard deviation.
    pub(crate) fn new(grid: Grid, noise_std: f64) -> Self {
        Self { grid, step_grid: StepGrid::new(noise_std / grid.spacing()) }
    }

    fn at(self, position: &Position) -> StepGrid {
        self.step_grid.at(position)
    }
}

impl Mode for OnGrid {}

impl Steps for OnGrid {
    type Number = f64;
    /// Whole points.
    type Row = i32;

    /// The noise and its past's share.
    const ROOM: usize = 2;

    fn grid(self) -> Option<Grid> {
        Some(self.grid)
    }

    fn flatten(self, recursion: &Recursion, steps: usize) -> Result<FlatRecursion> {
        FlatRecursion::on_grid(recursion, steps)
    }

    fn at_once(kernel: &Kernel<f64>) -> usize {
        match kernel {
            Kernel::Retained(_) => retained_on_grid::MOST_STEPS,
            kernel if kernel.fused_blt().is_some() => blt_on_grid::MOST_STEPS,
            _ => 1,
        }
    }

    /// The past keeps the rounded noise, or the seed noise that would have given it.
    fn run(
        self,
        scratch: &mut Scratch<f64, i32>,
        steps: &TileSteps<'_, f64>,
        past: &mut [f64],
        ahead: &mut LookAhead<'_, i32>,
    ) {
        if let Some(blt) = steps.kernel.fused_blt() {
            let in_points = blt_on_grid::run(blt, self.step_grid, scratch, steps, past, ahead);
            return if !in_points {
                store_rows(self, scratch, steps.positions, ahead)
            };
        }
        if let Kernel::Retained(retained) = steps.kernel {
            retained_on_grid::run(retained, self.step_grid, scratch, steps, past);
            return store_rows(self, scratch, steps.positions, ahead);
        }
        let (isa, (out, share)) = (scratch.isa, scratch.noise.split_at_mut(TILE));
        let (out, share) = (&mut out[..steps.len], &mut share[..steps.len]);
        let (kernel, position, seed) = (steps.kernel, &steps.positions[0], &steps.seeds[0]);
        let z = scratch.normals[0].make_fetching(seed, steps.coordinates, steps.len, steps.fetched);
        kernel.recall(isa, position, past, share);
        out.copy_from_slice(share);
        let weight = kernel.weight(position);
        let exact = exact_at(seed, steps.coordinates);
        self.at(position).round(isa, weight, z, out, |out| out.copy_from_slice(share), exact);
        if kernel.keeps_seeds() {
            let moved = out.iter().zip(&*share).map(|(noise, share)| (noise - share) / weight);
            z.iter_mut().zip(moved).for_each(|(z, moved)| *z = moved);
        }
        kernel.keep(isa, position, z, out, past);
        store_rows(self, scratch, steps.positions, ahead);
    }

    fn as_row<'a>(self, isa: Isa, position: &Position, noise: &'a [f64], room: &'a mut [i32]) -> &'a [i32] {
        whole_points(isa, self.at(position).per_unit, noise, room);
        room
    }
}

/// Releases.
impl HandsOut<f32> for OnGrid {
    /// The sum that noise is added to; none for the noise alone.
    type Target<'a> = Option<Given<'a, 'a, f64>>;

    fn hand_out_padding(_: Self::Target<'_>, out: &mut [f32]) {
        out.fill(0.0);
    }

    fn hand_out(self, isa: Isa, how: &HandOut<Self::Target<'_>>, noise: &[f64], out: &mut [f32]) {
        let spacing = self.grid.spacing();
        release(isa, spacing, how.factor / spacing, how.target.map(Given::first), noise, out);
    }

    fn hand_out_row(self, isa: Isa, how: &HandOut<Self::Target<'_>>, row: &[i32], out: &mut [f32]) {
        release_points(isa, self.grid.spacing(), how.target.map(Given::first), row, out);
    }
}

/// The noise alone in whole points, all of which must fit.
impl HandsOut<i32> for OnGrid {
    type Target<'a> = ();

    fn hand_out_padding((): Self::Target<'_>, out: &mut [i32]) {
        out.fill(0);
    }

    fn hand_out(self, isa: Isa, how: &HandOut<Self::Target<'_>>, noise: &[f64], out: &mut [i32]) {
        whole_points(isa, how.factor / self.grid.spacing(), noise, out);
    }

    fn hand_out_row(self, _: Isa, _: &HandOut<Self::Target<'_>>, row: &[i32], out: &mut [i32]) {
        out.copy_from_slice(row);
    }
}
