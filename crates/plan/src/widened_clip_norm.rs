//! The widened clip norm: the clip norm plus allowances for rounding. It is an upper bound on how far one
//! unit moves a sum that is computed in floating point and rounded.

use antinoise_input::between;
use antinoise_mechanism::Grid;

use crate::Result;

/// Maximum norm of floating-point errors in a clipped sum, relative to the clip norm. The program that
/// computes the sum must not exceed it.
pub const CLIP_ROUNDING: f64 = 1.0 / (1u64 << 20) as f64;

/// Returns clip_norm (1 + [`CLIP_ROUNDING`]), plus spacing sqrt(dim) for sums of `dim` coordinates on a grid,
/// rounded up.
pub(crate) fn widened(clip_norm: f64, grid: Option<(Grid, usize)>) -> Result<f64> {
    let summed = (clip_norm * (1.0 + CLIP_ROUNDING)).next_up();
    let Some((grid, dim)) = grid else { return Ok(summed) };
    between("dim", dim, 1, 1usize.checked_shl(53).unwrap_or(usize::MAX), "2^53")?;
    Ok(grid.clip_norm(summed, dim)?)
}
