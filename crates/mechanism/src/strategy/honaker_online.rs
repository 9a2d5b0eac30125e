//! Honaker's estimate from below: noise on every node of the binary tree over the steps; each subtree of a
//! prefix is the best average of its levels. Noise: O(log n) seed vectors a step on average, O(n) at the steps
//! where a large subtree is complete; no state when seeds are made again.

use serde::{Deserialize, Serialize};

use super::contract::Strategy;
use super::design::Design;
use super::design::without_size;
use super::spec::StrategySpec;
use crate::Problem;
use crate::optimize::Solution;
use crate::size::can_list_rows;
use crate::size::can_write_out;
use crate::tree::Tree;
use crate::tree::estimate::Estimator;
use crate::{Encoder, Recursion, Result, Workload};

/// The binary tree over `steps` steps, decoded from the complete nodes; the last step takes the cheapest prefix
/// that the complete tree knows.
///
/// ```
/// use antinoise_mechanism::{Participation, Problem, Workload, optimize::Objective, strategy::StrategySpec};
/// let problem = Problem {
///     steps: 8,
///     workload: Workload::Prefix,
///     participation: Participation::Single,
///     objective: Objective::Max,
/// };
/// let tree = "honaker-online".parse::<StrategySpec>()?.design(&problem)?.value;
/// let sensitivity = tree.sensitivity(&problem.participation)?;
/// let error = tree.error(&problem.workload)?;
/// assert_eq!(sensitivity.value, 2.0); // a step is below four nodes
/// assert_eq!(format!("{:.3}", sensitivity.value * error.rms), "2.178");
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
///
/// # Source
/// Multi-epoch paper, Appendix D.3: tree completion, and no noise for steps past the last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HonakerOnline {
    steps: usize,
}

impl Strategy for HonakerOnline {
    fn steps(&self) -> usize {
        self.steps
    }

    fn check(&self) -> Result<()> {
        can_write_out(self.steps)
    }

    fn encoder(&self) -> Result<Encoder> {
        Ok(Encoder::tree(self.steps))
    }

    fn row_errors_squared(&self, workload: &Workload) -> Result<Vec<f64>> {
        Estimator::FromBelow.rows(Tree::new(self.steps), workload)
    }

    fn recursion(&self) -> Result<Recursion> {
        can_list_rows(self.steps)?;
        Ok(Estimator::FromBelow.recursion(Tree::new(self.steps)))
    }
}

impl Design for HonakerOnline {
    fn design(spec: &StrategySpec, problem: &Problem) -> Result<Solution<Self>> {
        without_size(spec, Self { steps: problem.steps })
    }
}
