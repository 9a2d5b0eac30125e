//! Any lower-triangular C. Designs have the least loss of all strategies, with a certificate. Noise: O(n m)
//! time a step with regenerated seed noise, no state. Design: O(n^3) time an iteration and about ten n x n
//! matrices of memory.

use antinoise_input::{InvalidParameter, at_least};
use antinoise_linear::{Matrix, lower_inverse};
use serde::{Deserialize, Serialize};

use super::contract::Strategy;
use crate::decoder::{ErrorNorms, error_of_matrix};
use crate::numeric::limits::check_materializable;
use crate::{Encoder, Recursion, Result, Workload};

/// A lower-triangular matrix given by its rows.
///
/// ```
/// use antinoise_mechanism::{Strategy, strategy::Dense};
/// let strategy = Dense::new(vec![vec![1.0], vec![0.5, 2.0]])?;
/// assert_eq!(strategy.encoder()?.to_dense()[(1, 0)], 0.5);
/// assert!(Dense::new(vec![vec![1.0], vec![0.5, 0.0]]).is_err()); // not invertible
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dense {
    /// Row t holds the entries C\[t, 0..=t\].
    rows: Vec<Vec<f64>>,
}

impl Dense {
    /// Creates the matrix whose row t is C\[t, 0..=t\].
    ///
    /// # Errors
    /// When there is no row, row t does not have t + 1 numbers, a number is not finite, or a diagonal entry
    /// is not above 0.
    pub fn new(rows: Vec<Vec<f64>>) -> Result<Self> {
        let strategy = Self { rows };
        strategy.check()?;
        Ok(strategy)
    }

    pub(crate) fn of_matrix(c: &Matrix) -> Result<Self> {
        Self::new((0..c.nrows()).map(|i| (0..=i).map(|j| c[(i, j)]).collect()).collect())
    }

    pub(crate) fn matrix(&self) -> Matrix {
        let n = self.rows.len();
        Matrix::from_fn(n, n, |i, j| if i >= j { self.rows[i][j] } else { 0.0 })
    }
}

impl Strategy for Dense {
    fn steps(&self) -> usize {
        self.rows.len()
    }

    fn check(&self) -> Result<()> {
        let n = at_least("rows", self.rows.len(), 1)?;
        check_materializable(n.saturating_mul(n))?;
        for (i, row) in self.rows.iter().enumerate() {
            let refused = |got: String, must_be: String| {
                Err(InvalidParameter::new(format!("row {i}"), got, must_be).into())
            };
            if row.len() != i + 1 {
                return refused(format!("{} numbers", row.len()), format!("{} numbers", i + 1));
            }
            if let Some(j) = row.iter().position(|x| !x.is_finite()) {
                return refused(format!("{:?} at column {j}", row[j]), "finite everywhere".into());
            }
            if row[i] <= 0.0 {
                return refused(format!("{:?} on the diagonal", row[i]), "above 0 there".into());
            }
        }
        Ok(())
    }

    fn encoder(&self) -> Result<Encoder> {
        Ok(Encoder::Dense(self.matrix()))
    }

    fn error(&self, workload: &Workload) -> Result<ErrorNorms> {
        error_of_matrix(&lower_inverse(&self.matrix()), workload)
    }

    fn recursion(&self) -> Result<Recursion> {
        let inverse = lower_inverse(&self.matrix());
        let row = |i: usize| (0..=i).map(|j| (j, inverse[(i, j)])).collect();
        Recursion::SeedCombination { rows: (0..self.steps()).map(row).collect() }.checked()
    }
}
