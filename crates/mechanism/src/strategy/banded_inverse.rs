//! Banded Toeplitz C^-1, whose coefficients are those of the square root of A^-1, truncated, or optimised.
//! Noise: a moving average of `bands` seed vectors, which can be regenerated, so that no state is needed.

use serde::{Deserialize, Serialize};

use super::contract::Strategy;
use super::first_column;
use crate::numeric::limits::check_materializable;
use crate::toeplitz::divide;
use crate::{Encoder, Recursion, Result, Workload, decoder};

/// A lower-triangular Toeplitz C given by the first column of its inverse.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BandedInverse {
    steps: usize,
    /// The first column of C^-1, without trailing zeros.
    inverse_coefficients: Vec<f64>,
}

impl BandedInverse {
    pub(crate) fn new(steps: usize, inverse_coefficients: Vec<f64>) -> Result<Self> {
        let strategy = Self { steps, inverse_coefficients };
        strategy.check()?;
        Ok(strategy)
    }

    /// Returns the first column of C^-1, without trailing zeros.
    pub(crate) fn inverse_coefficients(&self) -> &[f64] {
        &self.inverse_coefficients
    }
}

impl Strategy for BandedInverse {
    fn steps(&self) -> usize {
        self.steps
    }

    fn check(&self) -> Result<()> {
        first_column::check(self.steps, &self.inverse_coefficients)
    }

    fn encoder(&self) -> Result<Encoder> {
        check_materializable(self.steps)?;
        let coefficients = divide(&[1.0], &self.inverse_coefficients, self.steps);
        Ok(Encoder::Toeplitz { steps: self.steps, coefficients })
    }

    fn row_errors_squared(&self, workload: &Workload) -> Result<Vec<f64>> {
        check_materializable(self.steps)?;
        decoder::rows_of_inverse(&self.inverse_coefficients, self.steps, workload)
    }

    fn recursion(&self) -> Result<Recursion> {
        Ok(Recursion::MovingAverage { taps: self.inverse_coefficients.clone() })
    }
}
