//! The trait that all strategies implement: the matrix C, its sensitivity and errors, and the recursion of
//! its noise.

use crate::decoder::{self, ErrorNorms};
use crate::loss::Loss;
use crate::sensitivity::{self, Kind, RowNorm, Sensitivity};
use crate::{Adjacency, Encoder, Participation, Recursion, Result, Workload};

/// A strategy matrix C (n x n, lower triangular, invertible).
pub trait Strategy {
    /// Returns the number of steps n.
    fn steps(&self) -> usize;

    /// Checks the numbers of the strategy, which may have been read from a file.
    ///
    /// # Errors
    /// When a number is not valid. The error names the field.
    fn check(&self) -> Result<()>;

    /// Returns C.
    ///
    /// # Errors
    /// When C is too large.
    fn encoder(&self) -> Result<Encoder>;

    /// Returns the sensitivity sens(C, Pi) to rows of l2 norm at most 1, and the theorem that proves it. An
    /// exact value is attained by scalars.
    ///
    /// # Errors
    /// When the schema does not fit, C is too large, or the value is outside the range of double precision. A
    /// value that is returned is never NaN, infinite or 0.
    fn sensitivity(&self, participation: &Participation) -> Result<Sensitivity> {
        sensitivity::of_encoder(&self.encoder()?, participation)
    }

    /// Returns the sensitivity to rows that are bounded in this norm. To rows bounded in l1 it is exact, or
    /// at most that to rows bounded in l2.
    ///
    /// # Errors
    /// As [`Strategy::sensitivity`].
    fn sensitivity_of(&self, participation: &Participation, rows: RowNorm) -> Result<Sensitivity> {
        let vectors = self.sensitivity(participation)?;
        if rows == RowNorm::L2 || vectors.kind == Kind::Exact {
            return Ok(vectors);
        }
        sensitivity::of_l1_rows(&self.encoder()?, participation, vectors)
    }

    /// Returns the norms of B = A C^-1.
    ///
    /// # Errors
    /// When the workload is not valid, C is too large, or a norm is outside the range of double precision.
    /// Norms that are returned are never NaN, infinite or 0.
    fn error(&self, workload: &Workload) -> Result<ErrorNorms> {
        ErrorNorms::of_rows(&self.row_errors_squared(workload)?)
    }

    /// Returns the squared norm of each row of B = A C^-1: the variance of each query's noise for seed noise
    /// of standard deviation 1.
    ///
    /// # Errors
    /// When the workload is not valid, or C is too large.
    fn row_errors_squared(&self, workload: &Workload) -> Result<Vec<f64>> {
        let (steps, recursion) = (self.steps(), self.recursion()?);
        match self.encoder()? {
            Encoder::Toeplitz { coefficients, .. } => {
                decoder::rows_of_toeplitz(&coefficients, steps, workload, &recursion)
            }
            _ => decoder::rows_by_columns(&recursion, steps, workload),
        }
    }

    /// Returns the norm of each row of B = A C^-1: the standard deviation of each query's noise for seed
    /// noise of standard deviation 1.
    ///
    /// # Errors
    /// When the workload is not valid, or C is too large.
    fn row_errors(&self, workload: &Workload) -> Result<Vec<f64>> {
        Ok(self.row_errors_squared(workload)?.into_iter().map(f64::sqrt).collect())
    }

    /// Returns the standard deviation of each query's noise at clip norm 1 and noise multiplier 1: row norms
    /// of B times sensitivity.
    ///
    /// # Errors
    /// As [`Strategy::loss`].
    fn query_errors(
        &self,
        workload: &Workload,
        participation: &Participation,
        adjacency: Adjacency,
    ) -> Result<Vec<f64>> {
        let sensitivity = self.sensitivity(participation)?.under(adjacency).value;
        Ok(self.row_errors(workload)?.into_iter().map(|row| row * sensitivity).collect())
    }

    /// Returns the errors and losses for a workload, a participation schema and an adjacency.
    ///
    /// # Errors
    /// When the workload or the schema is not valid for the steps of the strategy, or a figure is 0 or not
    /// finite.
    fn loss(&self, workload: &Workload, participation: &Participation, adjacency: Adjacency) -> Result<Loss> {
        let sensitivity = self.sensitivity(participation)?.under(adjacency);
        Loss::new(self.error(workload)?, sensitivity, workload.queries(self.steps()))
    }

    /// Returns the recursion that computes C^-1 Z step by step.
    ///
    /// # Errors
    /// When C is too large, or a coefficient is not finite.
    fn recursion(&self) -> Result<Recursion>;
}
