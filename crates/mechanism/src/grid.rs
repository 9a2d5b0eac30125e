//! The grid of noisy sums, and the effect of rounding to it on sensitivity.

use antinoise_input::{InvalidParameter, at_least, positive};

/// The multiples of a power of two.
///
/// If a sum and its noise are both rounded to the grid, they add exactly, so that the last bits of a noisy
/// sum reveal nothing (`docs/noise.md`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grid {
    spacing: f64,
}

impl Grid {
    /// Minimum spacing, relative to the standard deviation of a step's fresh noise. With a smaller spacing,
    /// double precision often could not decide which point is the nearest.
    pub const FINEST: f64 = 1.0 / (1u64 << 36) as f64;

    /// Creates the grid of the multiples of `spacing`.
    ///
    /// ```
    /// use antinoise_mechanism::Grid;
    /// assert_eq!(Grid::new(0.25).unwrap().spacing(), 0.25);
    /// assert!(Grid::new(0.3).unwrap_err().to_string().contains("a power of two"));
    /// ```
    ///
    /// # Errors
    /// When `spacing` is not a power of two from 2^-100 to 2^100.
    pub fn new(spacing: f64) -> Result<Self, InvalidParameter> {
        let is_power = spacing.to_bits() << 12 == 0;
        if is_power && (2f64.powi(-100)..=2f64.powi(100)).contains(&spacing) {
            Ok(Self { spacing })
        } else {
            let must_be = "a power of two from 2^-100 to 2^100";
            Err(InvalidParameter::new("grid spacing", format!("{spacing:e}"), must_be))
        }
    }

    /// Returns the coarsest grid that raises the sensitivity of sums in `dim` dimensions, clipped to
    /// `clip_norm`, by at most the fraction `increase`: spacing sqrt(dim) <= increase clip_norm.
    ///
    /// ```
    /// use antinoise_mechanism::Grid;
    /// let grid = Grid::for_clip_norm(1.0, 1_000_000, 1e-3)?;
    /// assert_eq!(grid.spacing(), 2f64.powi(-20));
    /// assert!(grid.clip_norm(1.0, 1_000_000)? <= 1.001);
    /// # Ok::<(), antinoise_input::InvalidParameter>(())
    /// ```
    ///
    /// # Errors
    /// When a parameter is not a finite number above 0, or no such grid exists.
    pub fn for_clip_norm(clip_norm: f64, dim: usize, increase: f64) -> Result<Self, InvalidParameter> {
        at_least("dim", dim, 1)?;
        let limit = positive("increase", increase)? * positive("clip_norm", clip_norm)? / (dim as f64).sqrt();
        let mut power = limit.log2().floor() as i32;
        if 2f64.powi(power) > limit {
            power -= 1;
        }
        Self::new(2f64.powi(power))
    }

    /// Distance between neighbouring points.
    pub fn spacing(self) -> f64 {
        self.spacing
    }

    /// Returns clip_norm + spacing sqrt(dim), rounded up: the clip norm widened by rounding to this grid. It
    /// must replace `clip_norm` wherever noise is calibrated.
    ///
    /// Rounding moves each coordinate of a sum by at most spacing / 2. So the difference of two sums, with
    /// and without a unit's contribution, grows by at most `spacing` in each coordinate.
    ///
    /// # Errors
    /// When `clip_norm` is not a finite number above 0 or `dim` is 0.
    pub fn clip_norm(self, clip_norm: f64, dim: usize) -> Result<f64, InvalidParameter> {
        at_least("dim", dim, 1)?;
        Ok((positive("clip_norm", clip_norm)? + self.spacing * (dim as f64).sqrt().next_up()).next_up())
    }
}
