//! Honaker's full estimate: noise on every node of the binary tree over the steps and the best decoder of all,
//! A C_tree^+. It can be streamed after a rotation of the seed noise: C' lower triangular with
//! C'^T C' = C_tree^T C_tree. Noise: O(n m) time a step by making seed noise again.

use antinoise_linear::lower_inverse;
use serde::{Deserialize, Serialize};

use super::contract::Strategy;
use super::design::Design;
use super::design::without_size;
use super::spec::StrategySpec;
use crate::Problem;
use crate::optimize::Solution;
use crate::size::can_store_dense;
use crate::size::can_write_out;
use crate::tree::Tree;
use crate::tree::least_squares::LeastSquares;
use crate::{Encoder, Recursion, Result, Workload};

/// The binary tree over `steps` steps with its best decoder.
///
/// ```
/// use antinoise_mechanism::{Participation, Problem, Workload, optimize::Objective, strategy::StrategySpec};
/// let problem = Problem {
///     steps: 8,
///     workload: Workload::Prefix,
///     participation: Participation::Single,
///     objective: Objective::Max,
/// };
/// let tree = "honaker-full".parse::<StrategySpec>()?.design(&problem)?.value;
/// let sensitivity = tree.sensitivity(&problem.participation)?;
/// let error = tree.error(&problem.workload)?;
/// assert_eq!(sensitivity.value, 2.0); // a step is below four nodes
/// assert_eq!(format!("{:.3}", sensitivity.value * error.rms), "1.656");
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
///
/// # Source
/// Monograph, Section 2.12, B*_tree; multi-epoch paper, Appendix D.4.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HonakerFull {
    steps: usize,
}

impl Strategy for HonakerFull {
    fn steps(&self) -> usize {
        self.steps
    }

    fn check(&self) -> Result<()> {
        can_write_out(self.steps)
    }

    fn encoder(&self) -> Result<Encoder> {
        Ok(Encoder::Triangular(Box::new(Encoder::tree(self.steps))))
    }

    fn row_errors_squared(&self, workload: &Workload) -> Result<Vec<f64>> {
        LeastSquares::new(Tree::new(self.steps)).rows(workload)
    }

    fn recursion(&self) -> Result<Recursion> {
        can_store_dense(self.steps)?;
        let inverse = lower_inverse(&self.encoder()?.to_dense());
        Ok(Recursion::of_lower_triangular(&inverse))
    }
}

impl Design for HonakerFull {
    fn design(spec: &StrategySpec, problem: &Problem) -> Result<Solution<Self>> {
        without_size(spec, Self { steps: problem.steps })
    }
}
