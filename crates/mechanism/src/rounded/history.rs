//! Noise on a grid: a bound on how far rounding errors (in double precision) of the history term move the
//! mean of C G + Z.
//!
//! 1. Step t rounds w_t z_t + f_t to the grid, where w_t is the weight of its fresh seed z_t, and the history
//!    term f_t is summed in double precision with an error e_t.
//! 2. If the recursion stores earlier rows (banded C) or sums of them (BLT), these are exact points of the
//!    grid, and the error of a step is e_t / w_t in units of z.
//! 3. If it stores seeds (banded C^-1, sums of seeds), errors propagate, and the error of all steps together
//!    is C e, where e is the vector of all e_t.
//! 4. The error of a sum is a few units in the last place of each term, times the number of roundings of the
//!    term. By Young's convolution inequality, the l2 norm of the errors over all steps is at most the l1
//!    norm of the weights times the l2 norm of the stored vectors.

use antinoise_input::{larger, largest};

use super::precision::UNIT_ROUNDOFF;
use crate::numeric::vector::dot;
use crate::rational_series::running_sums::{RunningSums, remembered};
use crate::recursion::varying;
use crate::{Recursion, RowNorms};

/// Number of roundings of a term in addition to those of sums: of its weight, the product, the grid point,
/// and the seed that is fed back.
const ROUNDINGS_PER_TERM: f64 = 16.0;

/// Returns an upper bound on the root mean square, over steps, of the shift of a step's mean, in standard
/// deviations of the seed noise. `recursion` must have the form of [`Recursion::with_one_seed_per_step`],
/// `norms` must be its norms, and `column_norm` at least the norm of each column of C.
///
/// # Panics
/// When `recursion` has fewer factors or rows than `steps`.
///
/// ```
/// use antinoise_mechanism::{Recursion, RowNorms, rounded::accumulation_error_upper};
/// let recursion = Recursion::AutoRegressive { taps: vec![1.0, 0.5] };
/// let found = accumulation_error_upper(&recursion, 1000, RowNorms::new(&recursion, 1000), 1.12);
/// assert!((1e-15..1e-14).contains(&found), "{found:e}");
/// ```
pub fn accumulation_error_upper(
    recursion: &Recursion,
    steps: usize,
    norms: RowNorms,
    column_norm: f64,
) -> f64 {
    match recursion {
        Recursion::Scaled { inner, factors } => {
            let most = largest(factors[..steps].iter().map(|factor| factor.abs()));
            accumulation_error_upper(inner, steps, norms, column_norm * most)
        }
        Recursion::Restarted { inner, period } => {
            accumulation_error_upper(inner, steps.min(*period), norms, column_norm)
        }
        leaf => UNIT_ROUNDOFF * of_leaf(leaf, steps, norms.inner.1, column_norm),
    }
}

/// Returns the bound of [`accumulation_error_upper`] in units of the unit roundoff; `row` is at least the
/// norm of each row of C^-1.
fn of_leaf(leaf: &Recursion, steps: usize, row: f64, column_norm: f64) -> f64 {
    // Upper bound on ||C||, for errors that propagate.
    let encoder = (steps as f64).sqrt() * column_norm;
    match leaf {
        Recursion::Independent => 0.0,
        Recursion::AutoRegressive { taps } => row * roundings(taps.iter().take(steps)),
        Recursion::Banded { bands, rows } => {
            row * largest(rows[..steps * bands].chunks_exact(*bands).map(roundings))
        }
        Recursion::MovingAverage { taps } => encoder * roundings(taps.iter().take(steps)),
        Recursion::SeedCombination { rows } => {
            let of_row = |row: &Vec<(usize, f64)>| roundings(row.iter().rev().map(|(_, weight)| weight));
            encoder * largest(rows[..steps].iter().map(of_row))
        }
        Recursion::Blt { scale, decay } => {
            let of_buffer = |((norm, alpha), lambda): ((f64, &f64), &f64)| {
                // Errors of a buffer decay as the buffer does.
                let lasts = (1.0 - lambda.abs()).recip().min(steps as f64);
                alpha.abs() * (4.0 * lasts * (norm + row) + (scale.len() as f64 + ROUNDINGS_PER_TERM) * norm)
            };
            let norms = buffer_norms(scale, decay, steps);
            ROUNDINGS_PER_TERM * row + norms.into_iter().zip(scale).zip(decay).map(of_buffer).sum::<f64>()
        }
        Recursion::VaryingBlt { decay, reads, writes } => {
            ROUNDINGS_PER_TERM * row + errors_of_buffers((decay, reads, writes), steps, row)
        }
        Recursion::Rational { gain, feedback } => {
            let deviations = deviations_of_sums(gain, feedback, steps);
            let update = feedback.iter().zip(&deviations).map(|(e, m)| e.abs() * m).sum::<f64>();
            let read = gain.iter().zip(&deviations).map(|(g, m)| g.abs() * m).sum::<f64>();
            let operations = feedback.len() as f64 + ROUNDINGS_PER_TERM;
            let rounded = |k: usize| match k {
                0 => operations * (update + deviations[0] + row),
                _ => 4.0 * (deviations[k] + deviations[k - 1]),
            };
            // An error of a running sum is read as long as the sum remembers it.
            let kept = (0..gain.len()).map(|k| remembered(gain, feedback, k, steps) * rounded(k));
            operations * (read + row) + kept.sum::<f64>()
        }
        // Steps of a circulant have no fresh seed, so that there is no bound.
        Recursion::Circulant { .. } => f64::INFINITY,
        Recursion::Scaled { .. } | Recursion::Restarted { .. } => unreachable!("a leaf is neither"),
    }
}

/// Returns the largest error, over steps, of the sum of all that a step reads of its buffers. What a step
/// writes with an error decays until a later step reads it: weights may fall as the others rise, so that the
/// largest of both, of different steps, would bound nothing of use.
fn errors_of_buffers((decay, reads, writes): (&[f64], &[f64], &[f64]), steps: usize, row: f64) -> f64 {
    let order = decay.len();
    let (mut errors, mut most) = (vec![0.0; order], 0.0);
    for (t, (_, norms)) in varying::deviations(decay, reads, writes, steps).into_iter().enumerate() {
        let mut read = 0.0;
        for (i, norm) in norms.into_iter().enumerate() {
            let at = t * order + i;
            read += reads[at].abs() * (errors[i] + (order as f64 + ROUNDINGS_PER_TERM) * norm);
            errors[i] = decay[i].abs() * errors[i] + 4.0 * (norm + writes[at].abs() * row);
        }
        most = larger(most, read);
    }
    most
}

/// Returns the sum of |weight| times the number of roundings of its term. Terms are added from the oldest,
/// which is therefore rounded in every addition.
fn roundings<'a>(weights: impl IntoIterator<Item = &'a f64>) -> f64 {
    weights
        .into_iter()
        .enumerate()
        .map(|(lag, weight)| (lag as f64 + ROUNDINGS_PER_TERM) * weight.abs())
        .sum()
}

/// Returns the standard deviation of each buffer of a BLT in the last of `steps` steps, where it is largest.
fn buffer_norms(scale: &[f64], decay: &[f64], steps: usize) -> Vec<f64> {
    let (mut buffers, mut squares) = (vec![0.0; scale.len()], vec![0.0; scale.len()]);
    let mut seed = 1.0;
    for _ in 0..steps {
        let noise = seed - scale.iter().zip(&buffers).map(|(alpha, m)| alpha * m).sum::<f64>();
        seed = 0.0;
        for ((m, lambda), square) in buffers.iter_mut().zip(decay).zip(&mut squares) {
            *m = lambda * *m + noise;
            *square += *m * *m;
        }
    }
    squares.into_iter().map(f64::sqrt).collect()
}

/// Returns the standard deviation of each running sum of a rational C in the last of `steps` steps, where it
/// is largest.
fn deviations_of_sums(gain: &[f64], feedback: &[f64], steps: usize) -> Vec<f64> {
    let (mut filter, mut squares) = (RunningSums::new(feedback), vec![0.0; gain.len()]);
    for t in 0..steps {
        let seed = if t == 0 { 1.0 } else { 0.0 };
        filter.push(seed - dot(gain, filter.sums()));
        squares.iter_mut().zip(filter.sums()).for_each(|(square, m)| *square += m * m);
    }
    squares.into_iter().map(f64::sqrt).collect()
}
