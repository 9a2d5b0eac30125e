//! General banded C with columns of norm 1: n columns of `bands` entries each, all optimised together. Noise:
//! O(bands m) time a step with bands - 1 vectors of state. Design: O(n bands^2) an iteration, or O(n^2 bands)
//! for workloads without a short recursion.

use antinoise_input::{InvalidParameter, between};
use serde::{Deserialize, Serialize};

use super::contract::Strategy;
use crate::decoder::BandedErrors;
use crate::numeric::limits::check_materializable;
use crate::{Encoder, Recursion, Result, Workload, decoder};

/// A banded lower-triangular matrix given by its rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Banded {
    bands: usize,
    /// C\[t, t - tau\] at index t bands + tau; 0 if tau > t.
    rows: Vec<f64>,
}

impl Banded {
    pub(crate) fn new(bands: usize, rows: Vec<f64>) -> Result<Self> {
        let strategy = Self { bands, rows };
        strategy.check()?;
        Ok(strategy)
    }

    /// Returns the rows padded with zeros to more bands.
    pub(crate) fn widened(&self, bands: usize) -> Vec<f64> {
        let zeros = vec![0.0; bands - self.bands];
        self.rows.chunks_exact(self.bands).flat_map(|row| row.iter().chain(&zeros)).copied().collect()
    }

    /// Returns C^-T u.
    fn solve_transposed(&self, u: &[f64]) -> Vec<f64> {
        let mut x = u.to_vec();
        for (t, row) in self.rows.chunks_exact(self.bands).enumerate().rev() {
            x[t] /= row[0];
            let solved = x[t];
            row.iter().enumerate().take(t + 1).skip(1).for_each(|(tau, c)| x[t - tau] -= c * solved);
        }
        x
    }
}

impl Strategy for Banded {
    fn steps(&self) -> usize {
        self.rows.len() / self.bands.max(1)
    }

    fn check(&self) -> Result<()> {
        between("bands", self.bands, 1, self.rows.len(), "the rows' entries")?;
        check_materializable(self.rows.len())?;
        let refused = |got: String, must_be: &str| Err(InvalidParameter::new("rows", got, must_be).into());
        if !self.rows.len().is_multiple_of(self.bands) {
            return refused(format!("{} numbers", self.rows.len()), "a multiple of bands");
        }
        if let Some(at) = self.rows.iter().position(|x| !x.is_finite()) {
            return refused(format!("{:?} at index {at}", self.rows[at]), "finite everywhere");
        }
        match self.rows.iter().step_by(self.bands).position(|&x| x <= 0.0) {
            Some(step) => refused(
                format!("{:?} on the diagonal at step {step}", self.rows[step * self.bands]),
                "above 0",
            ),
            None => Ok(()),
        }
    }

    fn encoder(&self) -> Result<Encoder> {
        Ok(Encoder::Banded { bands: self.bands, rows: self.rows.clone() })
    }

    fn row_errors_squared(&self, workload: &Workload) -> Result<Vec<f64>> {
        workload.check_steps(self.steps())?;
        let (prefix, row) =
            (|| self.row_errors_squared(&Workload::Prefix), |u: &[f64]| self.solve_transposed(u));
        if let Some(rows) = decoder::rows_of_listed(workload, self.steps(), prefix, row)? {
            return Ok(rows);
        }
        match BandedErrors::new(workload, self.steps(), self.bands) {
            Some(errors) => decoder::finite(errors.covariance(&self.rows).rows()),
            None => decoder::rows_by_columns(&self.recursion()?, self.steps(), workload),
        }
    }

    fn recursion(&self) -> Result<Recursion> {
        Ok(Recursion::Banded { bands: self.bands, rows: self.rows.clone() })
    }
}
