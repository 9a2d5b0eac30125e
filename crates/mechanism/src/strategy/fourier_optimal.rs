//! The Fourier mechanism with its best decoder, A C_F^+: C_F^T C_F is Toeplitz, so that the lower-triangular
//! C' with C'^T C' = C_F^T C_F has an inverse that Durbin's recursion writes down in O(n^2). Noise: O(n m) time
//! a step by making seed noise again.

use antinoise_input::between;
use antinoise_linear::Matrix;
use serde::{Deserialize, Serialize};

use super::contract::Strategy;
use super::design::Design;
use super::design::without_size;
use super::spec::StrategySpec;
use crate::Problem;
use crate::decoder::{finite, sum_over_columns};
use crate::optimize::Solution;
use crate::size::can_store_dense;
use crate::size::can_write_out;
use crate::{Encoder, Recursion, Result, Workload, fourier};

/// The most steps whose errors are added up in O(n^2): about a minute.
const MOST_ADDED_UP: usize = 1 << 18;

/// The Fourier mechanism over `steps` steps with its best decoder.
///
/// # Source
/// Multi-epoch paper, Appendix K, mechanism 2.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FourierOptimal {
    steps: usize,
}

impl FourierOptimal {
    /// C'^-1.
    fn inverse(&self) -> Result<Matrix> {
        can_store_dense(self.steps)?;
        fourier::inverse_factor(&fourier::autocorrelation(self.steps))
    }

    /// Squared row norms of A C'^-1 for prefix sums, without C'^-1 at hand: O(n) memory.
    fn prefix_errors_squared(&self) -> Result<Vec<f64>> {
        between("steps", self.steps, 1, MOST_ADDED_UP, "the most whose errors are added up")?;
        let mut squared = vec![0.0; self.steps];
        fourier::each_inverse_column(&fourier::autocorrelation(self.steps), |column, entries| {
            let mut sum = 0.0;
            for (squared, entry) in squared[column..].iter_mut().zip(entries) {
                sum += entry;
                *squared += sum * sum;
            }
        })?;
        finite(squared)
    }
}

impl Strategy for FourierOptimal {
    fn steps(&self) -> usize {
        self.steps
    }

    fn check(&self) -> Result<()> {
        can_write_out(self.steps)
    }

    fn encoder(&self) -> Result<Encoder> {
        let coefficients = fourier::coefficients(self.steps);
        Ok(Encoder::Triangular(Box::new(Encoder::Circulant { steps: self.steps, coefficients })))
    }

    fn row_errors_squared(&self, workload: &Workload) -> Result<Vec<f64>> {
        if *workload == Workload::Prefix {
            return self.prefix_errors_squared();
        }
        let inverse = self.inverse()?;
        sum_over_columns(self.steps, self.steps, workload, |_, j| inverse.column(j).to_vec())
    }

    fn recursion(&self) -> Result<Recursion> {
        Ok(Recursion::of_lower_triangular(&self.inverse()?))
    }
}

impl Design for FourierOptimal {
    fn design(spec: &StrategySpec, problem: &Problem) -> Result<Solution<Self>> {
        without_size(spec, Self { steps: problem.steps })
    }
}
