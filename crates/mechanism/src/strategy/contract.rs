//! The trait of every strategy: its matrix, its sensitivity, its errors and how its noise is made.

use crate::decoder::{self, ErrorNorms};
use crate::sensitivity::{self, Sensitivity};
use crate::{Encoder, Participation, Problem, Recursion, Result, Workload};

/// A strategy matrix C (n x n, lower triangular, invertible).
pub trait Strategy {
    /// n.
    fn steps(&self) -> usize;

    /// Refuses a strategy whose numbers are not valid for its class, as those of a file may be.
    ///
    /// # Errors
    /// Names the field.
    fn check(&self) -> Result<()>;

    /// C itself.
    ///
    /// # Errors
    /// When n is too large to write out.
    fn encoder(&self) -> Result<Encoder>;

    /// sens(C, Pi), with its proof.
    ///
    /// # Errors
    /// When the schema does not fit, n is too large to write out, or the figure is out of the range of double
    /// precision: it is never NaN, infinite or 0.
    fn sensitivity(&self, participation: &Participation) -> Result<Sensitivity> {
        sensitivity::of_encoder(&self.encoder()?, participation)
    }

    /// Norms of B = A C^-1.
    ///
    /// # Errors
    /// When the workload is not valid, n is too large to write out, or a norm is out of the range of double
    /// precision: they are never NaN, infinite or 0.
    fn error(&self, workload: &Workload) -> Result<ErrorNorms> {
        ErrorNorms::of_rows(&self.row_errors_squared(workload)?)
    }

    /// Squared norm of each row of B = A C^-1: the variance of each query's noise for seed noise of standard
    /// deviation 1.
    ///
    /// # Errors
    /// When the workload is not valid, or n is too large to write out.
    fn row_errors_squared(&self, workload: &Workload) -> Result<Vec<f64>> {
        let (steps, recursion) = (self.steps(), self.recursion()?);
        match self.encoder()? {
            Encoder::Toeplitz { coefficients, .. } => {
                decoder::rows_of_toeplitz(&coefficients, steps, workload, &recursion)
            }
            _ => decoder::rows_by_columns(&recursion, steps, workload),
        }
    }

    /// Norm of each row of B = A C^-1: the standard deviation of each query's noise for seed noise of standard
    /// deviation 1.
    ///
    /// # Errors
    /// When the workload is not valid, or n is too large to write out.
    fn row_errors(&self, workload: &Workload) -> Result<Vec<f64>> {
        Ok(self.row_errors_squared(workload)?.into_iter().map(f64::sqrt).collect())
    }

    /// How C^-1 Z is made step by step.
    ///
    /// # Errors
    /// When n is too large to write out, or a coefficient is not finite.
    fn recursion(&self) -> Result<Recursion>;
}

/// The loss that a problem minimises: ||A C^-1|| sens(C, Pi).
pub(super) fn loss_of(strategy: &dyn Strategy, problem: &Problem) -> Result<f64> {
    let error = strategy.error(&problem.workload)?.of(problem.objective);
    Ok(error * strategy.sensitivity(&problem.participation)?.value)
}
