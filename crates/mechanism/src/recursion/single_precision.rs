//! The recursion with coefficients in single precision, as noise streams store them.

use crate::Recursion;

impl Recursion {
    /// Returns the recursion with the coefficients by which a noise stream in single precision really
    /// multiplies: each is rounded once, when the stream's kernel is built. So the C of this recursion is the
    /// rounded strategy.
    ///
    /// For a rational C the kernel multiplies by the coefficients as they are. For a banded C it multiplies
    /// by 1 / C\[t, t\] and -C\[t, s\] / C\[t, t\]; for a BLT by alpha and 1 - lambda. Factors of scaled
    /// recursions are not rounded here: a stream rounds their product with the standard deviation of the
    /// noise ([`crate::rounded::OUTPUT_ROUNDING`]).
    ///
    /// ```
    /// use antinoise_mechanism::Recursion;
    /// let momentum = Recursion::MovingAverage { taps: vec![1.0, -1.95, 0.95] };
    /// let taps = vec![1.0, -1.9500000476837158, 0.949999988079071];
    /// assert_eq!(momentum.in_single_precision(), Recursion::MovingAverage { taps });
    /// ```
    #[must_use]
    pub fn in_single_precision(&self) -> Self {
        match self {
            Self::Independent => Self::Independent,
            Self::MovingAverage { taps } => {
                Self::MovingAverage { taps: taps.iter().copied().map(rounded).collect() }
            }
            Self::AutoRegressive { taps } => Self::AutoRegressive { taps: rounded_row(taps) },
            Self::Blt { scale, decay } => {
                Self::Blt { scale: scale.iter().copied().map(rounded).collect(), decay: rounded_decay(decay) }
            }
            Self::VaryingBlt { decay, reads, writes } => Self::VaryingBlt {
                decay: rounded_decay(decay),
                reads: reads.iter().copied().map(rounded).collect(),
                writes: writes.iter().copied().map(rounded).collect(),
            },
            Self::Rational { gain, feedback } => Self::Rational {
                gain: gain.iter().copied().map(rounded).collect(),
                feedback: feedback.iter().copied().map(rounded).collect(),
            },
            Self::Banded { bands, rows } => {
                let rows = rows.chunks((*bands).max(1)).enumerate();
                let rows = rows.flat_map(|(t, row)| {
                    rounded_row(&row[..row.len().min(t + 1)])
                        .into_iter()
                        .chain(std::iter::repeat_n(0.0, row.len().saturating_sub(t + 1)))
                });
                Self::Banded { bands: *bands, rows: rows.collect() }
            }
            // Fourier transforms are computed in double precision.
            Self::Circulant { root } => Self::Circulant { root: root.clone() },
            Self::SeedCombination { rows } => {
                let row = |row: &Vec<(usize, f64)>| row.iter().map(|&(seed, w)| (seed, rounded(w))).collect();
                Self::SeedCombination { rows: rows.iter().map(row).collect() }
            }
            Self::Scaled { inner, factors } => {
                Self::Scaled { inner: Box::new(inner.in_single_precision()), factors: factors.clone() }
            }
            Self::Restarted { inner, period } => {
                Self::Restarted { inner: Box::new(inner.in_single_precision()), period: *period }
            }
        }
    }
}

fn rounded(x: f64) -> f64 {
    f64::from(x as f32)
}

/// Rounds 1 - lambda. 1 - x is exact for the rounded x: values of 1 - lambda below 2^-29 are not changed by
/// rounding.
fn rounded_decay(decay: &[f64]) -> Vec<f64> {
    decay.iter().map(|lambda| 1.0 - rounded(1.0 - lambda)).collect()
}

/// Returns the row c_0, c_1, ... of C for which 1 / c_0 and -c_s / c_0 are those of `row`, rounded to single
/// precision.
fn rounded_row(row: &[f64]) -> Vec<f64> {
    let Some((&diagonal, others)) = row.split_first() else { return Vec::new() };
    let fresh = rounded(1.0 / diagonal);
    let other = |c: &f64| -rounded(-c / diagonal) / fresh;
    std::iter::once(1.0 / fresh).chain(others.iter().map(other)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounding is idempotent: a kernel that rounds again multiplies by the same numbers.
    #[test]
    fn rounding_twice_is_rounding_once() {
        let many: Vec<f64> = (1..200).map(|i| 1.0 / (1.0 + 0.37 * f64::from(i)).powi(i % 3 + 1)).collect();
        let near_one: Vec<f64> = (1..200).map(|i| 1.0 - 0.7f64.powi(i)).collect();
        let blt = Recursion::Blt { scale: many.clone(), decay: near_one }.in_single_precision();
        assert_eq!(blt.in_single_precision(), blt);
        let Recursion::Blt { decay, .. } = &blt else { unreachable!() };
        assert!(decay.iter().all(|lambda| 1.0 - lambda == rounded(1.0 - lambda)));
        let weights = |row: &[f64]| -> Vec<f32> {
            std::iter::once(1.0 / row[0])
                .chain(row[1..].iter().map(|c| -c / row[0]))
                .map(|w| w as f32)
                .collect()
        };
        for first in [1.0, 0.7, 3.1, -1e-3, 1e20] {
            let row: Vec<f64> = std::iter::once(first).chain(many.iter().copied()).collect();
            assert_eq!(weights(&row), weights(&rounded_row(&row)), "{first}");
        }
    }
}
