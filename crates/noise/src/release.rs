//! Releases on a grid: safe in floating point, for correlated noise as well.
//!
//! Floating-point sums G + noise leak: which sums are representable depends on G. Here the gradient sum is rounded
//! to a grid, the noise is computed in double precision, rounded to the same grid (decided exactly) and added in
//! whole numbers. The rounding is fed back into the recursion, so that the whole sequence of releases is a function
//! of C G + Z alone; `docs/noise.md` has the proof.

use std::path::Path;

use antinoise_input::InvalidParameter;
pub use antinoise_mechanism::Grid;

use crate::builder::StreamBuilder;
use crate::correlator::Emit;
use crate::range::LARGEST_NORMAL;
use crate::recipe::{Leaf, Recipe};
use crate::stream::Core;
use crate::{Key, KeyedRng, NoiseError, Placement, Purpose, SeedNoise};

/// Refuses what cannot be released on a grid.
pub(crate) fn check_grid(recipe: &Recipe, steps: usize, per_unit: f64) -> Result<(), InvalidParameter> {
    for step in 0..steps {
        let place = recipe.place(step);
        let weight = match &recipe.leaf {
            Leaf::Ring { weights, .. } => weights.row(place.local)[0],
            Leaf::Blt { .. } => 1.0,
            Leaf::Kept { rows, .. } => rows[place.local].fresh,
            Leaf::Sum { .. } => unreachable!("on a grid the seeds of a sum are kept"),
        };
        let points = (per_unit * place.factor * weight).abs();
        if points * Grid::FINEST > 1.0 {
            let got = format!("1 / {points:e} of the fresh noise of step {step}");
            return Err(InvalidParameter::new("grid spacing", got, "at least 2^-36 of it"));
        }
    }
    Ok(())
}

/// True when every row of noise, in whole points, is sure to fit in 4 bytes.
pub(crate) fn points_fit(recipe: &Recipe, steps: usize, per_unit: f64) -> bool {
    /// Responses longer than this are not added up.
    const MOST_STEPS: usize = 1 << 24;
    if recipe.run_steps > MOST_STEPS {
        return false;
    }
    let Some((first, sum)) = recipe.leaf.response(recipe.run_steps) else { return false };
    let factors = (0..steps).map(|step| per_unit * recipe.place(step).factor.abs());
    let (least, most) = factors.fold((f64::INFINITY, 0.0f64), |(least, most), x| (least.min(x), most.max(x)));
    // Seed noise is moved by the rounding of its own step: half a point.
    let seed = LARGEST_NORMAL + 0.5 / (least * first.abs());
    most * seed * sum < f64::from(i32::MAX)
}

/// A stream whose releases lie on a [`Grid`]; see [`StreamBuilder::build_on_grid`].
///
/// ```
/// use antinoise_mechanism::Recursion;
/// use antinoise_noise::{Grid, Key, NoiseStream};
/// let recursion = Recursion::Blt { scale: vec![0.5], decay: vec![0.9] };
/// let grid = Grid::for_clip_norm(1.0, 3, 1e-6)?;
/// let mut stream = NoiseStream::builder(recursion, 10, 3, 1.0).build_on_grid(grid, Key::from_os()?)?;
/// let (gradient_sum, mut release) = ([0.25, -1.0, 0.1], [0f32; 3]);
/// stream.release(&gradient_sum, &mut release)?;
/// assert!(release.iter().all(|&x| f64::from(x) % grid.spacing() == 0.0));
/// # Ok::<(), antinoise_noise::NoiseError>(())
/// ```
#[derive(Debug)]
pub struct GridStream(Core<f64>);

impl StreamBuilder {
    /// The stream at step 0, for releases on `grid`.
    ///
    /// # Errors
    /// As [`StreamBuilder::build`]; also for a sum of seeds whose rows follow from one another or whose kept seeds take
    /// more than the memory budget, and for a grid finer than 2^-36 of a step's fresh noise.
    pub fn build_on_grid(self, grid: Grid, key: Key) -> Result<GridStream, NoiseError> {
        self.on(Some(grid)).core(key).map(GridStream)
    }

    /// As [`StreamBuilder::seed_noise`], for a stream on `grid`: in double precision, [`SeedNoise::fill_f64`].
    pub fn seed_noise_on_grid(self, grid: Grid, key: Key) -> SeedNoise {
        self.on(Some(grid)).seeds(&key)
    }

    /// As [`StreamBuilder::resume`], for a stream on a grid.
    ///
    /// # Errors
    /// As [`StreamBuilder::resume`]; a checkpoint of another grid, or of none, is refused.
    pub fn resume_on_grid(self, grid: Grid, path: impl AsRef<Path>) -> Result<GridStream, NoiseError> {
        Core::resume(self.on(Some(grid)), path.as_ref()).map(GridStream)
    }
}

impl GridStream {
    /// Writes the step's release of `sum` into `out`: sum and noise, both on the grid, added in whole numbers, then
    /// rounded to single precision (a function of the whole number alone).
    ///
    /// The sum is rounded to the grid here, from double precision: rounded to single precision before, two sums that
    /// differ by a clip norm could move further apart. A coordinate beyond 2^51 grid steps counts as that bound, NaN
    /// as the lower one.
    ///
    /// # Errors
    /// As [`NoiseStream::next_into`](crate::NoiseStream::next_into), and for a `sum` of another length.
    pub fn release(&mut self, sum: &[f64], out: &mut [f32]) -> Result<(), NoiseError> {
        if sum.len() != self.len() {
            return Err(NoiseError::input("sum's length", sum.len(), format!("the shard's {}", self.len())));
        }
        self.0.emit(out, Emit::AddTo(sum))
    }

    /// Writes the step's noise alone, as [`GridStream::release`] of zeros.
    ///
    /// # Errors
    /// As [`NoiseStream::next_into`](crate::NoiseStream::next_into).
    pub fn next_into(&mut self, out: &mut [f32]) -> Result<(), NoiseError> {
        self.0.emit(out, Emit::Write)
    }

    /// As [`NoiseStream::seek`](crate::NoiseStream::seek).
    ///
    /// # Errors
    /// For a step above the number of steps.
    pub fn seek(&mut self, step: usize) -> Result<(), NoiseError> {
        self.0.seek(step)
    }

    /// As [`NoiseStream::save`](crate::NoiseStream::save).
    ///
    /// # Errors
    /// [`NoiseError::Io`] when it cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), NoiseError> {
        self.0.save(path.as_ref())
    }

    /// As [`NoiseStream::commitment`](crate::NoiseStream::commitment).
    pub fn commitment(&self) -> [u8; 32] {
        self.0.commitment()
    }

    /// As [`NoiseStream::description`](crate::NoiseStream::description).
    pub fn description(&self) -> [u8; 32] {
        self.0.description()
    }

    /// As [`NoiseStream::rng`](crate::NoiseStream::rng).
    pub fn rng(&self, purpose: Purpose, step: u64) -> KeyedRng {
        self.0.rng(purpose, step)
    }

    /// The step that comes next.
    pub fn step(&self) -> usize {
        self.0.step()
    }

    /// Outputs a step.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True when the shard has no output.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The choice between memory and time that was made.
    pub fn placement(&self) -> Placement {
        self.0.placement()
    }
}
