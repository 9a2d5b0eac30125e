//! General banded, column-normalised C: n columns of `bands` free entries each, optimised together. Noise:
//! O(bands m) time a step with bands - 1 vectors of state. Design: O(n^2 bands) an iteration.

use antinoise_input::{InvalidParameter, between};
use serde::{Deserialize, Serialize};

use super::banded_toeplitz::bands_of;
use super::{Design, Mechanism, Problem, Recipe, can_write_out};
use crate::optimize::Solution;
use crate::optimize::banded::{minimize_columns, normalize_columns};
use crate::{Encoder, Recursion, Result, Workload};

/// A banded lower-triangular matrix given by its rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Banded {
    bands: usize,
    /// C\[t, t - tau\] at t bands + tau; 0 where tau > t.
    rows: Vec<f64>,
}

impl Mechanism for Banded {
    fn steps(&self) -> usize {
        self.rows.len() / self.bands.max(1)
    }

    fn check(&self) -> Result<()> {
        between("bands", self.bands, 1, self.rows.len(), "the rows' entries")?;
        can_write_out(self.rows.len())?;
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

    fn recursion(&self) -> Result<Recursion> {
        Ok(Recursion::Banded { bands: self.bands, rows: self.rows.clone() })
    }
}

impl Design for Banded {
    fn design(recipe: &Recipe, problem: &Problem) -> Result<Solution<Self>> {
        recipe.refuse_order()?;
        let bands = bands_of(recipe, problem)?;
        let (b, k) = problem.participation.separation(problem.steps);
        if k > 1 {
            // Columns that take part together must be orthogonal for their norms to be the sensitivity.
            between("bands", bands, 1, b, "the separation of participations")?;
        }
        can_write_out(problem.steps.saturating_mul(bands))?;
        let start = start(problem, bands)?;
        let found = if recipe.fixed {
            let theta: Vec<f64> = (0..problem.steps).flat_map(|_| start.iter().copied()).collect();
            Solution::closed_form(normalize_columns(&theta, bands).rows)
        } else {
            minimize_columns(&start, problem.steps, &problem.workload, problem.objective)?
        };
        Ok(found.map(|rows| Self { bands, rows }))
    }
}

/// The banded Toeplitz optimum for the workload, or for prefix sums where that is not Toeplitz.
fn start(problem: &Problem, bands: usize) -> Result<Vec<f64>> {
    let toeplitz = problem.workload.coefficients(problem.steps)?.is_some();
    let workload = if toeplitz { problem.workload.clone() } else { Workload::Prefix };
    Ok(super::toeplitz::coefficients(&Problem { workload, ..problem.clone() }, bands, false)?.value)
}
