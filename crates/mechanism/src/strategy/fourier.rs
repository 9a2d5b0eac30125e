//! The Fourier mechanism: C_F is the first n columns of the square root of a circulant (2n x 2n) whose corner
//! is A_pre, and the decoder is the first n rows of that root. Noise: every step sums all 2n seed vectors, so
//! that 2n vectors of state, or as much time, are needed from the first step on; O(log n) a step where all steps are made
//! together by fast transforms.

use serde::{Deserialize, Serialize};

use super::contract::Strategy;
use super::design::Design;
use super::design::without_size;
use super::spec::StrategySpec;
use crate::Problem;
use crate::decoder::sum_over_columns;
use crate::fourier::{self, circulant_entry};
use crate::optimize::Solution;
use crate::size::MOST_STORED_DENSE;
use crate::size::can_write_out;
use crate::toeplitz::norm_squared;
use crate::{Encoder, Recursion, Result, Workload};

/// The Fourier mechanism over `steps` steps with the decoder that restarts use.
///
/// ```
/// use antinoise_mechanism::{Participation, Problem, Workload, optimize::Objective, strategy::StrategySpec};
/// let problem = Problem {
///     steps: 100,
///     workload: Workload::Prefix,
///     participation: Participation::Single,
///     objective: Objective::Rms,
/// };
/// let fourier = "fourier".parse::<StrategySpec>()?.design(&problem)?.value;
/// assert_eq!(fourier.recursion()?.state_vectors(), 200);
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
///
/// # Source
/// Multi-epoch paper, Section 4 and Appendix K, mechanism 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fourier {
    steps: usize,
}

impl Strategy for Fourier {
    fn steps(&self) -> usize {
        self.steps
    }

    fn check(&self) -> Result<()> {
        can_write_out(self.steps)
    }

    fn encoder(&self) -> Result<Encoder> {
        Ok(Encoder::Circulant { steps: self.steps, coefficients: fourier::coefficients(self.steps) })
    }

    fn row_errors_squared(&self, workload: &Workload) -> Result<Vec<f64>> {
        let (n, root) = (self.steps, fourier::coefficients(self.steps));
        if *workload == Workload::Prefix {
            return Ok(vec![norm_squared(&root); n]);
        }
        sum_over_columns(2 * n, n, workload, |_, seed| {
            (0..n).map(|t| circulant_entry(&root, t, seed)).collect()
        })
    }

    fn recursion(&self) -> Result<Recursion> {
        let (n, root) = (self.steps, fourier::coefficients(self.steps));
        if n > MOST_STORED_DENSE {
            return Ok(Recursion::Circulant { root });
        }
        let row = |t: usize| (0..2 * n).map(|seed| (seed, circulant_entry(&root, t, seed))).collect();
        Ok(Recursion::Combination { rows: (0..n).map(row).collect() })
    }
}

impl Design for Fourier {
    fn design(spec: &StrategySpec, problem: &Problem) -> Result<Solution<Self>> {
        without_size(spec, Self { steps: problem.steps })
    }
}
