//! C^-1 banded Toeplitz: the square root of A^-1 truncated, or optimised. Noise: a moving average of `bands`
//! seed vectors, which can be made again, so that no state is needed.

use serde::{Deserialize, Serialize};

use super::banded_toeplitz::bands_of;
use super::toeplitz::{check_coefficients, square_root_of};
use super::{Design, Form, Mechanism, Problem, Recipe, can_write_out};
use crate::optimize::{Solution, toeplitz::minimize_banded_inverse};
use crate::toeplitz::divide;
use crate::{Encoder, Recursion, Result};

/// A lower-triangular Toeplitz C given by the first column of its inverse.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BandedInverse {
    steps: usize,
    /// First column of C^-1, its non-zero part.
    inverse_coefficients: Vec<f64>,
}

impl Mechanism for BandedInverse {
    fn steps(&self) -> usize {
        self.steps
    }

    fn check(&self) -> Result<()> {
        check_coefficients(self.steps, &self.inverse_coefficients)
    }

    fn encoder(&self) -> Result<Encoder> {
        can_write_out(self.steps)?;
        let coefficients = divide(&[1.0], &self.inverse_coefficients, self.steps);
        Ok(Encoder::Toeplitz { steps: self.steps, coefficients })
    }

    fn recursion(&self) -> Result<Recursion> {
        Ok(Recursion::MovingAverage { taps: self.inverse_coefficients.clone() })
    }
}

impl Design for BandedInverse {
    fn design(recipe: &Recipe, problem: &Problem) -> Result<Solution<Self>> {
        recipe.refuse_order()?;
        can_write_out(problem.steps)?;
        let bands = bands_of(recipe, problem)?;
        let root = square_root_of(&problem.workload, problem.steps, bands)?;
        let start = divide(&[1.0], &root, bands);
        let found = if recipe.form == Form::SquareRoot {
            Solution::closed_form(start)
        } else {
            // The identity, and the workload where its inverse is short.
            let mut others = vec![vec![1.0]];
            if let Some(a) = problem.workload.coefficients(problem.steps)? {
                others.push(divide(&[1.0], &a, bands));
            }
            minimize_banded_inverse(&start, &others, problem)?
        };
        let strategy = Self { steps: problem.steps, inverse_coefficients: found.value.clone() };
        Ok(found.map(|_| strategy))
    }
}
