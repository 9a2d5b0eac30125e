//! Bounds on the standard deviation of each step's noise: the norms of the rows of C^-1.

use super::varying::deviations;
use crate::Recursion;
use crate::circulant::circulant_entry;

/// Bounds on the standard deviation of correlated noise, for seed noise of standard deviation 1, as (lower,
/// upper) pairs over all steps.
///
/// ```
/// use antinoise_mechanism::{Recursion, RowNorms};
/// let differences = Box::new(Recursion::MovingAverage { taps: vec![4.0, -3.0] });
/// let recursion = Recursion::Scaled { inner: differences, factors: vec![0.5, 2.0] };
/// let norms = RowNorms::new(&recursion, 2);
/// assert_eq!((norms.inner, norms.factors), ((4.0, 5.0), (0.5, 2.0)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct RowNorms {
    /// Bounds on the row norms of C^-1 without the factors of scaled recursions: on the standard deviation of
    /// the innermost recursion's noise.
    pub inner: (f64, f64),
    /// Bounds on the product of the factors that scale a step's noise; 1 if nothing is scaled.
    pub factors: (f64, f64),
}

impl RowNorms {
    /// Computes the bounds for `steps` steps of `recursion`, up to rounding. The norm of each row is between
    /// the product of the two lower bounds and the product of the two upper bounds.
    ///
    /// # Panics
    /// When `recursion` has fewer factors or rows than `steps`, or no bands.
    pub fn new(recursion: &Recursion, steps: usize) -> Self {
        let one = (1.0, 1.0);
        let inner = match recursion {
            Recursion::Scaled { inner, factors } => {
                let found = Self::new(inner, steps);
                return Self { factors: scaled(found.factors, &factors[..steps]), ..found };
            }
            Recursion::Restarted { inner, period } => return Self::new(inner, steps.min(*period)),
            Recursion::Independent => one,
            Recursion::MovingAverage { taps } => {
                (taps[0].abs(), norm(taps[..taps.len().min(steps)].iter().copied()))
            }
            Recursion::AutoRegressive { .. } | Recursion::Blt { .. } | Recursion::Rational { .. } => {
                let mut unit = vec![0.0; steps];
                unit[0] = 1.0;
                let response = recursion.apply(steps, &unit);
                (response[0].abs(), norm(response))
            }
            Recursion::VaryingBlt { decay, reads, writes } => {
                extremes(deviations(decay, reads, writes, steps).into_iter().map(|(noise, _)| noise))
            }
            Recursion::Banded { bands, rows } => extremes(banded(*bands, &rows[..steps * bands])),
            Recursion::Circulant { root } => {
                // All rows except the first hold the same entries, in another order.
                let row = |t: usize| norm((0..root.len()).map(|seed| circulant_entry(root, t, seed)));
                extremes((0..steps.min(2)).map(row))
            }
            Recursion::SeedCombination { rows } => {
                extremes(rows[..steps].iter().map(|row| norm(row.iter().map(|&(_, weight)| weight))))
            }
        };
        Self { inner, factors: one }
    }
}

impl Recursion {
    /// Returns a lower and an upper bound, over all steps t, on |(C^-1)_tt|, the weight of a step's fresh
    /// seed. The bounds are attained, except for scaled recursions whose inner weights differ by step.
    /// Returns `None` for a sum of seeds that is not in the form of [`Recursion::with_one_seed_per_step`],
    /// whose steps need not have a fresh seed.
    ///
    /// ```
    /// use antinoise_mechanism::Recursion;
    /// let recursion = Recursion::AutoRegressive { taps: vec![2.0, 1.0] };
    /// assert_eq!(recursion.fresh_weight_bounds(3), Some((0.5, 0.5)));
    /// ```
    pub fn fresh_weight_bounds(&self, steps: usize) -> Option<(f64, f64)> {
        let same = |weight: f64| (weight.abs(), weight.abs());
        Some(match self {
            Self::Independent | Self::Blt { .. } | Self::VaryingBlt { .. } | Self::Rational { .. } => {
                same(1.0)
            }
            Self::MovingAverage { taps } => same(taps[0]),
            Self::AutoRegressive { taps } => same(taps[0].recip()),
            Self::Banded { bands, rows } => {
                extremes(rows.chunks_exact(*bands).take(steps).map(|row| row[0].abs().recip()))
            }
            Self::SeedCombination { rows } => {
                let fresh = |(t, row): (usize, &Vec<(usize, f64)>)| match row.last() {
                    Some(&(seed, weight)) if seed == t => weight.abs(),
                    _ => f64::NAN,
                };
                let found = extremes(rows[..steps].iter().enumerate().map(fresh));
                return found.0.is_finite().then_some(found);
            }
            Self::Circulant { .. } => return None,
            Self::Scaled { inner, factors } => scaled(inner.fresh_weight_bounds(steps)?, &factors[..steps]),
            Self::Restarted { inner, period } => return inner.fresh_weight_bounds(steps.min(*period)),
        })
    }
}

/// Returns the standard deviation of each step's noise for a banded C, from the covariances of the noise of
/// up to `bands` consecutive steps. O(bands^2) time a step.
fn banded(bands: usize, rows: &[f64]) -> Vec<f64> {
    let past = bands - 1;
    // Covariances of the last `past` steps: that of steps s and r is at (s mod past, r mod past).
    let mut covariance = vec![0.0; past * past];
    let mut deviations = Vec::with_capacity(rows.len() / bands);
    for (t, row) in rows.chunks_exact(bands).enumerate() {
        let lags = 1..bands.min(t + 1);
        let place = |lag: usize| (t - lag) % past;
        let with_past = |j: usize, covariance: &[f64]| -> f64 {
            -lags.clone().map(|lag| row[lag] / row[0] * covariance[place(lag) * past + j]).sum::<f64>()
        };
        let of_now: Vec<(usize, f64)> =
            lags.clone().map(|lag| (place(lag), with_past(place(lag), &covariance))).collect();
        let fresh = (1.0 / row[0]).powi(2);
        let seen = -lags.clone().zip(&of_now).map(|(lag, (_, x))| row[lag] / row[0] * x).sum::<f64>();
        // `f64::max` would ignore NaN.
        let variance = if seen < 0.0 { fresh } else { fresh + seen };
        deviations.push(variance.sqrt());
        if past > 0 {
            let now = t % past;
            for (j, x) in of_now {
                (covariance[now * past + j], covariance[j * past + now]) = (x, x);
            }
            covariance[now * past + now] = variance;
        }
    }
    deviations
}

fn norm(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// Returns the minimum and the maximum of the values; both are NaN if a value is NaN.
fn extremes(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    values.into_iter().fold((f64::INFINITY, 0.0), |(least, most): (f64, f64), x| {
        if least.is_nan() || x.is_nan() { (f64::NAN, f64::NAN) } else { (least.min(x), most.max(x)) }
    })
}

fn scaled((least, most): (f64, f64), factors: &[f64]) -> (f64, f64) {
    let (smallest, largest) = extremes(factors.iter().map(|factor| factor.abs()));
    (least * smallest, most * largest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The norm of every row, from the noise of unit seeds, lies within the bounds.
    #[test]
    fn the_bounds_hold_every_row_and_are_reached() {
        const STEPS: usize = 7;
        let rows = (0..STEPS * 2).map(|i| 1.0 / (1 + i) as f64).collect();
        let blt = Recursion::Blt { scale: vec![0.3, -0.1], decay: vec![0.9, 0.4] };
        let factors = (1..=STEPS).map(|t| 1.0 / t as f64).collect();
        let listed = vec![vec![(0, 1.0)], vec![(0, -2.0), (1, 1.0)], vec![(1, 0.5), (2, 1.0)]];
        let cases = [
            (Recursion::Independent, STEPS, true),
            (Recursion::MovingAverage { taps: vec![1.5, -0.4, 0.2] }, STEPS, true),
            (Recursion::AutoRegressive { taps: vec![2.0, 0.7, -0.3, 0.1] }, STEPS, true),
            (blt.clone(), STEPS, true),
            (Recursion::Rational { gain: vec![0.3, -0.1], feedback: vec![0.9, 0.4] }, STEPS, true),
            (Recursion::Banded { bands: 2, rows }, STEPS, true),
            (Recursion::SeedCombination { rows: listed }, 3, true),
            (Recursion::Scaled { inner: Box::new(blt.clone()), factors }, STEPS, false),
            (Recursion::Restarted { inner: Box::new(blt), period: 3 }, STEPS, true),
        ];
        let mut bounded = 0;
        for (recursion, steps, reached) in cases {
            let seeds = recursion.seeds(steps);
            let mut squares = vec![0.0; steps];
            for seed in 0..seeds {
                let unit: Vec<f64> = (0..seeds).map(|s| f64::from(u8::from(s == seed))).collect();
                let column = recursion.apply(steps, &unit);
                squares.iter_mut().zip(&column).for_each(|(sum, x)| *sum += x * x);
                if let Some((least, most)) = recursion.fresh_weight_bounds(steps) {
                    bounded += 1;
                    let fresh = column[seed].abs();
                    assert!(least <= fresh && fresh <= most, "{recursion:?}: {least} {fresh} {most}");
                }
            }
            let RowNorms { inner, factors } = RowNorms::new(&recursion, steps);
            let (least, most) = (inner.0 * factors.0, inner.1 * factors.1);
            let (smallest, largest) = extremes(squares.into_iter().map(f64::sqrt));
            assert!(least <= smallest * (1.0 + 1e-14) && largest <= most * (1.0 + 1e-14), "{recursion:?}");
            assert!(!reached || (most / largest - 1.0).abs() < 1e-14, "{recursion:?}: {most} {largest}");
        }
        assert!(bounded >= 3 * STEPS, "{bounded} fresh weights have bounds");
    }

    /// Covariances of neighbouring rows give the norms that all columns add up to, over many steps.
    #[test]
    fn banded_rows_have_the_norms_that_their_columns_add_up_to() {
        for (bands, steps) in [(1, 5), (2, 300), (5, 3), (7, 300), (40, 300)] {
            let wave = |i: usize| (1.0 + 0.3 * (i as f64).sin()) / (1.0 + (i % bands) as f64).powf(0.7);
            let rows: Vec<f64> = (0..steps * bands).map(wave).collect();
            let recursion = Recursion::Banded { bands, rows: rows.clone() };
            let mut squares = vec![0.0; steps];
            for seed in 0..steps {
                let unit: Vec<f64> = (0..steps).map(|s| f64::from(u8::from(s == seed))).collect();
                let column = recursion.apply(steps, &unit);
                squares.iter_mut().zip(&column).for_each(|(sum, x)| *sum += x * x);
            }
            for (t, (found, square)) in banded(bands, &rows).into_iter().zip(squares).enumerate() {
                assert!((found / square.sqrt() - 1.0).abs() < 1e-10, "{bands} bands, step {t}: {found}");
            }
        }
    }
}
