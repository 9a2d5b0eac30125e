//! Any lower-triangular C: the least loss there is, with a certificate. Noise: O(n m) time a step by making
//! seed noise again, no state. Design: O(n^3) an iteration, about ten n x n matrices of memory.

use antinoise_input::{InvalidParameter, at_least};
use antinoise_linear::{Mat, lower_inverse};
use serde::{Deserialize, Serialize};

use super::{Banded, Design, ErrorNorms, Mechanism, Problem, Recipe, can_write_out};
use crate::decoder::error_of_matrix;
use crate::optimize::{Solution, dense};
use crate::{Encoder, Participation, Recursion, Result, Workload};

/// A lower-triangular matrix given by its rows.
///
/// ```
/// use antinoise_mechanism::{Mechanism, strategy::Dense};
/// let strategy = Dense::new(vec![vec![1.0], vec![0.5, 2.0]])?;
/// assert_eq!(strategy.encoder()?.to_dense()[(1, 0)], 0.5);
/// assert!(Dense::new(vec![vec![1.0], vec![0.5, 0.0]]).is_err()); // not invertible
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dense {
    /// Row t holds C\[t, 0..=t\].
    rows: Vec<Vec<f64>>,
}

impl Dense {
    /// The matrix whose row t is C\[t, 0..=t\].
    ///
    /// # Errors
    /// When there is no row, a row has another length than its number, or a number that is not finite or, on
    /// the diagonal, not above 0.
    pub fn new(rows: Vec<Vec<f64>>) -> Result<Self> {
        let strategy = Self { rows };
        strategy.check()?;
        Ok(strategy)
    }

    fn of_matrix(c: &Mat<f64>) -> Result<Self> {
        Self::new((0..c.nrows()).map(|i| (0..=i).map(|j| c[(i, j)]).collect()).collect())
    }

    fn matrix(&self) -> Mat<f64> {
        let n = self.rows.len();
        Mat::from_fn(n, n, |i, j| if i >= j { self.rows[i][j] } else { 0.0 })
    }
}

impl Mechanism for Dense {
    fn steps(&self) -> usize {
        self.rows.len()
    }

    fn check(&self) -> Result<()> {
        let n = at_least("rows", self.rows.len(), 1)?;
        can_write_out(n.saturating_mul(n))?;
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
        error_of_matrix(&lower_inverse(self.matrix().as_ref()), workload)
    }

    fn recursion(&self) -> Result<Recursion> {
        let inverse = lower_inverse(self.matrix().as_ref());
        let row = |i: usize| (0..=i).map(|j| (j, inverse[(i, j)])).collect();
        Recursion::Combination { rows: (0..self.steps()).map(row).collect() }.checked()
    }
}

impl Design for Dense {
    fn design(recipe: &Recipe, problem: &Problem) -> Result<Solution<Self>> {
        recipe.refuse_bands()?;
        recipe.refuse_order()?;
        recipe.refuse_fixed()?;
        let (b, k) = problem.participation.separation(problem.steps);
        if matches!(problem.participation, Participation::MinSep { .. }) && k > 1 && k < problem.steps {
            // Columns that may take part together are orthogonal when C has b bands at most.
            let bands = Recipe { bands: Some(b), ..Recipe::new(super::Class::Banded) };
            let found = Banded::design(&bands, problem)?;
            let strategy = Self::of_matrix(&found.value.encoder()?.to_dense())?;
            return Ok(found.map(|_| strategy));
        }
        let found = dense::minimize(problem, &dense::Settings::of(problem))?;
        let strategy = Self::of_matrix(&found.value)?;
        Ok(found.map(|_| strategy))
    }
}
