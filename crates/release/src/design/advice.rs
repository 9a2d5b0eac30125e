//! Bounds on the periods and rows of users, from a public guess of how often users come: the rows that the
//! bounds leave out, and the noise that they need.
//!
//! The guess is the median and the 95% quantile (a heavy user) of the number X of periods in which a user
//! comes, and of the number Y of a user's rows in such a period. X and Y are modelled as independent
//! log-normal variables of at least 1, with X at most the number of periods. Bounds K and R leave out this
//! fraction of the rows:
//!
//! ```text
//! 1 - E min(X, K) E min(Y, R) / (E X E Y),
//! ```
//!
//! the bias of a running count after all periods. Noise is in proportion to R and grows with K. The advice
//! is a function of settings and guess: no data are read.

use antinoise_input::{InvalidParameter, at_least};
use serde::Serialize;

use crate::design::chain::Chain;
use crate::design::plan::{Progress, of_part};
use crate::{Query, Result, Settings};

/// A public guess of the users of a release; it must not depend on their data.
///
/// ```
/// use antinoise_release::{Guess, Settings, Unit};
/// let settings = Settings { epsilon: 2.0, ..Settings::new(vec!["all".into()], 30, Unit::User) };
/// let guess = Guess { users: 2000, periods: [3.0, 15.0], rows: [1.0, 2.0], periods_until: 30 };
/// let advice = guess.advise(&settings, None)?;
/// let best = advice.iter().min_by(|one, other| one.error.total_cmp(&other.error)).unwrap();
/// assert!(best.max_periods > 3 && best.left_out < advice[0].left_out);
/// # Ok::<(), antinoise_release::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Guess {
    /// Number of users.
    pub users: usize,
    /// Number of periods in which a user comes: the median and the 95% quantile (a heavy user).
    pub periods: [f64; 2],
    /// Number of rows of a user in a period in which the user comes: the median and the 95% quantile.
    pub rows: [f64; 2],
    /// Number of periods after which bias and noise are compared.
    pub periods_until: usize,
}

/// Bounds, and the error that they cause in the running count of a key with the average number of rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    /// Maximum number of periods in which a user is counted.
    pub max_periods: usize,
    /// Maximum number of rows of a user that are counted in a period.
    pub max_rows: usize,
    /// The fraction of the rows that is left out.
    pub left_out: f64,
    /// Number of rows that are missing in the key's count.
    pub bias: f64,
    /// The largest standard deviation of the noise.
    pub noise: f64,
    /// The error: the square root of bias^2 + noise^2.
    pub error: f64,
}

/// The 95% quantile of a standard normal number.
const QUANTILE_95: f64 = 1.644_853_626_951_472_7;
/// The grid on which means of log-normal numbers are computed, in standard deviations of the logarithm.
const DEVIATIONS: f64 = 6.0;
const POINTS_PER_DEVIATION: f64 = 100.0;
/// Maximum number of bounds that are compared, on periods per user and on rows per user and period.
const COMPARED: usize = 6;

impl Guess {
    /// The errors of several bounds on periods, in increasing order of the bounds, each with the best bound
    /// on rows or, if given, with `max_rows`. They are those of a release that publishes counts and the
    /// numbers of users at their bounds.
    ///
    /// # Errors
    /// If a number is out of range, or no mechanism can be made for the settings.
    pub fn advise(&self, settings: &Settings, max_rows: Option<usize>) -> Result<Vec<Advice>> {
        self.advise_with(settings, max_rows, &|_, _| ())
    }

    /// As [`Guess::advise`]. `progress` is called with the work done and expected so far, in a common unit.
    ///
    /// # Errors
    /// As [`Guess::advise`].
    pub fn advise_with(
        &self,
        settings: &Settings,
        max_rows: Option<usize>,
        progress: &(dyn Fn(f64, f64) + Sync),
    ) -> Result<Vec<Advice>> {
        self.check()?;
        let most = self.periods_until;
        let (periods, rows) = (log_normal(self.periods, most as f64), log_normal(self.rows, f64::INFINITY));
        let total = self.users as f64 * mean(&periods, f64::INFINITY) * mean(&rows, f64::INFINITY);
        let of_key = total / settings.keys.len() as f64;
        let kept = |max_periods: usize, max_rows: usize| {
            let of_periods = mean(&periods, max_periods as f64) / mean(&periods, f64::INFINITY);
            of_periods * mean(&rows, max_rows as f64) / mean(&rows, f64::INFINITY)
        };
        let bounds = match max_rows {
            Some(rows) => vec![rows],
            None => between(self.rows[0], 2.0 * self.rows[1], usize::MAX),
        };
        let mut advice = Vec::new();
        let compared = between(self.periods[0], 2.0 * self.periods[1], most);
        for (part, &max_periods) in compared.iter().enumerate() {
            let progress = of_part(progress, part, compared.len());
            let of_one_row = noise(settings, max_periods, most, &progress)?;
            let of_rows = bounds.iter().map(|&max_rows| {
                let left_out = 1.0 - kept(max_periods, max_rows);
                let (bias, noise) = (left_out * of_key, of_one_row * max_rows as f64);
                Advice { max_periods, max_rows, left_out, bias, noise, error: bias.hypot(noise) }
            });
            advice.extend(of_rows.min_by(|one, other| one.error.total_cmp(&other.error)));
        }
        Ok(advice)
    }

    fn check(&self) -> Result<()> {
        at_least("users", self.users, 1)?;
        for (name, [median, heavy]) in [("periods-per-user", self.periods), ("rows-per-user", self.rows)] {
            if !(1.0 <= median && median <= heavy && heavy.is_finite()) {
                let must_be = "MEDIAN,HEAVY from 1 on, in increasing order";
                return Err(InvalidParameter::new(name, format!("{median},{heavy}"), must_be).into());
            }
        }
        Ok(())
    }
}

/// The largest standard deviation, up to period `most`, of running counts with at most one row of a user in a
/// period.
fn noise(settings: &Settings, max_periods: usize, most: usize, progress: &Progress<'_>) -> Result<f64> {
    let queries = vec![(Query::Counts, 1.0)];
    let settings = Settings { max_periods, max_rows: 1, queries, ..settings.clone() };
    let settings = match settings.segments {
        Some(_) => settings.open_ended(),
        None => settings,
    };
    let chain = Chain::new(&settings.with_left_out(), progress)?;
    chain.error(&Query::Counts, most - 1)
}

/// At most `most` whole numbers from `low` to `high`, approximately in geometric progression.
fn between(low: f64, high: f64, most: usize) -> Vec<usize> {
    let steps = (COMPARED - 1) as f64;
    let number = |step: usize| low * (high / low).powf(step as f64 / steps);
    let mut numbers: Vec<usize> =
        (0..COMPARED).map(|step| (number(step).ceil() as usize).clamp(1, most)).collect();
    numbers.dedup();
    numbers
}

/// A log-normal variable with this median and 95% quantile, clamped to \[1, `most`\]: values and their
/// weights.
fn log_normal([median, heavy]: [f64; 2], most: f64) -> Vec<(f64, f64)> {
    let spread = (heavy / median).ln() / QUANTILE_95;
    let at = |i: i32| f64::from(i) / POINTS_PER_DEVIATION;
    let ends = (DEVIATIONS * POINTS_PER_DEVIATION) as i32;
    (-ends..=ends)
        .map(|i| ((median * (spread * at(i)).exp()).clamp(1.0, most), (-0.5 * at(i).powi(2)).exp()))
        .collect()
}

/// The mean of the weighted `values`, each clamped to `most`.
fn mean(values: &[(f64, f64)], most: f64) -> f64 {
    let weights: f64 = values.iter().map(|(_, weight)| weight).sum();
    values.iter().map(|(value, weight)| value.min(most) * weight).sum::<f64>() / weights
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unit;

    #[test]
    fn a_log_normal_number_has_its_median_and_mean() {
        let values = log_normal([20.0, 200.0], f64::INFINITY);
        let below = |x: f64| -> f64 {
            let weights = |most: f64| {
                values.iter().filter(|(value, _)| *value <= most).map(|(_, weight)| weight).sum::<f64>()
            };
            weights(x) / weights(f64::INFINITY)
        };
        assert!((below(20.0) - 0.5).abs() < 0.01 && (below(200.0) - 0.95).abs() < 0.01);
        // Its mean is the median times exp(spread^2 / 2), where hardly any value is below 1.
        let spread = 10f64.ln() / QUANTILE_95;
        assert!((mean(&values, f64::INFINITY) / (20.0 * (0.5 * spread * spread).exp()) - 1.0).abs() < 0.01);
    }

    /// Bias falls and noise grows with the bound of periods; heavier users need larger bounds; a given bound
    /// of rows is kept.
    #[test]
    fn advice_weighs_bias_against_noise() {
        let settings =
            Settings { epsilon: 2.0, ..Settings::new(vec!["a".into(), "b".into()], 40, Unit::User) };
        let guess = Guess { users: 1000, periods: [3.0, 10.0], rows: [1.0, 3.0], periods_until: 40 };
        let best = |advice: &[Advice]| -> Advice {
            advice.iter().min_by(|one, other| one.error.total_cmp(&other.error)).unwrap().clone()
        };
        let advice = guess.advise(&settings, None).unwrap();
        assert!(advice.len() >= 4);
        for pair in advice.windows(2) {
            assert!(pair[0].max_periods < pair[1].max_periods, "{pair:?}");
            assert!(pair[0].noise / (pair[0].max_rows as f64) < pair[1].noise / pair[1].max_rows as f64);
        }
        let heavier = Guess { periods: [6.0, 30.0], ..guess }.advise(&settings, None).unwrap();
        assert!(best(&heavier).max_periods > best(&advice).max_periods, "{heavier:?} {advice:?}");
        let given = guess.advise(&settings, Some(2)).unwrap();
        assert!(given.iter().all(|advice| advice.max_rows == 2));
        assert!(
            given.windows(2).all(|pair| pair[0].left_out > pair[1].left_out && pair[0].noise < pair[1].noise)
        );
        // More users: the bias grows with their number, the noise does not.
        let more = Guess { users: 100_000, ..guess }.advise(&settings, None).unwrap();
        assert!(best(&more).left_out < best(&advice).left_out);
        for wrong in [[3.0, 2.0], [0.5, 2.0], [1.0, f64::INFINITY], [f64::NAN, 2.0]] {
            assert!(Guess { periods: wrong, ..guess }.advise(&settings, None).is_err());
        }
    }
}
