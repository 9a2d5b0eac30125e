//! The arithmetic in which noise is added to sums, and its effect on the sensitivity.

use antinoise_input::InvalidParameter;
use antinoise_mechanism::rounded::{Precision, accumulation_error_upper};
use antinoise_mechanism::{Grid, Recursion, RowNorms};
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::widened_clip_norm::widened;

/// The arithmetic in which noise is added to a sum.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Arithmetic {
    /// Sum and noise are rounded to multiples of `spacing` and added as whole numbers; the rounding of the
    /// noise is fed back. The noisy sum is then a function of the exact noisy sum and reveals nothing more
    /// (`docs/noise.md`).
    Grid {
        /// Distance of neighbouring grid points, a power of two.
        spacing: f64,
        /// Maximum number of coordinates of a sum: rounding changes the distance between two sums by at most
        /// spacing sqrt(dim).
        dim: usize,
    },
    /// Floating-point noise is added to floating-point sums. The last bits of the result reveal more than the
    /// privacy statement claims; it holds only for an observer who does not use them.
    PlainFloatingPoint,
}

/// The kind of an [`Arithmetic`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ArithmeticKind {
    /// [`Arithmetic::Grid`] with a spacing that is chosen from clip norm, dimension and noise.
    #[default]
    Grid,
    /// [`Arithmetic::PlainFloatingPoint`].
    PlainFloatingPoint,
}

/// Number of coordinates that the grid allows if the size of the model is not known.
const DEFAULT_DIM: usize = 1 << 30;
/// Relative increase of the clip norm by rounding to the grid.
const INCREASE: f64 = 1.0 / (1u64 << 11) as f64;
/// Maximum relative increase, for noise that is too large for a finer grid.
const MAX_INCREASE: f64 = 1.0 / (1u64 << 7) as f64;
/// Minimum spacing, relative to the largest noise of all steps. On a finer grid, noise could exceed 2^52 grid
/// points.
const MIN_SPACING_BY_LARGEST: f64 = 1.0 / (1u64 << 46) as f64;

impl Arithmetic {
    /// The kind of arithmetic.
    pub fn kind(self) -> ArithmeticKind {
        match self {
            Self::Grid { .. } => ArithmeticKind::Grid,
            Self::PlainFloatingPoint => ArithmeticKind::PlainFloatingPoint,
        }
    }

    /// The grid, if there is one.
    ///
    /// # Errors
    /// When its spacing is not a power of two from 2^-100 to 2^100.
    pub fn grid(self) -> Result<Option<Grid>> {
        match self {
            Self::Grid { spacing, .. } => Ok(Some(Grid::new(spacing)?)),
            Self::PlainFloatingPoint => Ok(None),
        }
    }

    /// Chooses the grid for sums of `dim` coordinates (0 if unknown) and seed noise of standard deviation
    /// `std_per_clip_norm` times the widened clip norm. Its spacing raises the clip norm by at most a
    /// fraction 2^-11, and is at most `spacing` if that is given. If the noise is too large for such a fine
    /// grid, the spacing is larger, and raises the clip norm by at most a fraction 2^-7.
    pub(crate) fn on_grid(
        clip_norm: f64,
        dim: usize,
        spacing: Option<f64>,
        std_per_clip_norm: f64,
        noise: &RoundedNoise,
    ) -> Result<Self> {
        let dim = if dim == 0 { DEFAULT_DIM } else { dim };
        // The smallest `dim` for which the spacing is at most this.
        let finer = |spacing: f64| (INCREASE * clip_norm / spacing).powi(2).ceil() as usize;
        let dim = spacing.map_or(dim, |spacing| dim.max(finer(spacing)));
        let mut increase = INCREASE;
        loop {
            let grid = Grid::for_clip_norm(clip_norm, dim, increase).map_err(|error| {
                let must_be = format!("one for which there is a grid of {dim} coordinates ({error})");
                InvalidParameter::new("clip_norm", format!("{clip_norm:e}"), must_be)
            })?;
            let spacing = grid.spacing();
            let arithmetic = Self::Grid { spacing, dim };
            match arithmetic.check(std_per_clip_norm * arithmetic.widened(clip_norm)?, noise) {
                Err(_) if increase < MAX_INCREASE => increase *= 2.0,
                checked => return checked.map(|()| arithmetic),
            }
        }
    }

    /// The widened clip norm: an upper bound on how far one unit moves a noisy sum, rounding included.
    pub(crate) fn widened(self, clip_norm: f64) -> Result<f64> {
        match self {
            Self::Grid { spacing, dim } => widened(clip_norm, Some((Grid::new(spacing)?, dim))),
            Self::PlainFloatingPoint => widened(clip_norm, None),
        }
    }

    /// Refuses a grid that is too fine for seed noise of standard deviation `noise_std`.
    pub(crate) fn check(self, noise_std: f64, noise: &RoundedNoise) -> Result<()> {
        let Some(grid) = self.grid()? else { return Ok(()) };
        let Some((_, fresh)) = noise.fresh else {
            let must_be = "plain for this strategy, whose noise cannot be written with one fresh seed a step \
                           (antinoise plan --release plain)";
            return Err(InvalidParameter::new("arithmetic", "grid", must_be).into());
        };
        let largest = noise.norms.inner.1 * noise.norms.factors.1;
        let least = noise_std * (fresh * Grid::FINEST).max(largest * MIN_SPACING_BY_LARGEST);
        if grid.spacing() >= least {
            return Ok(());
        }
        let got = format!("a grid of spacing {:e}", grid.spacing());
        let must_be = format!(
            "plain, or a grid of spacing {least:e} at least, so that double precision decides each point (a smaller \
             --dim, the number of model parameters, allows a coarser grid)"
        );
        Err(InvalidParameter::new("arithmetic", got, must_be).into())
    }
}

/// Minimum number of coordinates for which the norm of noise exceeds twice its root mean square with
/// probability at most e^-100.
const MANY_COORDINATES: usize = 128;
/// Bound on each normal for fewer coordinates, which is exceeded with probability 1e-44.
const LARGEST_NORMAL: f64 = 14.0;

/// The correlated noise of the rounded strategy, for seed noise of standard deviation 1.
pub(crate) struct RoundedNoise {
    recursion: Recursion,
    steps: usize,
    /// Lower and upper bounds on the standard deviation of the fresh part of a step's noise; `None` for a sum
    /// of seeds whose steps have no fresh seed.
    fresh: Option<(f64, f64)>,
    /// Bounds on the standard deviation of a step's noise.
    pub(crate) norms: RowNorms,
}

impl RoundedNoise {
    /// Returns 2 E, where E is an upper bound on how far rounding of the history term shifts the mean of
    /// C G + Z, as a norm over all steps and `dim` coordinates and in standard deviations of the seed noise
    /// (docs/noise.md). The product of 2 E and sigma is the relative increase of the sensitivity. `spacing`
    /// is the spacing of the grid in the same units; `column_norm` is an upper bound on the norms of C's
    /// columns.
    pub(crate) fn history_error(&self, column_norm: f64, spacing: f64, dim: usize) -> f64 {
        let steps = self.steps as f64;
        let seeds = if dim < MANY_COORDINATES { LARGEST_NORMAL } else { 2.0 };
        // Rounding changes a seed by up to half the spacing, which affects all later rows.
        let fresh = self.fresh.map_or(f64::NAN, |(least, _)| least);
        let rounded = steps.sqrt() * 0.5 * spacing / fresh;
        let error = accumulation_error_upper(&self.recursion, self.steps, self.norms, column_norm);
        2.0 * error * (seeds + rounded) * (dim as f64 * steps).sqrt()
    }
}

impl ArithmeticKind {
    /// The precision in which noise streams with this arithmetic store coefficients.
    pub(crate) fn precision(self) -> Precision {
        match self {
            Self::Grid => Precision::Double,
            Self::PlainFloatingPoint => Precision::Single,
        }
    }

    /// The noise of a stream with this arithmetic.
    pub(crate) fn noise(self, recursion: &Recursion, steps: usize) -> Result<RoundedNoise> {
        let recursion = match self {
            Self::Grid => recursion.with_one_seed_per_step(steps)?,
            Self::PlainFloatingPoint => recursion.in_single_precision(),
        };
        let (fresh, norms) = (recursion.fresh_weight_bounds(steps), RowNorms::new(&recursion, steps));
        Ok(RoundedNoise { recursion, steps, fresh, norms })
    }

    /// Bytes of a stored coordinate of noise, which is in double precision on a grid.
    pub(crate) fn bytes_per_coordinate(self) -> u64 {
        match self {
            Self::Grid => 8,
            Self::PlainFloatingPoint => 4,
        }
    }

    /// The name on the command line: "grid" or "plain".
    ///
    /// ```
    /// use antinoise_plan::ArithmeticKind;
    /// assert_eq!(ArithmeticKind::default().name(), "grid");
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            Self::Grid => "grid",
            Self::PlainFloatingPoint => "plain",
        }
    }
}

/// Refuses numbers outside of 2^-100 to 2^100, a range well within that of normal single-precision numbers
/// (2^-126 to 2^127).
pub(crate) fn in_single_precision(what: &str, value: f64) -> Result<()> {
    if (2f64.powi(-100)..=2f64.powi(100)).contains(&value) {
        return Ok(());
    }
    Err(InvalidParameter::new(
        what,
        format!("{value:e}"),
        "from 2^-100 to 2^100, the range of single precision",
    )
    .into())
}
