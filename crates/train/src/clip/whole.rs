//! Clipped sums of vectors that are made whole, one a unit: gradients of examples, or updates of users.

use super::factor::Clip;
use super::sum::{GradientSum, in_halves};
use crate::Error;

/// Sums of at most `chunk` units' vectors, clipped and added one after the other, joined in halves; the order follows from
/// the number of units alone. `each` makes a unit's vector, of `dim` numbers, in the memory of one thread, and hands it with
/// the unit's loss to what it is given, once.
///
/// The bound of [`sum_margin`](super::sum_margin) holds with this `chunk`: `docs/training.md`.
pub(crate) fn sum_of_whole<M>(
    units: &[usize],
    chunk: usize,
    dim: usize,
    clip: Option<Clip<'_>>,
    memory: impl Fn() -> M + Sync,
    each: impl Fn(&mut M, usize, &mut dyn FnMut(&[f32], f64)) -> Result<(), Error> + Sync,
) -> Result<GradientSum, Error> {
    let leaf = |units: &[usize]| {
        let mut sum = GradientSum::none(clip.map_or(dim, |clip| clip.dim(dim)));
        let mut memory = memory();
        for &unit in units {
            each(&mut memory, unit, &mut |vector, loss| sum.add_clipped(vector, loss, clip))?;
        }
        Ok(sum)
    };
    let sum = in_halves(units, chunk, &leaf)?;
    Ok(match clip {
        Some(clip) => clip.scale_back(sum),
        None => sum,
    })
}
