//! C = A: fresh noise on every query's answer (output perturbation). C^-1 is short for prefix sums and
//! momentum, so that noise takes O(m) time and one or two vectors of seed noise.

use antinoise_input::InvalidParameter;
use antinoise_linear::Matrix;
use serde::{Deserialize, Serialize};

use super::contract::Strategy;
use super::design::Design;
use super::spec::StrategySpec;
use crate::Problem;
use crate::optimize::Solution;
use crate::limits::check_materializable;
use crate::toeplitz::divide;
use crate::{Encoder, Recursion, Result, Workload};

/// The workload `workload` over `steps` steps as the strategy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputPerturbation {
    steps: usize,
    workload: Workload,
}

impl OutputPerturbation {
    /// The diagonal of A has a zero: C = A has no inverse.
    fn not_invertible(&self, step: usize) -> crate::Error {
        let got = format!("{}, which gives step {step} no weight", self.workload);
        InvalidParameter::new("workload", got, "invertible to be a strategy").into()
    }
}

impl Strategy for OutputPerturbation {
    fn steps(&self) -> usize {
        self.steps
    }

    fn check(&self) -> Result<()> {
        check_materializable(self.steps)?;
        self.workload.check_steps(self.steps)?;
        if matches!(self.workload, Workload::Queries { .. }) {
            let must_be = "lower triangular, where it is the strategy itself";
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
            // Row t of C from its diagonal back: C is banded with n bands.
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

/// A\[i, j\] = sum over s in j..=i of eta_s beta^(s-j), written out.
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

/// The rows of its inverse: differences over eta, then those less beta times the ones before.
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

/// At most n taps, without the zeros at the end.
fn shortened(mut taps: Vec<f64>, steps: usize) -> Vec<f64> {
    taps.truncate(steps);
    while taps.len() > 1 && taps.last() == Some(&0.0) {
        taps.pop();
    }
    taps
}

impl Design for OutputPerturbation {
    fn design(spec: &StrategySpec, problem: &Problem) -> Result<Solution<Self>> {
        spec.refuse_bands()?;
        spec.refuse_order()?;
        let strategy = Self { steps: problem.steps, workload: problem.workload.clone() };
        strategy.check()?;
        Ok(Solution::closed_form(strategy))
    }
}
