//! The rule by which a mechanism's noise is computed, step by step.
//!
//! Correlated noise z~ = C^-1 Z is computed from seed noise z_0, z_1, ..., which are independent standard
//! normal vectors of the model's dimension. [`Recursion`] is the rule for z~_t, without storage or random
//! numbers: the noise crate applies it to vectors, and [`Recursion::apply`] to scalars.

use antinoise_linear::Matrix;
use serde::{Deserialize, Serialize};

use super::varying;
use crate::circulant::Convolution;
use crate::numeric::vector::dot;
use crate::rational_series::running_sums::RunningSums;
use crate::{Error, Result};

/// The rule that gives the correlated noise z~_t of step t, from seed noise z and earlier steps.
///
/// ```
/// use antinoise_mechanism::Recursion;
/// // C = lower-triangular ones: C^-1 takes differences.
/// let difference = Recursion::MovingAverage { taps: vec![1.0, -1.0] };
/// assert_eq!(difference.apply(3, &[1.0, 3.0, 6.0]), [1.0, 2.0, 3.0]);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recursion {
    /// z~_t = z_t (C = I).
    Independent,
    /// z~_t = sum over tau < min(t + 1, taps.len()) of taps\[tau\] z_{t-tau}: C^-1 is Toeplitz, possibly
    /// banded. Only seed noise is needed, which a generator may regenerate instead of storing it.
    MovingAverage {
        /// First column of C^-1; taps\[0\] is not 0.
        taps: Vec<f64>,
    },
    /// z~_t = (z_t - sum over 1 <= tau <= min(t, taps.len() - 1) of taps\[tau\] z~_{t-tau}) / taps\[0\]:
    /// C is banded Toeplitz.
    AutoRegressive {
        /// First column of C; taps\[0\] is not 0.
        taps: Vec<f64>,
    },
    /// z~_t = z_t - sum_i scale\[i\] M_i; then M_i <- decay\[i\] M_i + z~_t, from M = 0: C is a BLT.
    Blt {
        /// alpha, one per buffer.
        scale: Vec<f64>,
        /// lambda, one per buffer, in \[0, 1).
        decay: Vec<f64>,
    },
    /// z~_t = z_t - sum_i reads\[t, i\] M_i; then M_i <- decay\[i\] M_i + writes\[t, i\] z~_t, from M = 0: C
    /// is 1 on the diagonal and of low rank below it.
    VaryingBlt {
        /// lambda, one per buffer, in \[0, 1).
        decay: Vec<f64>,
        /// The weight of buffer i in step t, at index t decay.len() + i.
        reads: Vec<f64>,
        /// The weight of step t in buffer i, at index t decay.len() + i.
        writes: Vec<f64>,
    },
    /// z~_t = z_t - sum_k gain\[k\] M_k; then M_1 <- M_1 - sum_k feedback\[k\] M_k + z~_t and, for k > 1, M_k
    /// <- M_k + M_{k-1}, all from the old M, from M = 0. C has the generating function P(X) / Q(X), where X =
    /// x / (1 - x), Q(X) = 1 + sum_k feedback\[k\] X^k and P(X) = Q(X) + sum_k gain\[k\] X^k: it is rational.
    Rational {
        /// P - Q, one coefficient for each power of X from X^1 on.
        gain: Vec<f64>,
        /// Q - 1, as many coefficients.
        feedback: Vec<f64>,
    },
    /// z~_t = (z_t - sum over 1 <= tau <= min(t, bands - 1) of C\[t, t-tau\] z~_{t-tau}) / C\[t, t\]: C is
    /// banded, but not Toeplitz.
    Banded {
        /// Number of diagonals of C, the main one included.
        bands: usize,
        /// C\[t, t-tau\] at index t bands + tau; ignored if tau > t.
        rows: Vec<f64>,
    },
    /// z~_t = sum over rows\[t\] of weight * z_seed: any linear map of seed noise, dense or sparse. There may
    /// be more seeds than steps (2n - 1 for a tree).
    #[serde(rename = "combination")]
    SeedCombination {
        /// The (seed, weight) pairs of each step.
        rows: Vec<Vec<(usize, f64)>>,
    },
    /// z~_0 = x_0 and z~_t = x_t - x_{t-1}, where x is the cyclic convolution of `root` with root.len()
    /// seeds: the Fourier mechanism. Every step uses every seed. Fast Fourier transforms compute all steps
    /// together; a single step takes O(root.len()).
    Circulant {
        /// First column of the circulant; at least as many entries as steps.
        root: Vec<f64>,
    },
    /// z~_t = factors\[t\] times the z~_t of the inner recursion, which keeps its own, unscaled history: C is
    /// the inner C times diag(1 / factors), as in column-normalised strategies.
    Scaled {
        /// The recursion before scaling.
        inner: Box<Recursion>,
        /// One factor per step.
        factors: Vec<f64>,
    },
    /// The inner recursion, restarted without history at steps 0, period, 2 period, ...: C = I (x) inner C is
    /// block diagonal. Each run between restarts uses seeds of its own.
    Restarted {
        /// The recursion of one run, valid for at least `period` steps.
        inner: Box<Recursion>,
        /// Number of steps of a run.
        period: usize,
    },
}

impl Recursion {
    /// Returns the recursion z~ = N z for a lower-triangular N (n x n).
    pub(crate) fn of_lower_triangular(noise: &Matrix) -> Self {
        let row = |t: usize| (0..=t).map(|seed| (seed, noise[(t, seed)])).collect();
        Self::SeedCombination { rows: (0..noise.nrows()).map(row).collect() }
    }

    /// Returns the recursion if all coefficients are finite.
    ///
    /// # Errors
    /// When a coefficient is not finite.
    pub(crate) fn checked(self) -> Result<Self> {
        let finite = |numbers: &[f64]| numbers.iter().all(|x| x.is_finite());
        let holds = match &self {
            Self::Independent => true,
            Self::MovingAverage { taps } | Self::AutoRegressive { taps } => finite(taps),
            Self::Blt { scale, decay } => finite(scale) && finite(decay),
            Self::VaryingBlt { decay, reads, writes } => finite(decay) && finite(reads) && finite(writes),
            Self::Rational { gain, feedback } => finite(gain) && finite(feedback),
            Self::Circulant { root } => finite(root),
            Self::Banded { rows, .. } => finite(rows),
            Self::SeedCombination { rows } => rows.iter().flatten().all(|(_, weight)| weight.is_finite()),
            // The inner recursion was checked when it was built.
            Self::Scaled { factors, .. } => finite(factors),
            Self::Restarted { .. } => true,
        };
        if holds {
            return Ok(self);
        }
        let why = "a coefficient of C^-1 is not finite but must be: the strategy's coefficients grow or shrink too fast";
        Err(Error::Numerical(why.into()))
    }

    /// Returns the number of vectors of the model's dimension that must be stored between steps if no seed
    /// noise is regenerated.
    ///
    /// ```
    /// use antinoise_mechanism::Recursion;
    /// assert_eq!(Recursion::AutoRegressive { taps: vec![1.0, 0.5, 0.25] }.state_vectors(), 2);
    /// let differences = vec![vec![(0, 1.0)], vec![(0, -1.0), (1, 1.0)], vec![(1, -1.0), (2, 1.0)]];
    /// assert_eq!(Recursion::SeedCombination { rows: differences }.state_vectors(), 1);
    /// ```
    pub fn state_vectors(&self) -> usize {
        match self {
            Self::Independent => 0,
            Self::MovingAverage { taps } | Self::AutoRegressive { taps } => taps.len().saturating_sub(1),
            Self::Blt { scale: buffers, .. }
            | Self::VaryingBlt { decay: buffers, .. }
            | Self::Rational { gain: buffers, .. } => buffers.len(),
            Self::Banded { bands, .. } => bands.saturating_sub(1),
            Self::SeedCombination { rows } => most_awaited(rows),
            Self::Circulant { root } => root.len(),
            Self::Scaled { inner, .. } | Self::Restarted { inner, .. } => inner.state_vectors(),
        }
    }

    /// Returns the number of diagonals of C, the main one included, that can be non-zero however the
    /// coefficients are rounded.
    ///
    /// ```
    /// use antinoise_mechanism::Recursion;
    /// assert_eq!(Recursion::AutoRegressive { taps: vec![1.0, 0.5] }.bandwidth(9), 2);
    /// assert_eq!(Recursion::MovingAverage { taps: vec![1.0, 0.5] }.bandwidth(9), 9);
    /// ```
    pub fn bandwidth(&self, steps: usize) -> usize {
        match self {
            Self::Independent => 1,
            Self::AutoRegressive { taps } => taps.len().min(steps),
            Self::Banded { bands, .. } => steps.min(*bands),
            Self::MovingAverage { taps } if taps.len() == 1 => 1,
            Self::MovingAverage { .. }
            | Self::Blt { .. }
            | Self::VaryingBlt { .. }
            | Self::Rational { .. }
            | Self::SeedCombination { .. }
            | Self::Circulant { .. } => steps,
            Self::Scaled { inner, .. } => inner.bandwidth(steps),
            Self::Restarted { inner, period } => inner.bandwidth(steps.min(*period)),
        }
    }

    /// Returns the number of seed vectors that `steps` steps use.
    ///
    /// # Panics
    /// When a period is 0.
    ///
    /// ```
    /// use antinoise_mechanism::Recursion;
    /// assert_eq!(Recursion::Independent.seeds(5), 5);
    /// ```
    pub fn seeds(&self, steps: usize) -> usize {
        match self {
            Self::SeedCombination { rows } => {
                rows[..steps.min(rows.len())].iter().flatten().map(|&(seed, _)| seed + 1).max().unwrap_or(0)
            }
            Self::Circulant { root } => root.len().min(steps.saturating_mul(root.len())),
            Self::Scaled { inner, .. } => inner.seeds(steps),
            Self::Restarted { inner, period } => {
                let (runs, rest) = (steps / period, steps % period);
                runs * inner.seeds(*period) + inner.seeds(rest)
            }
            Self::Independent
            | Self::MovingAverage { .. }
            | Self::AutoRegressive { .. }
            | Self::Blt { .. }
            | Self::VaryingBlt { .. }
            | Self::Rational { .. }
            | Self::Banded { .. } => steps,
        }
    }

    /// Returns whether the recursion is a sum of seeds in which steps need not have a fresh seed of their
    /// own.
    pub(crate) fn is_sum_of_seeds(&self) -> bool {
        match self {
            Self::SeedCombination { .. } | Self::Circulant { .. } => true,
            Self::Scaled { inner, .. } | Self::Restarted { inner, .. } => inner.is_sum_of_seeds(),
            Self::Independent
            | Self::MovingAverage { .. }
            | Self::AutoRegressive { .. }
            | Self::Blt { .. }
            | Self::VaryingBlt { .. }
            | Self::Rational { .. }
            | Self::Banded { .. } => false,
        }
    }

    /// Computes the first `steps` values of z~ = C^-1 z for one coordinate: the reference for generators.
    /// `seed_noise` holds [`Recursion::seeds`] values.
    ///
    /// # Panics
    /// When `seed_noise` or the recursion has too few numbers for `steps` steps, or a period is 0.
    pub fn apply(&self, steps: usize, seed_noise: &[f64]) -> Vec<f64> {
        let z = &seed_noise[..self.seeds(steps)];
        match self {
            Self::Independent => z.to_vec(),
            Self::MovingAverage { taps } => moving_average(taps, z),
            Self::AutoRegressive { taps } => auto_regressive(taps, z),
            Self::Blt { scale, decay } => blt(scale, decay, z),
            Self::VaryingBlt { decay, reads, writes } => varying::apply(decay, reads, writes, z),
            Self::Rational { gain, feedback } => rational(gain, feedback, z),
            Self::Banded { bands, rows } => banded(*bands, rows, z),
            Self::SeedCombination { rows } => {
                rows[..steps].iter().map(|row| row.iter().map(|&(seed, w)| w * z[seed]).sum()).collect()
            }
            Self::Circulant { root } => Convolution::new(root).apply(steps, z),
            Self::Scaled { inner, factors } => {
                inner.apply(steps, z).iter().zip(factors).map(|(x, f)| x * f).collect()
            }
            Self::Restarted { inner, period } => restarted(inner, *period, steps, z),
        }
    }
}

/// Returns the maximum, over steps, of the number of seeds that were used before the step and are used again
/// at it or later.
fn most_awaited(rows: &[Vec<(usize, f64)>]) -> usize {
    let seeds = rows.iter().flatten().map(|&(seed, _)| seed + 1).max().unwrap_or(0);
    let mut last_use = vec![0; seeds];
    for (t, row) in rows.iter().enumerate() {
        row.iter().for_each(|&(seed, _)| last_use[seed] = t);
    }
    let (mut awaited, mut most) = (0, 0);
    let mut known = vec![false; seeds];
    let mut released = vec![0; rows.len()];
    for (t, row) in rows.iter().enumerate() {
        most = most.max(awaited);
        for &(seed, _) in row {
            if !std::mem::replace(&mut known[seed], true) && last_use[seed] > t {
                awaited += 1;
                released[last_use[seed]] += 1;
            }
        }
        awaited -= released[t];
    }
    most
}

fn restarted(inner: &Recursion, period: usize, steps: usize, z: &[f64]) -> Vec<f64> {
    let seeds = inner.seeds(period);
    (0..steps)
        .step_by(period)
        .enumerate()
        .flat_map(|(run, start)| {
            let (length, z) = (period.min(steps - start), &z[run * seeds..]);
            // A unit seed has an effect in one period only: the output of all other periods is 0.
            let silent = z[..inner.seeds(length)].iter().all(|&x| x == 0.0);
            if silent { vec![0.0; length] } else { inner.apply(length, z) }
        })
        .collect()
}

fn banded(bands: usize, rows: &[f64], z: &[f64]) -> Vec<f64> {
    let mut out: Vec<f64> = Vec::with_capacity(z.len());
    for (z_t, row) in z.iter().zip(rows.chunks_exact(bands)) {
        let past: f64 = row[1..].iter().zip(out.iter().rev()).map(|(c, x)| c * x).sum();
        out.push((z_t - past) / row[0]);
    }
    out
}

fn moving_average(taps: &[f64], z: &[f64]) -> Vec<f64> {
    (0..z.len()).map(|t| taps.iter().zip(z[..=t].iter().rev()).map(|(w, z)| w * z).sum()).collect()
}

fn auto_regressive(taps: &[f64], z: &[f64]) -> Vec<f64> {
    let mut out: Vec<f64> = Vec::with_capacity(z.len());
    for &z_t in z {
        let past: f64 = taps[1..].iter().zip(out.iter().rev()).map(|(c, x)| c * x).sum();
        out.push((z_t - past) / taps[0]);
    }
    out
}

fn blt(scale: &[f64], decay: &[f64], z: &[f64]) -> Vec<f64> {
    let mut buffers = vec![0.0; scale.len()];
    z.iter()
        .map(|&z_t| {
            let out = z_t - scale.iter().zip(&buffers).map(|(a, m)| a * m).sum::<f64>();
            for (m, lambda) in buffers.iter_mut().zip(decay) {
                *m = lambda * *m + out;
            }
            out
        })
        .collect()
}

fn rational(gain: &[f64], feedback: &[f64], z: &[f64]) -> Vec<f64> {
    let mut filter = RunningSums::new(feedback);
    z.iter()
        .map(|&z_t| {
            let out = z_t - dot(gain, filter.sums());
            filter.push(out);
            out
        })
        .collect()
}
