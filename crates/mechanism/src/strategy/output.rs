//! C = A: fresh noise on every query's answer (output perturbation). C^-1 is short for prefix sums and
//! momentum, so that noise takes O(m) time and one or two vectors of seed noise.

use serde::{Deserialize, Serialize};

use super::{Design, Mechanism, Problem, Recipe, can_write_out};
use crate::optimize::Solution;
use crate::{Recursion, Result, Workload};

/// The workload `workload` over `steps` steps as the strategy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputPerturbation {
    steps: usize,
    workload: Workload,
}

impl Mechanism for OutputPerturbation {
    fn steps(&self) -> usize {
        self.steps
    }

    fn check(&self) -> Result<()> {
        antinoise_input::at_least("steps", self.steps, 1)?;
        self.workload.check()
    }

    fn coefficients(&self) -> Result<Vec<f64>> {
        can_write_out(self.steps)?;
        self.workload.coefficients(self.steps)
    }

    fn recursion(&self) -> Result<Recursion> {
        can_write_out(self.steps)?;
        Ok(Recursion::MovingAverage { taps: self.workload.inverse_coefficients(self.steps)? })
    }
}

impl Design for OutputPerturbation {
    fn design(recipe: &Recipe, problem: &Problem) -> Result<Solution<Self>> {
        recipe.refuse_bands()?;
        recipe.refuse_order()?;
        let strategy = Self { steps: problem.steps, workload: problem.workload.clone() };
        Ok(Solution::closed_form(strategy))
    }
}
