//! The squared error ||B||^2 of Toeplitz C for any lower-triangular A, with its derivatives in the first
//! column of C or of C^-1.
//!
//! 1. For Toeplitz A the first column w = C^-1 a of B suffices: ||B||_row^2 = sum w_t^2 and
//!    ||B||_F^2 = sum (n - t) w_t^2.
//! 2. For the last iterate, the rows of B are C^-T u for its responses u, and those of prefix sums; for a
//!    batch of queries, they are C^-T u for its rows u.
//! 3. For any other A every column is needed: column j of B is A applied to p shifted by j, where p is the
//!    first column of C^-1. A is applied to eight columns together; this takes O(n) time a column for
//!    learning-rate schedules.

use super::last_iterate::LastIterateError;
use crate::decoder::steady_state;
use crate::numeric::lanes::{LANES, Lanes, sum_over_groups};
use crate::numeric::softmax::soft_maximum;
use crate::numeric::vector::dot;
use crate::problem::Objective;
use crate::toeplitz::{DIRECT_TERMS, correlate, divide, divide_transposed, invert, multiply};
use crate::workload::Operator;
use crate::{Result, Workload};

/// ||B||_F^2 or ||B||_row^2 as a function of C's first column.
pub(crate) enum SquaredError {
    /// Toeplitz A.
    Series {
        /// First column of A, up to the horizon.
        workload: Vec<f64>,
        /// The workload A, up to the horizon.
        operator: Operator,
        /// The weight of each w_t^2 in the squared error.
        weights: Vec<f64>,
        /// Weight of the squared limit of w, for the steps beyond the horizon.
        rest: f64,
    },
    /// The responses of the last iterate, or the rows of a batch of queries, and prefix sums. The sum over
    /// rows is minimised, whatever the objective.
    LastIterate(LastIterateError),
    /// Any other A.
    Columns {
        /// The workload A.
        operator: Operator,
        /// Number of steps n.
        steps: usize,
        /// Exponent of the p-norm that replaces the maximum over rows; 1 for the RMS loss, the sum over rows.
        exponent: f64,
    },
}

impl SquaredError {
    /// Creates the error for a C with `bands` coefficients. If A is not Toeplitz, an `exponent` above 1
    /// smooths the maximum over rows.
    pub(crate) fn new(
        steps: usize,
        bands: usize,
        workload: &Workload,
        objective: Objective,
        exponent: f64,
    ) -> Result<Self> {
        if let Some(rows) = workload.summed_rows(steps)? {
            return Ok(Self::LastIterate(LastIterateError::new(rows, steps)));
        }
        let horizon = steady_state::horizon(steps, bands, workload);
        Ok(match workload.coefficients(horizon)? {
            Some(a) => {
                let (weights, rest) = steady_state::weights(steps, horizon, objective);
                Self::Series { workload: a, operator: Operator::new(workload, horizon)?, weights, rest }
            }
            None => {
                let exponent = if objective == Objective::Rms { 1.0 } else { exponent };
                Self::Columns { operator: Operator::new(workload, steps)?, steps, exponent }
            }
        })
    }

    /// Creates the error for a C^-1 with `bands` coefficients. For prefix sums, w is constant from step
    /// `bands` on.
    pub(crate) fn of_banded_inverse(
        steps: usize,
        bands: usize,
        workload: &Workload,
        objective: Objective,
        exponent: f64,
    ) -> Result<Self> {
        if *workload != Workload::Prefix {
            return Self::new(steps, steps, workload, objective, exponent);
        }
        let (weights, rest) = steady_state::weights(steps, bands, objective);
        let operator = Operator::new(workload, bands)?;
        Ok(Self::Series { workload: vec![1.0; bands], operator, weights, rest })
    }

    /// Returns the number of terms that an evaluation computes.
    pub(crate) fn terms(&self) -> usize {
        match self {
            Self::Series { workload, .. } => workload.len(),
            Self::LastIterate(error) => error.terms(),
            Self::Columns { steps, .. } => *steps,
        }
    }

    /// Returns the value and its gradient in every coefficient of `c`.
    pub(crate) fn of_column(&self, c: &[f64]) -> (f64, Vec<f64>) {
        match self {
            Self::Series { workload, operator, weights, rest } => {
                let n = workload.len();
                // If c is long, 1 / c is computed once for both quotients.
                let inverse = (c.len() > DIRECT_TERMS).then(|| invert(c, n));
                let w = match &inverse {
                    Some(inverse) => operator.apply(inverse),
                    None => divide(workload, c, n),
                };
                let weighted: Vec<f64> = w.iter().zip(weights).map(|(w, weight)| weight * w).collect();
                let limit = if *rest > 0.0 { 1.0 / c.iter().sum::<f64>() } else { 0.0 };
                let beyond = rest * limit * limit;
                let lam = match &inverse {
                    Some(inverse) => {
                        let reversed: Vec<f64> = weighted.iter().rev().copied().collect();
                        let mut lam = multiply(&reversed, inverse, n);
                        lam.reverse();
                        lam
                    }
                    None => divide_transposed(&weighted, c),
                };
                let slopes = correlate(&lam, &w, c.len());
                let gradient = slopes.iter().map(|x| -2.0 * (x + beyond * limit)).collect();
                (dot(&w, &weighted) + beyond, gradient)
            }
            Self::LastIterate(LastIterateError { steps, .. }) | Self::Columns { steps, .. } => {
                let inverse = divide(&[1.0], c, *steps);
                let (value, d_inverse) = self.of_inverse(&inverse);
                let lam = divide_transposed(&d_inverse, c);
                (value, correlate(&lam, &inverse, c.len()).iter().map(|x| -x).collect())
            }
        }
    }

    /// Returns the value and its gradient in every coefficient of the first column `p` of C^-1.
    pub(crate) fn of_inverse(&self, p: &[f64]) -> (f64, Vec<f64>) {
        match self {
            Self::Series { workload, weights, rest, .. } => {
                let w = multiply(workload, p, workload.len());
                let weighted: Vec<f64> = w.iter().zip(weights).map(|(w, weight)| weight * w).collect();
                let limit = if *rest > 0.0 { p.iter().sum::<f64>() } else { 0.0 };
                let slopes = correlate(&weighted, workload, p.len());
                let gradient = slopes.iter().map(|x| 2.0 * (x + rest * limit)).collect();
                (dot(&w, &weighted) + rest * limit * limit, gradient)
            }
            Self::LastIterate(error) => error.of_inverse(p),
            Self::Columns { operator, steps, exponent } => {
                let weights = if *exponent == 1.0 {
                    (None, vec![1.0; *steps])
                } else {
                    let (value, weights) = soft_maximum(&rows(operator, p, *steps), *exponent);
                    (Some(value), weights)
                };
                let (value, gradient) = weighted_norms(operator, p, &weights.1);
                (weights.0.unwrap_or(value), gradient)
            }
        }
    }

    /// Returns the error for the C with first column `c`, with the exact maximum over rows, not a p-norm.
    pub(crate) fn exact(&self, c: &[f64]) -> f64 {
        match self {
            Self::LastIterate(LastIterateError { steps, .. }) | Self::Columns { steps, .. } => {
                self.exact_of_inverse(&divide(&[1.0], c, *steps))
            }
            Self::Series { workload, weights, rest, .. } => {
                let c = &c[..c.iter().rposition(|&x| x != 0.0).map_or(1, |last| last + 1)];
                let w = divide(workload, c, workload.len());
                let limit = if *rest > 0.0 { 1.0 / c.iter().sum::<f64>() } else { 0.0 };
                w.iter().zip(weights).map(|(w, weight)| weight * w * w).sum::<f64>() + rest * limit * limit
            }
        }
    }

    /// Returns the same as [`SquaredError::exact`] for the C^-1 with first column `p`.
    pub(crate) fn exact_of_inverse(&self, p: &[f64]) -> f64 {
        match self {
            Self::Columns { operator, steps, exponent } if *exponent > 1.0 => {
                rows(operator, p, *steps).into_iter().fold(0.0, f64::max)
            }
            _ => self.of_inverse(p).0,
        }
    }
}

/// Returns `p` shifted by 0, 1, ... steps, with one lane for each shift.
fn shifted(p: &[f64], rows: usize) -> Vec<Lanes> {
    (0..rows)
        .map(|i| {
            std::array::from_fn(|lane| i.checked_sub(lane).and_then(|s| p.get(s)).copied().unwrap_or(0.0))
        })
        .collect()
}

/// Returns the squared norms of B's rows, for the C^-1 with first column `p`.
fn rows(operator: &Operator, p: &[f64], steps: usize) -> Vec<f64> {
    sum_over_groups(steps, steps, steps * steps, |first, squared| {
        let b = operator.apply_lanes(&shifted(p, steps - first), first);
        for (sum, b) in squared[first..].iter_mut().zip(&b) {
            *sum += b.iter().map(|x| x * x).sum::<f64>();
        }
    })
}

/// Returns the weighted sum of the squared norms of B's rows, and its gradient in p.
fn weighted_norms(operator: &Operator, p: &[f64], weights: &[f64]) -> (f64, Vec<f64>) {
    let steps = weights.len();
    // The last entry is the value.
    let mut total = sum_over_groups(steps, p.len() + 1, steps * steps, |first, sums| {
        let mut b = operator.apply_lanes(&shifted(p, steps - first), first);
        for (b, weight) in b.iter_mut().zip(&weights[first..]) {
            sums[p.len()] += weight * b.iter().map(|x| x * x).sum::<f64>();
            b.iter_mut().for_each(|x| *x *= 2.0 * weight);
        }
        let lam = operator.apply_transposed_lanes(&b, first);
        for (s, sum) in sums[..p.len().min(lam.len())].iter_mut().enumerate() {
            *sum += lam[s..].iter().take(LANES).enumerate().map(|(lane, x)| x[lane]).sum::<f64>();
        }
    });
    let value = total.pop().expect("the value is last");
    (value, total)
}
