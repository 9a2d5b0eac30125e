//! Banded Toeplitz C, whose coefficients are those of sqrt(A), truncated, or optimised. Noise: O(bands m)
//! time a step with bands - 1 vectors of state. With no more bands than the separation of participations,
//! columns are orthogonal and the sensitivity is sqrt(k) ||c||.

use serde::{Deserialize, Serialize};

use super::contract::Strategy;
use super::first_column;
use crate::decoder::ErrorNorms;
use crate::{Encoder, Recursion, Result, Workload};

/// A banded lower-triangular Toeplitz matrix, given by its first column without trailing zeros.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BandedToeplitz {
    steps: usize,
    coefficients: Vec<f64>,
}

impl BandedToeplitz {
    pub(crate) fn new(steps: usize, coefficients: Vec<f64>) -> Result<Self> {
        let strategy = Self { steps, coefficients };
        strategy.check()?;
        Ok(strategy)
    }
}

impl Strategy for BandedToeplitz {
    fn steps(&self) -> usize {
        self.steps
    }

    fn check(&self) -> Result<()> {
        first_column::check(self.steps, &self.coefficients)
    }

    fn error(&self, workload: &Workload) -> Result<ErrorNorms> {
        first_column::error(&self.coefficients, self.steps, workload)
    }

    fn encoder(&self) -> Result<Encoder> {
        Ok(Encoder::Toeplitz { steps: self.steps, coefficients: self.coefficients.clone() })
    }

    fn recursion(&self) -> Result<Recursion> {
        Ok(Recursion::AutoRegressive { taps: self.coefficients.clone() })
    }
}
