//! Tree aggregation: noise on every node of the binary tree over the steps; a prefix is the sum of the nodes
//! of its dyadic partition. Noise: O(log n) seed vectors a step at most, two on average; as many of state.

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

/// The binary tree over `steps` steps with its dyadic decoder; the last step takes the cheapest prefix that
/// the complete tree knows.
///
/// ```
/// use antinoise_mechanism::{Participation, Problem, Workload, optimize::Objective, strategy::StrategySpec};
/// let problem = Problem {
///     steps: 8,
///     workload: Workload::Prefix,
///     participation: Participation::Single,
///     objective: Objective::Max,
/// };
/// let tree = "tree".parse::<StrategySpec>()?.design(&problem)?.value;
/// let sensitivity = tree.sensitivity(&problem.participation)?;
/// let error = tree.error(&problem.workload)?;
/// assert_eq!(sensitivity.value, 2.0); // a step is below four nodes
/// assert_eq!(format!("{:.3}", sensitivity.value * error.max), "3.464");
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
///
/// # Source
/// Monograph, Section 2.7; multi-epoch paper, Appendix D.3 for numbers of steps that are no power of two.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BinaryTree {
    steps: usize,
}

impl Strategy for BinaryTree {
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
        Estimator::Dyadic.rows(Tree::new(self.steps), workload)
    }

    fn recursion(&self) -> Result<Recursion> {
        can_list_rows(self.steps)?;
        Ok(Estimator::Dyadic.recursion(Tree::new(self.steps)))
    }
}

impl Design for BinaryTree {
    fn design(spec: &StrategySpec, problem: &Problem) -> Result<Solution<Self>> {
        without_size(spec, Self { steps: problem.steps })
    }
}
