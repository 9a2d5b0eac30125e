//! The mode of streams on a grid: noise in double precision, rounded to the grid, with the rounding error fed
//! back.

use antinoise_mechanism::{Grid, Recursion};

use super::grid::{StepGrid, add_points_to_sum, add_to_sum, exact_at, fed_back, whole_points};
use super::{
    Emit, Emits, Kernel, LookAhead, Mode, Scratch, Seen, Steps, TileSteps, blt_on_grid, past_sum,
    past_sum_on_grid, store_rows,
};
use crate::error::Result;
use crate::flat_recursion::{FlatRecursion, Position};
use crate::normal::TILE;
use crate::simd::Isa;
use crate::slices::InputSlices;

/// The mode of streams on a grid, whose noisy sums are multiples of the grid's spacing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OnGrid {
    grid: Grid,
    /// The grid of steps with factor 1.
    step_grid: StepGrid,
}

impl OnGrid {
    /// Creates the mode for noisy sums on `grid` and seed noise of standard deviation `noise_std`.
    pub(crate) fn new(grid: Grid, noise_std: f64) -> Self {
        Self { grid, step_grid: StepGrid::new(noise_std / grid.spacing()) }
    }

    fn at(self, position: &Position) -> StepGrid {
        self.step_grid.at(position)
    }

    /// Makes one step and leaves its noise in the scratch memory.
    fn step(self, scratch: &mut Scratch<f64, i32>, steps: &TileSteps<'_, f64>, past: &mut [f64]) {
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
            fed_back(isa, weight, out, share, z);
        }
        kernel.keep(isa, position, z, out, past);
    }
}

impl Mode for OnGrid {
    fn to_sum<'a>(sum: InputSlices<'a, 'a, f64>) -> Option<InputSlices<'a, 'a, f64>> {
        Some(sum)
    }
}

impl Steps for OnGrid {
    type Number = f64;
    /// Whole points of the grid.
    type Row = i32;

    /// One row for the noise, and one for the history term.
    const ROOM: usize = 2;

    fn grid(self) -> Option<Grid> {
        Some(self.grid)
    }

    fn flatten(self, recursion: &Recursion, steps: usize) -> Result<FlatRecursion> {
        FlatRecursion::on_grid(recursion, steps)
    }

    fn at_once(kernel: &Kernel<f64>) -> usize {
        match kernel {
            Kernel::Retained(_) => past_sum::MAX_STEPS,
            Kernel::Ring(ring) if ring.is_long() => past_sum::MAX_STEPS,
            kernel if kernel.fused_blt().is_some() => blt_on_grid::MAX_STEPS,
            _ => 1,
        }
    }

    /// Makes the noise of the steps and rounds it to the grid. The past stores the rounded noise, or the seed
    /// noise that would have given it without rounding.
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
        match steps.kernel {
            Kernel::Retained(sum) => past_sum_on_grid::run(sum, self.step_grid, scratch, steps, past),
            Kernel::Ring(sum) if sum.is_long() => {
                past_sum_on_grid::run(sum, self.step_grid, scratch, steps, past);
            }
            _ => self.step(scratch, steps, past),
        }
        store_rows(self, scratch, steps.positions, ahead);
    }

    fn as_row<'a>(self, isa: Isa, position: &Position, noise: &'a [f64], room: &'a mut [i32]) -> &'a [i32] {
        whole_points(isa, self.at(position).per_unit, noise, room);
        room
    }
}

/// Noisy sums in single precision.
impl Emits<f32> for OnGrid {
    /// The sum to which noise is added; `None` for noise only.
    type Target<'a> = Option<InputSlices<'a, 'a, f64>>;

    fn emit_padding(_: Isa, _: Self::Target<'_>, out: &mut [f32]) {
        out.fill(0.0);
    }

    fn emit(self, isa: Isa, how: &Emit<Self::Target<'_>>, noise: &[f64], out: &mut [f32]) {
        let spacing = self.grid.spacing();
        add_to_sum(isa, spacing, how.factor / spacing, how.target.map(InputSlices::first), noise, out);
    }

    fn emit_row(self, isa: Isa, how: &Emit<Self::Target<'_>>, row: &[i32], out: &mut [f32]) {
        add_points_to_sum(isa, self.grid.spacing(), how.target.map(InputSlices::first), row, out);
    }

    fn see(isa: Isa, target: &Self::Target<'_>, first: usize, out: &[f32]) -> Option<Seen> {
        target.map(|_| Seen::of(isa, first, out))
    }
}

/// Noise alone, in whole grid points, all of which must fit in 4 bytes.
impl Emits<i32> for OnGrid {
    type Target<'a> = ();

    fn emit_padding(_: Isa, (): Self::Target<'_>, out: &mut [i32]) {
        out.fill(0);
    }

    fn emit(self, isa: Isa, how: &Emit<Self::Target<'_>>, noise: &[f64], out: &mut [i32]) {
        whole_points(isa, how.factor / self.grid.spacing(), noise, out);
    }

    fn emit_row(self, _: Isa, _: &Emit<Self::Target<'_>>, row: &[i32], out: &mut [i32]) {
        out.copy_from_slice(row);
    }

    fn see(_: Isa, (): &Self::Target<'_>, _: usize, _: &[i32]) -> Option<Seen> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;
    use crate::keystream::{Cipher, KeySource, Keystream};
    use crate::normal::Coordinates;

    /// The windows are longer and shorter than the ring, at the start of a run and later.
    #[test]
    fn several_steps_of_a_ring_are_its_steps_one_by_one() {
        const STEPS: usize = 90;
        const LEN: usize = 21;
        let keys = KeySource::new(&Key::from_seed_insecure(3), Cipher::default());
        let seeds: Vec<Keystream> = (0..STEPS as u64).map(|seed| keys.keystream(seed)).collect();
        let positions: Vec<Position> =
            (0..STEPS).map(|step| Position { step, local: step, first_seed: 0, factor: 1.0 }).collect();
        let coordinates = Coordinates::From(0);
        let mode = OnGrid::new(Grid::new(2f64.powi(-20)).unwrap(), 1.0);
        let taps = |bands: usize| (0..bands).map(|lag| 1.0 / (1.3 + lag as f64)).collect();
        for bands in [2, 9, 33, 46, STEPS] {
            for recursion in [
                Recursion::AutoRegressive { taps: taps(bands) },
                Recursion::MovingAverage { taps: taps(bands) },
            ] {
                let kernel = Kernel::new(&FlatRecursion::on_grid(&recursion, STEPS).unwrap().leaf);
                let Kernel::Ring(ring) = &kernel else { unreachable!("banded recursions are rings") };
                let of = |steps: std::ops::Range<usize>| TileSteps {
                    kernel: &kernel,
                    positions: &positions[steps.clone()],
                    seeds: &seeds[steps],
                    coordinates,
                    len: LEN,
                    fetched: &[],
                };
                let mut scratch =
                    Scratch::new(Isa::detect(), past_sum::MAX_STEPS, past_sum::MAX_STEPS + 1, 0);
                let mut past = vec![0.0; (bands - 1) * LEN];
                let mut one_by_one = Vec::new();
                for step in 0..STEPS {
                    mode.step(&mut scratch, &of(step..step + 1), &mut past);
                    one_by_one.push((scratch.noise[..LEN].to_vec(), past.clone()));
                }
                for window in [1, 2, 8, 13, 32] {
                    let mut past = vec![0.0; (bands - 1) * LEN];
                    for first in (0..STEPS).step_by(window) {
                        let end = STEPS.min(first + window);
                        past_sum_on_grid::run(ring, mode.step_grid, &mut scratch, &of(first..end), &mut past);
                        for (row, (expected, _)) in scratch.noise.chunks(TILE).zip(&one_by_one[first..end]) {
                            assert_eq!(
                                row[..LEN],
                                expected[..],
                                "{bands} bands, {window} steps from {first}"
                            );
                        }
                        assert_eq!(past, one_by_one[end - 1].1, "{bands} bands, {window} steps from {first}");
                    }
                }
            }
        }
    }
}
