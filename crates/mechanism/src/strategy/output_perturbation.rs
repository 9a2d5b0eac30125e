//! C = A: independent noise on the result of every query (output perturbation). For prefix sums and momentum,
//! C^-1 has two or three coefficients, so that noise takes O(m) time a step and one or two earlier seed
//! vectors.

use antinoise_input::InvalidParameter;
use antinoise_linear::Matrix;
use serde::{Deserialize, Serialize};

use super::contract::Strategy;
use crate::numeric::limits::check_materializable;
use crate::toeplitz::divide;
use crate::{Encoder, Recursion, Result, Workload};

/// The strategy C = A for the workload A over `steps` steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputPerturbation {
    steps: usize,
    workload: Workload,
}

impl OutputPerturbation {
    pub(crate) fn new(steps: usize, workload: Workload) -> Result<Self> {
        let strategy = Self { steps, workload };
        strategy.check()?;
        Ok(strategy)
    }

    /// Returns the error for a workload with a 0 on the diagonal, which has no inverse.
    fn not_invertible(&self, step: usize) -> crate::Error {
        let got = format!("{}, whose diagonal is 0 at step {step}", self.workload);
        InvalidParameter::new("workload", got, "invertible to be used as a strategy").into()
    }
}

impl Strategy for OutputPerturbation {
    fn steps(&self) -> usize {
        self.steps
    }

    fn check(&self) -> Result<()> {
        check_materializable(self.steps)?;
        self.workload.check_steps(self.steps)?;
        if matches!(self.workload, Workload::Queries { .. } | Workload::LastIterate { .. }) {
            let must_be = "lower triangular to be used as a strategy";
            return Err(InvalidParameter::new("workload", &self.workload, must_be).into());
        }
        let zero = match &self.workload {
            Workload::Matrix { rows } => rows.iter().position(|row| row.last() == Some(&0.0)),
            workload => {
                workload.schedule(self.steps).and_then(|(eta, _)| eta.iter().position(|&eta| eta == 0.0))
            }
        };
        zero.map_or(Ok(()), |step| Err(self.not_invertible(step)))
    }

    fn encoder(&self) -> Result<Encoder> {
        self.check()?;
        let steps = self.steps;
        if let Some(scales) = self.workload.rates(steps) {
            return Ok(Encoder::Scaled { coefficients: vec![1.0; steps], scales });
        }
        if let Workload::Schedule { rates, momentum } = &self.workload {
            return scheduled(rates, *momentum);
        }
        if let Workload::Matrix { rows } = &self.workload {
            let entry = |i: usize, j: usize| rows[i].get(j).copied().unwrap_or(0.0);
            return Ok(Encoder::Dense(Matrix::from_fn(steps, steps, entry)));
        }
        let coefficients = self.workload.coefficients(steps)?.expect("every other workload is Toeplitz");
        Ok(Encoder::Toeplitz { steps, coefficients })
    }

    fn recursion(&self) -> Result<Recursion> {
        self.check()?;
        if let Some(rates) = self.workload.rates(self.steps) {
            let difference = Recursion::MovingAverage { taps: vec![1.0, -1.0] };
            let factors = rates.iter().map(|eta| 1.0 / eta).collect();
            return Recursion::Scaled { inner: Box::new(difference), factors }.checked();
        }
        if let Workload::Schedule { rates, momentum } = &self.workload {
            return Ok(Recursion::SeedCombination { rows: unscheduled(rates, *momentum) });
        }
        if let Workload::Matrix { rows } = &self.workload {
            // The rows of C as a banded matrix with n bands; row t is stored from its diagonal to the left.
            let bands = self.steps;
            let backwards = |row: &Vec<f64>| -> Vec<f64> {
                let padding = vec![0.0; bands - row.len()];
                row.iter().rev().copied().chain(padding).collect()
            };
            return Ok(Recursion::Banded { bands, rows: rows.iter().flat_map(backwards).collect() });
        }
        Ok(match self.workload.rational(self.steps) {
            Some((numerator, denominator)) if denominator == [1.0] => {
                Recursion::AutoRegressive { taps: shortened(numerator, self.steps) }
            }
            Some((numerator, denominator)) if numerator == [1.0] => {
                Recursion::MovingAverage { taps: shortened(denominator, self.steps) }
            }
            _ => {
                let a = self.workload.coefficients(self.steps)?.expect("every other workload is Toeplitz");
                Recursion::MovingAverage { taps: divide(&[1.0], &a, self.steps) }.checked()?
            }
        })
    }
}

/// Returns the matrix A\[i, j\] = sum over s in j..=i of eta_s beta^(s-j) of a learning-rate schedule.
fn scheduled(rates: &[f64], momentum: f64) -> Result<Encoder> {
    let n = rates.len();
    check_materializable(n.saturating_mul(n))?;
    let mut c = Matrix::zeros(n, n);
    for j in 0..n {
        let (mut sum, mut power) = (0.0, 1.0);
        for i in j..n {
            sum += rates[i] * power;
            power *= momentum;
            c[(i, j)] = sum;
        }
    }
    Ok(Encoder::Dense(c))
}

/// Returns the rows of A^-1 of a learning-rate schedule, as (column, entry) pairs. Row t maps results r to
/// x_t / eta_t - beta x_{t-1} / eta_{t-1}, where x_t = r_t - r_{t-1}.
fn unscheduled(rates: &[f64], momentum: f64) -> Vec<Vec<(usize, f64)>> {
    let row = |t: usize| {
        let mut row = vec![(t, 1.0 / rates[t])];
        if t > 0 {
            row.insert(0, (t - 1, -1.0 / rates[t] - momentum / rates[t - 1]));
        }
        if t > 1 {
            row.insert(0, (t - 2, momentum / rates[t - 1]));
        }
        row
    };
    (0..rates.len()).map(row).collect()
}

/// Truncates the taps to n and removes trailing zeros.
fn shortened(mut taps: Vec<f64>, steps: usize) -> Vec<f64> {
    taps.truncate(steps);
    while taps.len() > 1 && taps.last() == Some(&0.0) {
        taps.pop();
    }
    taps
}
