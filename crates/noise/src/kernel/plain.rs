//! The mode of plain streams: noise in single precision, written or added to floating-point sums.

use antinoise_mechanism::{Grid, Recursion};

use super::output::{add_scaled, add_scaled_to_sum, write_scaled};
use super::sum::accumulate;
use super::{Emit, Emits, Kernel, LookAhead, Mode, Scratch, Seen, Steps, TileSteps, store_rows};
use crate::error::Result;
use crate::flat_recursion::{FlatRecursion, Position};
use crate::simd::Isa;
use crate::slices::{InputSlices, Pieces};

/// The mode of plain streams, whose noise and noisy sums are floating-point numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plain;

/// How a row of a plain stream is combined with the output.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Target<'a> {
    /// The row replaces the output.
    #[default]
    Overwrite,
    /// The row, times this number, is added to the output.
    Add(f32),
    /// The row is added to this sum in double precision, and the result replaces the output.
    AddToSum(InputSlices<'a, 'a, f64>),
}

impl<'a> Target<'a> {
    /// The sum to which the row is added, if there is one.
    pub(crate) fn sum(self) -> Option<InputSlices<'a, 'a, f64>> {
        match self {
            Self::AddToSum(sum) => Some(sum),
            Self::Overwrite | Self::Add(_) => None,
        }
    }
}

impl Pieces for Target<'_> {
    fn together(&self) -> usize {
        if let Self::AddToSum(sum) = self { sum.together() } else { usize::MAX }
    }

    fn take(&mut self, count: usize) -> Self {
        if let Self::AddToSum(sum) = self { Self::AddToSum(sum.take(count)) } else { *self }
    }
}

impl Mode for Plain {
    fn to_sum<'a>(sum: InputSlices<'a, 'a, f64>) -> Target<'a> {
        Target::AddToSum(sum)
    }
}

impl Steps for Plain {
    type Number = f32;
    type Row = f32;

    const ROOM: usize = 1;

    fn grid(self) -> Option<Grid> {
        None
    }

    fn flatten(self, recursion: &Recursion, steps: usize) -> Result<FlatRecursion> {
        Ok(FlatRecursion::in_single_precision(recursion, steps)?)
    }

    fn at_once(_: &Kernel<f32>) -> usize {
        1
    }

    fn run(
        self,
        scratch: &mut Scratch<f32, f32>,
        steps: &TileSteps<'_, f32>,
        past: &mut [f32],
        ahead: &mut LookAhead<'_, f32>,
    ) {
        let (isa, out) = (scratch.isa, &mut scratch.noise[..steps.len]);
        let (position, seed, kernel) = (&steps.positions[0], &steps.seeds[0], steps.kernel);
        if ahead.rows.is_empty() && kernel.is_independent(position) {
            return scratch.normals[0].make_into(seed, steps.coordinates, out);
        }
        let z = scratch.normals[0].make_fetching(seed, steps.coordinates, steps.len, steps.fetched);
        if let Some(blt) = kernel.fused_blt() {
            blt.step(isa, position, z, past, out);
        } else {
            kernel.recall(isa, position, past, out);
            accumulate(isa, kernel.weight(position), z, out);
            kernel.keep(isa, position, z, out, past);
        }
        store_rows(self, scratch, steps.positions, ahead);
    }

    fn as_row<'a>(self, _: Isa, _: &Position, noise: &'a [f32], _: &'a mut [f32]) -> &'a [f32] {
        noise
    }
}

impl Emits<f32> for Plain {
    type Target<'a> = Target<'a>;

    fn emit_padding(_: Isa, target: Self::Target<'_>, out: &mut [f32]) {
        match target {
            Target::Overwrite => out.fill(0.0),
            Target::Add(_) => {}
            Target::AddToSum(sum) => {
                out.iter_mut().zip(sum.first()).for_each(|(out, sum)| *out = *sum as f32)
            }
        }
    }

    fn emit(self, isa: Isa, how: &Emit<Self::Target<'_>>, noise: &[f32], out: &mut [f32]) {
        match how.target {
            Target::Overwrite => write_scaled(isa, how.large, how.factor as f32, noise, out),
            Target::Add(scale) => add_scaled(isa, (how.factor * f64::from(scale)) as f32, noise, out),
            Target::AddToSum(sum) => add_scaled_to_sum(isa, how.factor as f32, noise, sum.first(), out),
        }
    }

    fn emit_row(self, isa: Isa, how: &Emit<Self::Target<'_>>, row: &[f32], out: &mut [f32]) {
        self.emit(isa, how, row, out);
    }

    fn see(isa: Isa, target: &Self::Target<'_>, first: usize, out: &[f32]) -> Option<Seen> {
        match target {
            Target::Overwrite => None,
            Target::Add(_) | Target::AddToSum(_) => Some(Seen::of(isa, first, out)),
        }
    }
}
