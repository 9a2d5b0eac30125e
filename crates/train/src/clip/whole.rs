//! Clipped sums of explicit vectors, one per unit: gradients of examples, or updates of users.

use super::factor::Clip;
use super::sum::{GradientSum, in_halves};
use crate::Error;

/// Sums clipped vectors in runs of at most `chunk` units, one after the other, and joins the runs in halves;
/// the order depends only on the number of units. `each` computes a unit's vector, of `dim` numbers, in the
/// memory of one thread, and passes it with the unit's loss to the given function, once.
///
/// The bound of [`sum_margin`](super::sum_margin) holds with this `chunk`; see `docs/training.md`.
pub(crate) fn sum_of_whole<M>(
    units: &[usize],
    chunk: usize,
    dim: usize,
    clip: Option<Clip<'_>>,
    memory: impl Fn() -> M + Sync,
    each: impl Fn(&mut M, usize, &mut dyn FnMut(&[f32], f64)) -> Result<(), Error> + Sync,
) -> Result<GradientSum, Error> {
    let leaf = |units: &[usize]| {
        let mut sum = GradientSum::none(dim);
        let (mut memory, mut factors) = (memory(), vec![0.0; clip.map_or(1, Clip::groups)]);
        for &unit in units {
            each(&mut memory, unit, &mut |vector, loss| sum.add_clipped(vector, loss, clip, &mut factors))?;
        }
        Ok(sum)
    };
    let sum = in_halves(units, chunk, &leaf)?;
    Ok(match clip {
        Some(clip) => clip.scale_back(sum),
        None => sum,
    })
}
