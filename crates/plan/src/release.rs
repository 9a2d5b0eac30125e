//! How a step's noisy sum leaves the machine, and what that adds to a unit's effect on it.

use antinoise_input::{InvalidParameter, between};
use antinoise_mechanism::rounded::{Precision, accumulation_error_upper};
use antinoise_mechanism::{Grid, Recursion, RowNorms};
use serde::{Deserialize, Serialize};

use crate::Result;

/// How a noisy sum is released.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Release {
    /// Sum and noise are rounded to the multiples of `spacing` and added in whole numbers; the rounding of the noise
    /// is fed back. The release is a function of the exact noisy sum, all bits of it (`docs/noise.md`).
    Grid {
        /// The distance of neighbouring points, a power of two.
        spacing: f64,
        /// The most coordinates that may be released: rounding moves two sums apart by spacing sqrt(dim) at most.
        dim: usize,
    },
    /// Floating-point noise on floating-point sums. The last bits tell more than the statement says: it holds for an
    /// observer who does not use them.
    PlainFloatingPoint,
}

/// Which release is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReleaseKind {
    /// [`Release::Grid`], its spacing chosen by clip norm, dimension and noise.
    #[default]
    Grid,
    /// [`Release::PlainFloatingPoint`].
    PlainFloatingPoint,
}

/// What floating point may add to a unit's effect on a clipped sum before noise, as a part of the clip norm: what
/// whoever computes the sum must stay below.
pub const SUM_ALLOWANCE: f64 = 1.0 / (1u64 << 20) as f64;
/// The coordinates that a grid is made for when the model is not known.
const DEFAULT_DIM: usize = 1 << 30;
/// The part of the clip norm that rounding to the grid may add.
const INCREASE: f64 = 1.0 / (1u64 << 11) as f64;
/// The same where noise is so large that a grid that fine would not be decided.
const MOST_INCREASE: f64 = 1.0 / (1u64 << 7) as f64;
/// Grid points may be as near as this part of the largest noise of all steps: nearer, noise in whole points would not
/// be sure to stay below 2^52.
const FINEST_OF_ALL: f64 = 1.0 / (1u64 << 46) as f64;

/// The dimension from which on the grid for sums of `clip_norm` is as fine as `spacing`, or finer; but for noise so large that a grid
/// so fine would not be decided.
///
/// ```
/// use antinoise_plan::{Length, Release, Request, Setting, choose, dim_for_spacing};
/// let mut request = Request::new(1, 1, Length::Steps(8), Setting::Federated { min_sep: 8, max_participations: Some(1) });
/// request.dim = dim_for_spacing(1.0, 1e-3);
/// let Release::Grid { spacing, .. } = choose(&request)?.plan.release else { panic!("a grid is the default") };
/// assert!(spacing <= 1e-3);
/// # Ok::<(), antinoise_plan::Error>(())
/// ```
pub fn dim_for_spacing(clip_norm: f64, spacing: f64) -> usize {
    (INCREASE * clip_norm / spacing).powi(2).ceil() as usize
}

impl Release {
    /// What [`ReleaseKind`] it is.
    pub fn kind(self) -> ReleaseKind {
        match self {
            Self::Grid { .. } => ReleaseKind::Grid,
            Self::PlainFloatingPoint => ReleaseKind::PlainFloatingPoint,
        }
    }

    /// The grid, where there is one.
    ///
    /// # Errors
    /// When its spacing is not a power of two from 2^-100 to 2^100.
    pub fn grid(self) -> Result<Option<Grid>> {
        match self {
            Self::Grid { spacing, .. } => Ok(Some(Grid::new(spacing)?)),
            Self::PlainFloatingPoint => Ok(None),
        }
    }

    /// The grid for sums of `dim` coordinates (0: not known) and seed noise of `std_per_clip_norm` times the widened
    /// clip norm. It is as coarse as an increase of the clip norm by 2^-11 allows; coarser, up to 2^-7, where noise
    /// is so large that the finer one would not be decided.
    pub(crate) fn on_grid(
        clip_norm: f64,
        dim: usize,
        std_per_clip_norm: f64,
        noise: &RunningNoise,
    ) -> Result<Self> {
        let dim = if dim == 0 { DEFAULT_DIM } else { dim };
        let mut increase = INCREASE;
        loop {
            let grid = Grid::for_clip_norm(clip_norm, dim, increase).map_err(|error| {
                let must_be = format!("one for which there is a grid of {dim} coordinates ({error})");
                InvalidParameter::new("clip_norm", format!("{clip_norm:e}"), must_be)
            })?;
            let spacing = grid.spacing();
            let release = Self::Grid { spacing, dim };
            match release.check(std_per_clip_norm * release.widened(clip_norm)?, noise) {
                Err(_) if increase < MOST_INCREASE => increase *= 2.0,
                checked => return checked.map(|()| release),
            }
        }
    }

    /// clip_norm (1 + [`SUM_ALLOWANCE`]) + spacing sqrt(dim), rounded up.
    pub(crate) fn widened(self, clip_norm: f64) -> Result<f64> {
        let summed = (clip_norm * (1.0 + SUM_ALLOWANCE)).next_up();
        match self {
            Self::Grid { dim, .. } => {
                between("dim", dim, 1, 1usize.checked_shl(53).unwrap_or(usize::MAX), "2^53")?;
                let grid = self.grid()?.expect("it has a spacing");
                Ok(grid.clip_norm(summed, dim)?)
            }
            Self::PlainFloatingPoint => Ok(summed),
        }
    }

    /// Refuses a grid on which noise of this size, for seed noise of `noise_std`, cannot be released.
    pub(crate) fn check(self, noise_std: f64, noise: &RunningNoise) -> Result<()> {
        let Some(grid) = self.grid()? else { return Ok(()) };
        let Some((_, fresh)) = noise.fresh else {
            let must_be = "plain for this strategy: its noise is a sum of seeds that cannot be made with one fresh \
                           seed a step (antinoise plan --release plain)";
            return Err(InvalidParameter::new("release", "grid", must_be).into());
        };
        let largest = noise.norms.inner.1 * noise.norms.factors.1;
        let least = noise_std * (fresh * Grid::FINEST).max(largest * FINEST_OF_ALL);
        if grid.spacing() >= least {
            return Ok(());
        }
        let got = format!("a grid of spacing {:e}", grid.spacing());
        let must_be = format!(
            "plain, or a grid of spacing {least:e} at least, so that double precision decides each point (a smaller \
             --dim, the number of model parameters, allows a coarser grid)"
        );
        Err(InvalidParameter::new("release", got, must_be).into())
    }
}

/// Coordinates from which noise is as large as twice its root mean square only with probability e^-100.
const MANY: usize = 128;
/// The same for few coordinates: no normal is larger, but with probability 1e-44.
const LARGEST_NORMAL: f64 = 14.0;

/// A strategy's noise as a stream makes it, for seed noise of standard deviation 1.
pub(crate) struct RunningNoise {
    recursion: Recursion,
    steps: usize,
    /// Bounds on the part of a step's noise that is its own; none for a sum of seeds that has no such form.
    fresh: Option<(f64, f64)>,
    /// Bounds on its standard deviations.
    pub(crate) norms: RowNorms,
}

impl RunningNoise {
    /// 2 E, where E is the most that the past's share of the noise, in double precision, moves the mean of C G + Z by,
    /// over all steps and `dim` coordinates, in units of seed noise (docs/noise.md): times sigma, the part of the sensitivity that
    /// it may add. `spacing` is the grid's in the same units, and `column_norm` at least the norm of each column of C.
    pub(crate) fn past_share(&self, column_norm: f64, spacing: f64, dim: usize) -> f64 {
        let steps = self.steps as f64;
        let seeds = if dim < MANY { LARGEST_NORMAL } else { 2.0 };
        // What rounding makes of a seed is half a grid step away from it, and reaches all later rows.
        let fresh = self.fresh.map_or(f64::NAN, |(least, _)| least);
        let rounded = steps.sqrt() * 0.5 * spacing / fresh;
        let error = accumulation_error_upper(&self.recursion, self.steps, self.norms, column_norm);
        2.0 * error * (seeds + rounded) * (dim as f64 * steps).sqrt()
    }
}

impl ReleaseKind {
    /// In what precision the stream that makes its noise keeps coefficients.
    pub(crate) fn precision(self) -> Precision {
        match self {
            Self::Grid => Precision::Double,
            Self::PlainFloatingPoint => Precision::Single,
        }
    }

    /// The noise as such a stream makes it.
    pub(crate) fn noise(self, recursion: &Recursion, steps: usize) -> Result<RunningNoise> {
        let recursion = match self {
            Self::Grid => recursion.with_one_seed_per_step(steps)?,
            Self::PlainFloatingPoint => recursion.in_single_precision(),
        };
        let (fresh, norms) = (recursion.fresh_weight_bounds(steps), RowNorms::new(&recursion, steps));
        Ok(RunningNoise { recursion, steps, fresh, norms })
    }

    /// Bytes of one stored coordinate of noise: a grid needs double precision.
    pub(crate) fn bytes_per_coordinate(self) -> u64 {
        match self {
            Self::Grid => 8,
            Self::PlainFloatingPoint => 4,
        }
    }

    /// "grid" or "plain", as the command line says it.
    ///
    /// ```
    /// use antinoise_plan::ReleaseKind;
    /// assert_eq!(ReleaseKind::default().name(), "grid");
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            Self::Grid => "grid",
            Self::PlainFloatingPoint => "plain",
        }
    }
}
