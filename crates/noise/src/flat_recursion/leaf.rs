//! Leaves: checked recursions that contain no other recursion, with the numbers that a step of a run needs.

use std::collections::VecDeque;
use std::sync::Arc;

use antinoise_input::{InvalidParameter, at_least, below_one, largest};
use antinoise_mechanism::{Recursion, RowNorms};

use super::retained::RetainedRow;
use crate::number::Real;

/// The innermost recursion of nested scaled and restarted recursions.
pub(crate) enum Leaf {
    /// A weighted sum of this step's seed noise and a few past vectors.
    Ring { weights: Weights, history: History },
    /// z~ = z - sum_i scale_i M_i; M_i <- M_i - rate_i M_i + z~, rate = 1 - decay.
    Blt { scale: Vec<f64>, rate: Vec<f64> },
    /// z~ = z - sum_i u_i M_i; M_i <- M_i - rate_i M_i + v_i z~, with weights u and v of each step.
    VaryingBlt(StepWeights),
    /// z~ = z - sum_k gain_k M_k; M_1 <- M_1 - sum_k feedback_k M_k + z~ and M_k <- M_k + M_{k-1}.
    Rational { gain: Vec<f64>, feedback: Vec<f64> },
    /// Row t is a weighted sum of seeds, in increasing order of seeds.
    Sum { rows: Vec<Vec<(usize, f64)>> },
    /// Differences of a circulant's rows: every step reads every seed of its run. `first` and `later` are the
    /// standard deviations of the first row and of each later row.
    Circulant { root: Vec<f64>, first: f64, later: f64 },
    /// A weighted sum of one fresh seed and of past seeds, which are stored together with their rounding.
    Retained { rows: Arc<[RetainedRow]>, slots: usize },
}

/// The weights with which each step reads the buffers of a BLT and writes to them: of step t and buffer i at
/// index t rate.len() + i.
pub(crate) struct StepWeights {
    pub(crate) rate: Vec<f64>,
    pub(crate) reads: Vec<f64>,
    pub(crate) writes: Vec<f64>,
}

/// The kind of past vectors that a recursion reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum History {
    /// Earlier rows of z~.
    Outputs,
    /// Earlier seed noise.
    Seeds,
}

/// Weights by lag; that of lag 0 multiplies the seed noise of the step itself.
pub struct Weights<T = f64> {
    pub(crate) bands: usize,
    /// One row of weights for all steps, or one row for each step.
    rows: Vec<T>,
}

impl<T> Weights<T> {
    fn same_every_step(row: Vec<T>) -> Self {
        Self { bands: row.len(), rows: row }
    }

    /// The weights, if they are the same at every step.
    pub(crate) fn of_every_step(&self) -> Option<&[T]> {
        (self.rows.len() == self.bands).then_some(&self.rows)
    }

    /// The weights of the run's step `local`, for lags up to `local`.
    pub(crate) fn row(&self, local: usize) -> &[T] {
        let first = if self.rows.len() == self.bands { 0 } else { local * self.bands };
        &self.rows[first..][..self.bands.min(local + 1)]
    }
}

impl Weights {
    /// Rounds the weights to the precision of the noise.
    pub(crate) fn rounded<T: Real>(&self) -> Weights<T> {
        Weights { bands: self.bands, rows: self.rows.iter().map(|&w| T::rounded(w)).collect() }
    }
}

impl Leaf {
    /// Returns the number of past vectors that the recursion stores.
    pub(crate) fn past_vectors(&self) -> usize {
        match self {
            Self::Ring { weights, .. } => weights.bands - 1,
            Self::Blt { scale: buffers, .. } | Self::Rational { gain: buffers, .. } => buffers.len(),
            Self::VaryingBlt(weights) => weights.rate.len(),
            Self::Retained { slots, .. } => *slots,
            Self::Sum { .. } | Self::Circulant { .. } => 0,
        }
    }

    /// Returns the absolute weight of the step's fresh seed, or the standard deviation of the row for sums of
    /// seeds that are not stored.
    pub(crate) fn fresh_weight(&self, local: usize) -> f64 {
        match self {
            Self::Ring { weights, .. } => weights.row(local)[0].abs(),
            Self::Blt { .. } | Self::VaryingBlt(_) | Self::Rational { .. } => 1.0,
            Self::Sum { rows } => {
                rows[local].iter().map(|(_, weight)| weight * weight).sum::<f64>().sqrt().abs()
            }
            Self::Circulant { first, later, .. } => {
                if local == 0 {
                    *first
                } else {
                    *later
                }
            }
            Self::Retained { rows, .. } => rows[local].fresh.abs(),
        }
    }

    /// Returns the smallest fresh weight and the largest l1 norm of a row, (min over t of |C^-1\[t, t\]|, max
    /// over t of sum over s of |C^-1\[t, s\]|), or `None` if they are not known.
    pub(crate) fn extremes(&self, steps: usize) -> Option<(f64, f64)> {
        let Self::Retained { rows, .. } = self else { return self.response(steps) };
        let size = |row: &RetainedRow| row.fresh.abs() + row.past.iter().map(|(_, w)| w.abs()).sum::<f64>();
        let least = rows.iter().map(|row| row.fresh.abs()).fold(f64::INFINITY, f64::min);
        Some((least, largest(rows.iter().map(size))))
    }

    /// The impulse response over `steps` steps: (C^-1\[0, 0\], sum over t of |C^-1\[t, 0\]|), or `None` if
    /// steps have different weights.
    pub(crate) fn response(&self, steps: usize) -> Option<(f64, f64)> {
        match self {
            Self::Ring { weights, history } => {
                let weights = weights.of_every_step()?;
                if *history == History::Seeds {
                    return Some((weights[0], weights.iter().map(|w| w.abs()).sum()));
                }
                let mut recent = VecDeque::from([weights[0]]);
                let mut sum = weights[0].abs();
                for _ in 1..steps {
                    let next = weights[1..].iter().zip(&recent).map(|(w, x)| w * x).sum::<f64>();
                    sum += next.abs();
                    recent.push_front(next);
                    recent.truncate(weights.len());
                }
                Some((weights[0], sum))
            }
            Self::Blt { scale, rate } => {
                let mut buffers = vec![0.0; scale.len()];
                let (mut seed, mut sum) = (1.0, 0.0);
                for _ in 0..steps {
                    let next = seed - scale.iter().zip(&buffers).map(|(a, m)| a * m).sum::<f64>();
                    buffers.iter_mut().zip(rate).for_each(|(m, rate)| *m += next - rate * *m);
                    (seed, sum) = (0.0, sum + next.abs());
                }
                Some((1.0, sum))
            }
            Self::Rational { gain, feedback } => Some((1.0, rational_response(gain, feedback, steps).0)),
            Self::VaryingBlt(_) | Self::Sum { .. } | Self::Circulant { .. } | Self::Retained { .. } => None,
        }
    }
}

/// The impulse response of a rational recursion over `steps` steps: the sum of the magnitudes of its rows,
/// and that of each running sum.
pub(crate) fn rational_response(gain: &[f64], feedback: &[f64], steps: usize) -> (f64, Vec<f64>) {
    let (mut sums, mut sizes) = (vec![0.0; gain.len()], vec![0.0; gain.len()]);
    let (mut seed, mut rows) = (1.0, 0.0);
    for _ in 0..steps {
        let over = |weights: &[f64], sums: &[f64]| weights.iter().zip(sums).map(|(w, m)| w * m).sum::<f64>();
        let next: f64 = seed - over(gain, &sums);
        let change = next - over(feedback, &sums);
        for k in (1..sums.len()).rev() {
            sums[k] += sums[k - 1];
        }
        sums.iter_mut().take(1).for_each(|first| *first += change);
        sizes.iter_mut().zip(&sums).for_each(|(size, m)| *size += f64::abs(*m));
        (seed, rows) = (0.0, rows + next.abs());
    }
    (rows, sizes)
}

impl Leaf {
    /// The leaf of `recursion`, which is neither scaled nor restarted, over `steps` steps.
    pub(super) fn new(recursion: &Recursion, steps: usize) -> Result<Self, InvalidParameter> {
        match recursion {
            Recursion::Independent => {
                Ok(Leaf::Ring { weights: Weights::same_every_step(vec![1.0]), history: History::Seeds })
            }
            Recursion::MovingAverage { taps } => {
                check_taps(taps)?;
                let taps = taps[..taps.len().min(steps)].to_vec();
                Ok(Leaf::Ring { weights: Weights::same_every_step(taps), history: History::Seeds })
            }
            Recursion::AutoRegressive { taps } => {
                check_taps(taps)?;
                let weights = solve_for_output(&taps[..taps.len().min(steps)]);
                Ok(Leaf::Ring { weights: Weights::same_every_step(weights), history: History::Outputs })
            }
            Recursion::Banded { bands, rows } => check_banded(*bands, rows, steps),
            Recursion::Blt { scale, decay } => {
                if scale.len() != decay.len() {
                    return Err(InvalidParameter::new(
                        "scale",
                        scale.len(),
                        format!("as many as decay = {}", decay.len()),
                    ));
                }
                for (&alpha, &lambda) in scale.iter().zip(decay) {
                    finite("scale", alpha)?;
                    below_one("decay", lambda)?;
                }
                Ok(Leaf::Blt {
                    scale: scale.clone(),
                    rate: decay.iter().map(|lambda| 1.0 - lambda).collect(),
                })
            }
            Recursion::VaryingBlt { decay, reads, writes } => check_varying(decay, reads, writes, steps),
            Recursion::Rational { gain, feedback } => {
                if gain.len() != feedback.len() {
                    let must_be = format!("as many as feedback = {}", feedback.len());
                    return Err(InvalidParameter::new("gain", gain.len(), must_be));
                }
                for (&gain, &feedback) in gain.iter().zip(feedback) {
                    finite("gain", gain)?;
                    finite("feedback", feedback)?;
                }
                Ok(Leaf::Rational { gain: gain.clone(), feedback: feedback.clone() })
            }
            Recursion::SeedCombination { rows } => check_combination(rows, steps),
            Recursion::Circulant { root } => check_circulant(recursion, root, steps),
            Recursion::Scaled { .. } | Recursion::Restarted { .. } => unreachable!("a leaf is neither"),
        }
    }
}

fn check_taps(taps: &[f64]) -> Result<(), InvalidParameter> {
    at_least("taps", taps.len(), 1)?;
    for &tap in taps {
        finite("taps", tap)?;
    }
    nonzero("taps[0]", taps[0]).map(|_| ())
}

/// Converts a row c_0, c_1, ... of C to the weights of z~_t = z_t / c_0 - sum_tau (c_tau / c_0) z~_{t-tau}.
fn solve_for_output(row: &[f64]) -> Vec<f64> {
    std::iter::once(1.0 / row[0]).chain(row[1..].iter().map(|c| -c / row[0])).collect()
}

fn check_banded(bands: usize, rows: &[f64], steps: usize) -> Result<Leaf, InvalidParameter> {
    at_least("bands", bands, 1)?;
    at_least("rows", rows.len() / bands, steps)?;
    let mut weights = Vec::with_capacity(steps * bands);
    for (t, row) in rows.chunks_exact(bands).take(steps).enumerate() {
        nonzero("rows (diagonal)", row[0])?;
        for &c in &row[..bands.min(t + 1)] {
            finite("rows", c)?;
        }
        weights.extend(solve_for_output(row));
    }
    Ok(Leaf::Ring { weights: Weights { bands, rows: weights }, history: History::Outputs })
}

fn check_varying(
    decay: &[f64],
    reads: &[f64],
    writes: &[f64],
    steps: usize,
) -> Result<Leaf, InvalidParameter> {
    let of_steps = |name: &str, weights: &[f64]| {
        at_least(name, weights.len(), steps * decay.len())?;
        let weights = &weights[..steps * decay.len()];
        weights.iter().try_for_each(|&w| finite(name, w).map(drop))?;
        Ok(weights.to_vec())
    };
    let (reads, writes) = (of_steps("reads", reads)?, of_steps("writes", writes)?);
    decay.iter().try_for_each(|&lambda| below_one("decay", lambda).map(drop))?;
    Ok(Leaf::VaryingBlt(StepWeights {
        rate: decay.iter().map(|lambda| 1.0 - lambda).collect(),
        reads,
        writes,
    }))
}

fn check_combination(rows: &[Vec<(usize, f64)>], steps: usize) -> Result<Leaf, InvalidParameter> {
    at_least("rows", rows.len(), steps)?;
    let mut sorted = Vec::with_capacity(steps);
    for row in &rows[..steps] {
        for &(_, weight) in row {
            finite("rows", weight)?;
        }
        let mut row: Vec<_> = row.iter().copied().filter(|&(_, weight)| weight != 0.0).collect();
        row.sort_by_key(|&(seed, _)| seed);
        sorted.push(row);
    }
    Ok(Leaf::Sum { rows: sorted })
}

fn check_circulant(recursion: &Recursion, root: &[f64], steps: usize) -> Result<Leaf, InvalidParameter> {
    at_least("root", root.len(), steps)?;
    root.iter().try_for_each(|&x| finite("root", x).map(drop))?;
    let deviation = |steps: usize| RowNorms::new(recursion, steps).inner;
    let (first, both) = (deviation(1).1, deviation(2));
    // Rows have only two different standard deviations; `first` is one of the extremes, and `later` the
    // other.
    let later = if both.0 < first { both.0 } else { both.1 };
    Ok(Leaf::Circulant { root: root.to_vec(), first, later })
}

fn finite(parameter: &str, got: f64) -> Result<f64, InvalidParameter> {
    if got.is_finite() { Ok(got) } else { Err(InvalidParameter::new(parameter, got, "finite numbers")) }
}

pub(super) fn nonzero(parameter: &str, got: f64) -> Result<f64, InvalidParameter> {
    if got.is_finite() && got != 0.0 {
        Ok(got)
    } else {
        Err(InvalidParameter::new(parameter, got, "finite and not 0"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_response_sums_a_column_of_the_inverse() {
        const STEPS: usize = 9;
        for recursion in [
            Recursion::Independent,
            Recursion::MovingAverage { taps: vec![1.5, -0.4, 0.2] },
            Recursion::AutoRegressive { taps: vec![2.0, 0.7, -0.3, 0.1] },
            Recursion::Blt { scale: vec![0.3, -0.1], decay: vec![0.9, 0.4] },
            Recursion::Rational { gain: vec![0.3, -0.1], feedback: vec![0.9, 0.4] },
        ] {
            let seed: Vec<f64> = (0..STEPS).map(|t| if t == 0 { 1.0 } else { 0.0 }).collect();
            let column = recursion.apply(STEPS, &seed);
            let leaf = Leaf::new(&recursion, STEPS).unwrap();
            let (first, sum) = leaf.response(STEPS).unwrap();
            let expected: f64 = column.iter().map(|x| x.abs()).sum();
            assert!((first - column[0]).abs() < 1e-15 && (sum - expected).abs() < 1e-14);
        }
        let rows = (0..STEPS * 2).map(|i| 1.0 / (1 + i) as f64).collect();
        let leaf = Leaf::new(&Recursion::Banded { bands: 2, rows }, STEPS).unwrap();
        assert!(leaf.response(STEPS).is_none());
    }
}
