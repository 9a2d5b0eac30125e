//! How the coefficients of a Toeplitz class are chosen.

use std::fmt;

use antinoise_input::{InvalidParameter, between};
use serde::{Deserialize, Serialize};

use super::toeplitz::{optimized, square_root_of};
use super::{BandedToeplitz, Problem, Strategy};
use crate::optimize::toeplitz::minimize_averaged;
use crate::optimize::{Solution, Status};
use crate::{Participation, Result};

/// Where coefficients come from; the classes that have none of their own take the default alone.
///
/// ```
/// use antinoise_mechanism::strategy::{Form, StrategySpec};
/// let spec: StrategySpec = "banded-toeplitz:400+tapered:200".parse()?;
/// assert_eq!(spec.form, Form::Tapered { from: 200 });
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Of least loss.
    #[default]
    Optimized,
    /// Those of sqrt(A), truncated (monograph, Theorem 2.5).
    SquareRoot,
    /// Those of sqrt(A) times (1 - damping)^t: for strongly convex problems, whose gradients cancel noise themselves
    /// (monograph, Equation 3.27).
    Damped {
        /// nu, in (0, 1).
        damping: f64,
    },
    /// 1 / i + c for i = 1, 2, ..., with the c >= 0 of least loss: no gradients (BandMF, Appendix J).
    Harmonic,
    /// Optimised for participations as far apart as there are bands; then coefficient i, from 1, times
    /// (bands - i) / (bands - from) for i >= from: for separations that may be as small as `from` (BandMF, Appendix H).
    Tapered {
        /// b_0, at least 1 and below the bands.
        from: usize,
    },
    /// Of least mean squared loss over the separations from `from` to the number of bands, at most 33 of them evenly
    /// spaced: the principled form of `Tapered` that BandMF, Appendix H, leaves for later.
    Averaged {
        /// b_0, at least 1 and below the bands.
        from: usize,
    },
}

/// Most separations whose squared loss is averaged.
const MOST_SEPARATIONS: usize = 33;

impl Form {
    /// The first `bands` coefficients.
    pub(super) fn coefficients(self, problem: &Problem, bands: usize) -> Result<Solution<Vec<f64>>> {
        let root = || square_root_of(&problem.workload, problem.steps, bands);
        match self {
            Self::Optimized => optimized(problem, bands),
            Self::SquareRoot => Ok(Solution::closed_form(root()?)),
            Self::Damped { damping } => {
                let keep = 1.0 - open_unit("damped", damping)?;
                let damped = |(t, c): (usize, f64)| c * keep.powi(i32::try_from(t).unwrap_or(i32::MAX));
                Ok(Solution::closed_form(root()?.into_iter().enumerate().map(damped).collect()))
            }
            Self::Harmonic => harmonic(problem, bands),
            Self::Tapered { from } => {
                between("tapered", from, 1, bands.saturating_sub(1), "bands - 1")?;
                let found = optimized(&separated(problem, bands), bands)?;
                Ok(found.map(|c| taper(c, from)))
            }
            Self::Averaged { from } => {
                between("averaged", from, 1, bands.saturating_sub(1), "bands - 1")?;
                let start = taper(optimized(&separated(problem, bands), bands)?.value, from);
                let count = (bands - from + 1).min(MOST_SEPARATIONS);
                let at = |i: usize| from + i * (bands - from) / (count - 1);
                minimize_averaged(&start, &(0..count).map(at).collect::<Vec<_>>(), problem)
            }
        }
    }

    /// The name that a spec's text adds; none for the default.
    pub(super) fn name(self) -> Option<String> {
        match self {
            Self::Optimized => None,
            Self::SquareRoot => Some("square-root".into()),
            Self::Damped { damping } => Some(format!("damped:{damping}")),
            Self::Harmonic => Some("harmonic".into()),
            Self::Tapered { from } => Some(format!("tapered:{from}")),
            Self::Averaged { from } => Some(format!("averaged:{from}")),
        }
    }

    /// The form of that name.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (name, argument) = text.split_once(':').unwrap_or((text, ""));
        let from = || argument.parse().ok();
        Some(match (name, argument) {
            ("square-root", "") => Self::SquareRoot,
            ("harmonic", "") => Self::Harmonic,
            ("damped", _) => Self::Damped { damping: argument.parse().ok()? },
            ("tapered", _) => Self::Tapered { from: from()? },
            ("averaged", _) => Self::Averaged { from: from()? },
            _ => return None,
        })
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name().as_deref().unwrap_or("optimized"))
    }
}

fn open_unit(name: &str, value: f64) -> Result<f64> {
    if value > 0.0 && value < 1.0 {
        return Ok(value);
    }
    Err(InvalidParameter::new(name, format!("{value:?}"), "above 0 and below 1").into())
}

/// The problem with as many participations, at least `bands` apart.
fn separated(problem: &Problem, bands: usize) -> Problem {
    let most = problem.steps.div_ceil(bands);
    let participation = match problem.participation.separation(problem.steps).1.min(most) {
        0 | 1 => Participation::Single,
        max_participations => Participation::MinSep { min_sep: bands, max_participations },
    };
    Problem { participation, ..problem.clone() }
}

/// Coefficient i, from 1, times (bands - i) / (bands - from) for i >= from.
fn taper(mut c: Vec<f64>, from: usize) -> Vec<f64> {
    let bands = c.len();
    for (i, c) in c.iter_mut().enumerate().skip(from - 1) {
        *c *= (bands - 1 - i) as f64 / (bands - from) as f64;
    }
    c
}

/// c of the first look lie between these, this many of them.
const FIRST_LOOK: (f64, f64, usize) = (1e-6, 1e4, 41);
/// Halvings of the range of ln c by golden sections: 0.62^30 of a range of 1.
const SECTIONS: usize = 30;

/// 1 / i + c with the best c >= 0: a look at c = 0 and at many others, then golden sections about the best.
pub(super) fn harmonic(problem: &Problem, bands: usize) -> Result<Solution<Vec<f64>>> {
    let of = |c: f64| -> Vec<f64> { (1..=bands).map(|i| 1.0 / i as f64 + c).collect() };
    let mut evaluations = 0;
    let mut loss = |c: f64| -> f64 {
        evaluations += 1;
        loss_of(problem, of(c)).unwrap_or(f64::INFINITY)
    };
    let (first, last, count) = FIRST_LOOK;
    let step = (last / first).ln() / (count - 1) as f64;
    let at = |place: f64| first * (step * place).exp();
    let mut best = (0.0, loss(0.0));
    let mut place = None;
    for i in 0..count {
        let found = loss(at(i as f64));
        if found < best.1 {
            (best, place) = ((at(i as f64), found), Some(i as f64));
        }
    }
    if let Some(place) = place {
        let golden = 0.5 * (5f64.sqrt() - 1.0);
        let (mut low, mut high) = (place - 1.0, place + 1.0);
        let inner = |low: f64, high: f64| (high - golden * (high - low), low + golden * (high - low));
        let (mut left, mut right) = inner(low, high);
        let (mut of_left, mut of_right) = (loss(at(left)), loss(at(right)));
        for _ in 0..SECTIONS {
            if of_left < of_right {
                (high, right, of_right) = (right, left, of_left);
                left = inner(low, high).0;
                of_left = loss(at(left));
            } else {
                (low, left, of_left) = (left, right, of_right);
                right = inner(low, high).1;
                of_right = loss(at(right));
            }
        }
        for (place, found) in [(left, of_left), (right, of_right)] {
            if found < best.1 {
                best = (at(place), found);
            }
        }
    }
    // An error of the strategy itself, such as a schema that does not fit, is told and not searched around.
    loss_of(problem, of(best.0))?;
    Ok(Solution {
        value: of(best.0),
        status: Status::Converged,
        gap: None,
        iterations: evaluations,
        improved: best.0 > 0.0,
    })
}

fn loss_of(problem: &Problem, coefficients: Vec<f64>) -> Result<f64> {
    let strategy = BandedToeplitz::new(problem.steps, coefficients)?;
    let error = strategy.error(&problem.workload)?.of(problem.objective);
    Ok(error * strategy.sensitivity(&problem.participation)?.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taper_ends_at_zero_and_leaves_the_head() {
        assert_eq!(taper(vec![1.0; 5], 2), [1.0, 1.0, 2.0 / 3.0, 1.0 / 3.0, 0.0]);
        assert_eq!(taper(vec![1.0; 2], 1), [1.0, 0.0]);
    }
}
