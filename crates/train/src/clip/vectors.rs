//! Clipped sums of explicit vectors, one per unit: gradients of examples, or updates of users.

use antinoise_input::{InvalidParameter, at_least};

use super::factor::Clip;
use super::groups::Clipping;
use super::sum::{GradientSum, pairwise_sum};

/// Sums the clipped vectors of `units`, each of `dim` numbers in single precision, in double precision; with
/// no `clipping`, the vectors themselves.
///
/// `each(memory, unit, add)` computes a unit's vector in the memory of one thread and calls `add(vector,
/// loss)` once. Vectors are summed in runs of at most `chunk` units, one after the other, and the runs in
/// pairs; the order depends only on the number of units. A vector that is not finite adds nothing.
///
/// If no unit's vector depends on another unit, one unit changes the sum by at most clip_norm (1 +
/// [`sum_margin`](super::sum_margin)) for this `chunk`; see `docs/training.md`.
///
/// ```
/// use antinoise_train::{Error, clip::sum_clipped_vectors};
/// let vectors = [[3.0, 4.0], [0.0, 0.5], [f32::NAN, 0.0]];
/// let each = |_: &mut (), unit: usize, add: &mut dyn FnMut(&[f32], f64)| {
///     add(&vectors[unit], 0.0);
///     Ok::<(), Error>(())
/// };
/// let sum = sum_clipped_vectors(&[0, 1, 2], 8, 2, Some(1.0.into()), || (), each)?;
/// assert!((sum.gradient[0] - 0.6).abs() < 1e-6 && (sum.gradient[1] - 1.3).abs() < 1e-6 && sum.clipped == 2);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// If `chunk` is 0 or the clip norm is below 2^-1000 or not finite; the errors of `each`.
///
/// # Panics
/// If a vector does not have `dim` numbers, or the groups of `clipping` have other numbers of parameters.
pub fn sum_clipped_vectors<M, E: From<InvalidParameter> + Send>(
    units: &[usize],
    chunk: usize,
    dim: usize,
    clipping: Option<Clipping<'_>>,
    memory: impl Fn() -> M + Sync,
    each: impl Fn(&mut M, usize, &mut dyn FnMut(&[f32], f64)) -> Result<(), E> + Sync,
) -> Result<GradientSum, E> {
    at_least("chunk", chunk, 1)?;
    let clip = clipping.map(Clip::new).transpose()?;
    let leaf = |units: &[usize]| -> Result<GradientSum, E> {
        let mut sum = GradientSum::zeros(dim);
        let (mut memory, mut factors) = (memory(), vec![0.0; clip.map_or(1, Clip::groups)]);
        for &unit in units {
            each(&mut memory, unit, &mut |vector, loss| {
                assert_eq!(vector.len(), dim, "numbers of a vector");
                sum.add_clipped(vector, loss, clip, &mut factors);
            })?;
        }
        Ok(sum)
    };
    let leaves: Vec<&[usize]> = units.chunks(chunk).collect();
    let sum = pairwise_sum(&leaves, dim, &leaf)?;
    Ok(match clip {
        Some(clip) => clip.unscale(sum),
        None => sum,
    })
}
