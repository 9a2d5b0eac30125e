//! Batches of queries, and the workloads by which solvers replace them.

use antinoise_input::InvalidParameter;
use antinoise_linear::{Matrix, product, reverse_cholesky, symmetric_eigenvalues};

use super::definition::Workload;
use crate::Result;

/// Smallest squared singular value of a batch that spans all directions, relative to their mean.
const MIN_DIRECTION: f64 = 1e-9;
/// Squared singular value that is added in all directions if the queries do not span them, relative to the
/// same mean. The loss changes by about as much. With 1e-9, designs under min-sep ended up to 4% above the
/// optimum, since multipliers of such patterns are too ill-conditioned for double precision.
const ADDED: f64 = 1e-6;

impl Workload {
    /// If the queries of a batch do not span all directions, returns the batch with one more query per step,
    /// whose effect on the loss is negligible, so that the optimal strategy is invertible. Returns `None` if
    /// they do, and for other workloads.
    pub(crate) fn spanning(&self, steps: usize) -> Result<Option<Self>> {
        let Self::Queries { rows } = self else { return Ok(None) };
        self.check_steps(steps)?;
        let gram = gram(rows);
        let mean = (0..steps).map(|t| gram[(t, t)]).sum::<f64>() / steps as f64;
        let least = symmetric_eigenvalues(&gram)?.into_iter().fold(f64::INFINITY, f64::min);
        if least >= MIN_DIRECTION * mean {
            return Ok(None);
        }
        let small = (ADDED * mean).sqrt();
        let unit = |t: usize| (0..steps).map(|j| if j == t { small } else { 0.0 }).collect();
        Ok(Some(Self::Queries { rows: rows.iter().cloned().chain((0..steps).map(unit)).collect() }))
    }

    /// Returns the lower-triangular workload L with L^T L = A^T A, whose errors have the same sum of squares
    /// as those of a batch of queries. `None` for other workloads.
    ///
    /// # Errors
    /// When the queries do not span all directions.
    pub(crate) fn triangular(&self, steps: usize) -> Result<Option<Self>> {
        let Self::Queries { rows } = self else { return Ok(None) };
        let factor = reverse_cholesky(&gram(rows)).map_err(|_| {
            let must_be = "of similar size, so that their squares can be added in double precision";
            InvalidParameter::new("queries", "of sizes too far apart", must_be)
        })?;
        let rows = (0..steps).map(|i| (0..=i).map(|j| factor[(i, j)]).collect()).collect();
        Ok(Some(Self::Matrix { rows }))
    }
}

/// Returns A^T A.
fn gram(rows: &[Vec<f64>]) -> Matrix {
    let a = Matrix::from_fn(rows.len(), rows[0].len(), |i, j| rows[i][j]);
    product(a.transpose(), &a)
}
