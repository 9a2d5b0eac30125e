//! The smooth binary tree: noise on nodes chosen so that every prefix sum reads the same number of them. For many steps the max loss is half
//! of the plain tree's. Noise: two seed vectors a step on average, O(log n) of state.

use serde::{Deserialize, Serialize};

use super::contract::Strategy;
use super::design::Design;
use super::design::without_size;
use super::spec::StrategySpec;
use crate::Problem;
use crate::decoder::rows_by_columns;
use crate::optimize::Solution;
use crate::size::can_list_rows;
use crate::size::can_write_out;
use crate::tree::smooth::SmoothTree as Tree;
use crate::{Encoder, Recursion, Result, Workload};

/// The smooth binary tree over `steps` steps.
///
/// ```
/// use antinoise_mechanism::{Participation, Problem, Workload, optimize::Objective, strategy::StrategySpec};
/// let problem = Problem {
///     steps: 900,
///     workload: Workload::Prefix,
///     participation: Participation::Single,
///     objective: Objective::Max,
/// };
/// let loss = |name: &str| -> Result<f64, antinoise_mechanism::Error> {
///     let tree = name.parse::<StrategySpec>()?.design(&problem)?.value;
///     let sensitivity = tree.sensitivity(&problem.participation)?;
///     Ok(sensitivity.value * tree.error(&problem.workload)?.max)
/// };
/// // 924 labels of 12 digits have 6 ones.
/// assert!((loss("smooth-tree")? - 6.0).abs() < 1e-12);
/// assert!(loss("tree")? > 9.0);
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
///
/// # Source
/// Andersson and Pagh, 2023; monograph, Section 2.12.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SmoothTree {
    steps: usize,
}

impl Strategy for SmoothTree {
    fn steps(&self) -> usize {
        self.steps
    }

    fn check(&self) -> Result<()> {
        can_write_out(self.steps)
    }

    fn encoder(&self) -> Result<Encoder> {
        Ok(Encoder::SmoothTree { steps: self.steps })
    }

    fn row_errors_squared(&self, workload: &Workload) -> Result<Vec<f64>> {
        if *workload == Workload::Prefix {
            return Ok(vec![f64::from(Tree::new(self.steps).ones()); self.steps]);
        }
        rows_by_columns(&self.recursion()?, self.steps, workload)
    }

    fn recursion(&self) -> Result<Recursion> {
        can_list_rows(self.steps)?;
        Ok(Tree::new(self.steps).recursion())
    }
}

impl Design for SmoothTree {
    fn design(spec: &StrategySpec, problem: &Problem) -> Result<Solution<Self>> {
        without_size(spec, Self { steps: problem.steps })
    }
}
