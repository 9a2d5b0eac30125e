//! The loss of a banded Toeplitz C^-1 as a function of its first column p. The sensitivity has kinks, which
//! are smoothed.
//!
//! The coefficients of C, the power series c = 1 / p, may have any signs, so that the sensitivity is bounded
//! by that of |c| or of its smallest non-increasing majorant. |x| is smoothed to sqrt(x^2 + e^2) and max(x,
//! y) to (x + y + sqrt((x - y)^2 + e^2)) / 2, with smaller e in later stages.

use super::squared_error::SquaredError;
use super::sums::Sums;
use crate::Participation;
use crate::numeric::series_division::Quotient;
use crate::numeric::vector::dot;
use crate::toeplitz::{correlate, divide, divide_transposed};

/// The loss of the C^-1 with first column p = (1, v_1, v_2, ...), as a function of v.
pub(super) struct InverseLoss<'a> {
    pub(super) steps: usize,
    pub(super) error: &'a SquaredError,
    pub(super) sums: &'a Sums,
    pub(super) magnitudes: SmoothMagnitudes,
}

/// The smooth replacement of |c| in the sensitivity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum SmoothMagnitudes {
    /// c itself, where signs do not matter.
    Signless,
    /// |c|, smoothed by e.
    Absolute(f64),
    /// The smallest non-increasing majorant of |c|, smoothed by e.
    Majorant(f64),
}

/// The smoothing parameter e of each stage, in units of c_0.
const SMOOTHING: [f64; 4] = [1e-2, 1e-4, 1e-6, 1e-9];

impl SmoothMagnitudes {
    /// Returns the replacement of |c| in each of the successive solves.
    pub(crate) fn stages(sums: &Sums, participation: &Participation) -> Vec<Self> {
        match participation {
            _ if sums.separation.max_participations == 1 => vec![Self::Signless],
            Participation::MinSep { .. } => SMOOTHING.map(Self::Majorant).to_vec(),
            Participation::Single
            | Participation::FullBatch
            | Participation::Cyclic { .. }
            | Participation::EachEpoch { .. }
            | Participation::Patterns { .. } => SMOOTHING.map(Self::Absolute).to_vec(),
        }
    }

    /// Returns the magnitudes m for the coefficients c.
    pub(crate) fn of(self, c: &[f64]) -> Vec<f64> {
        let smooth = |by: f64| c.iter().map(move |c| c.hypot(by));
        match self {
            Self::Signless => c.to_vec(),
            Self::Absolute(by) => smooth(by).collect(),
            Self::Majorant(by) => {
                let mut m: Vec<f64> = smooth(by).collect();
                for t in (1..m.len()).rev() {
                    m[t - 1] = 0.5 * (m[t - 1] + m[t] + (m[t - 1] - m[t]).hypot(by));
                }
                m
            }
        }
    }

    /// Maps `d`, the derivative in the smoothed magnitudes m, to the derivative in c.
    pub(crate) fn pulled_back(self, c: &[f64], m: &[f64], mut d: Vec<f64>) -> Vec<f64> {
        let by = match self {
            Self::Signless => return d,
            Self::Absolute(by) => by,
            Self::Majorant(by) => {
                for t in 0..d.len() - 1 {
                    let difference = c[t].hypot(by) - m[t + 1];
                    let slope = difference / difference.hypot(by);
                    d[t + 1] += 0.5 * (1.0 - slope) * d[t];
                    d[t] *= 0.5 * (1.0 + slope);
                }
                by
            }
        };
        d.iter_mut().zip(c).for_each(|(d, c)| *d *= c / c.hypot(by));
        d
    }
}

/// Number of terms of c that are computed and summed together.
const CHUNK: usize = 1024;

impl InverseLoss<'_> {
    /// Returns ln(sens^2 ||B||^2) and its gradient in v.
    pub(super) fn value_and_gradient(&self, v: &[f64]) -> (f64, Vec<f64>) {
        let p: Vec<f64> = std::iter::once(1.0).chain(v.iter().copied()).collect();
        let (sensitivity, through_c) = match self.magnitudes {
            SmoothMagnitudes::Signless if self.sums.is_norm() => norm_squared(&p, self.steps),
            _ => self.sensitivity(&p),
        };
        if !sensitivity.is_finite() {
            return (f64::INFINITY, vec![0.0; v.len()]);
        }
        let (error, dp) = self.error.of_inverse(&p);
        let slopes = dp[1..].iter().zip(&through_c[1..]);
        let gradient = slopes.map(|(de, ds)| de / error + ds / sensitivity).collect();
        (sensitivity.ln() + error.ln(), gradient)
    }

    /// Returns sens^2 and its gradient in p.
    fn sensitivity(&self, p: &[f64]) -> (f64, Vec<f64>) {
        let c = divide(&[1.0], p, self.steps);
        if !c.iter().all(|c| c.is_finite()) {
            return (f64::INFINITY, Vec::new());
        }
        let m = self.magnitudes.of(&c);
        let (sensitivity, dm) = self.sums.squared(&m);
        let dc = self.magnitudes.pulled_back(&c, &m, dm);
        let lam = divide_transposed(&dc, p);
        (sensitivity, correlate(&lam, &c, p.len()).iter().map(|x| -x).collect())
    }
}

/// Returns ||c||^2 over the first `steps` terms of c = 1 / p, and its gradient: the derivative in p_j is -2
/// sum_t c_t h_{t-j} for h = c / p. Terms are computed in chunks and not stored.
fn norm_squared(p: &[f64], steps: usize) -> (f64, Vec<f64>) {
    let (mut c, mut h) = (Quotient::new(p), Quotient::new(p));
    let (mut terms, mut later) = (vec![0.0; CHUNK], vec![0.0; p.len() - 1 + CHUNK]);
    let (mut sum, mut gradient) = (0.0, vec![0.0; p.len()]);
    for first in (0..steps).step_by(CHUNK) {
        let count = CHUNK.min(steps - first);
        let terms = &mut terms[..count];
        c.fill(if first == 0 { &[1.0] } else { &[] }, terms);
        later.copy_within(CHUNK.., 0);
        h.fill(terms, &mut later[p.len() - 1..][..count]);
        sum += dot(terms, terms);
        for (j, slope) in gradient.iter_mut().enumerate() {
            *slope -= 2.0 * dot(terms, &later[p.len() - 1 - j..]);
        }
        if !sum.is_finite() {
            break;
        }
    }
    (sum, gradient)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Objective;
    use crate::testing::{Tolerance, assert_gradient};

    #[test]
    fn the_norm_in_portions_is_that_of_all_terms() {
        let steps = 2 * CHUNK + 77;
        let single = Participation::Single;
        let sums = Sums::new(steps, &single).unwrap();
        let error =
            SquaredError::of_banded_inverse(steps, 5, &crate::Workload::Prefix, Objective::Rms, 8.0).unwrap();
        let loss = InverseLoss { steps, error: &error, sums: &sums, magnitudes: SmoothMagnitudes::Signless };
        let p = [1.0, -0.5, -0.125, -0.0625, -0.3];
        let (whole, portions) = (loss.sensitivity(&p), norm_squared(&p, steps));
        assert!((portions.0 / whole.0 - 1.0).abs() < 1e-12);
        assert!(portions.1.iter().zip(&whole.1).all(|(x, y)| (x / y - 1.0).abs() < 1e-11));
    }

    #[test]
    fn the_gradient_is_the_finite_difference() {
        let steps = 17;
        for workload in ["prefix", "momentum:0.7,0.1", "cooldown:9,0.2"] {
            for (schema, magnitudes) in [
                ("single", SmoothMagnitudes::Signless),
                ("cyclic:4,3", SmoothMagnitudes::Absolute(0.1)),
                ("min-sep:3,4", SmoothMagnitudes::Majorant(0.1)),
            ] {
                let sums = Sums::new(steps, &schema.parse().unwrap()).unwrap();
                let error =
                    SquaredError::new(steps, steps, &workload.parse().unwrap(), Objective::Max, 8.0).unwrap();
                let loss = InverseLoss { steps, error: &error, sums: &sums, magnitudes };
                let v = [-0.5, 0.1, -0.2, 0.15];
                let (_, gradient) = loss.value_and_gradient(&v);
                let f = |v: &[f64]| loss.value_and_gradient(v).0;
                let case = format!("{workload} {schema}");
                assert_gradient(&case, f, &v, &gradient, 1e-5, Tolerance::absolute(1e-7));
            }
        }
    }
}
