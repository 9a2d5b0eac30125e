//! The dense design for a single pattern that contains every step (full batch): C is diagonal, and x_t is the
//! square of its entry t.
//!
//! > minimise sum_t c_t / x_t subject to sum_t x_t = 1, c_t = sum_i p_i A\[i, t\]^2,
//!
//! so x_t is proportional to sqrt(c_t), and the squared loss is (sum_t sqrt(c_t))^2. For the RMS loss p = 1.
//! For the max loss it is maximised over the weights p_i = z_i^2 of sum 1. O(n^2) an evaluation.

use antinoise_linear::Matrix;

use super::certified::{Dual, Evaluation, ascend};
use super::settings::DenseSettings;
use crate::problem::Objective;
use crate::solution::Solution;
use crate::{Problem, Result};

/// The x_t of columns of A that are 0, relative to the largest x_t; C must stay invertible.
const MIN_SHARE: f64 = 1e-12;

pub(super) struct OnePattern {
    a: Matrix,
    scale_squared: f64,
}

impl OnePattern {
    pub(super) fn new(a: Matrix, scale: f64) -> Self {
        Self { a, scale_squared: scale * scale }
    }

    /// Returns the weight p_i of query i, which is 1 if there are no variables (RMS loss).
    fn weight(z: &[f64], i: usize) -> f64 {
        z.get(i).map_or(1.0, |z| z * z)
    }
}

impl Dual for OnePattern {
    /// sqrt(c_t) of each step t.
    type State = Vec<f64>;

    fn evaluate(&self, z: &[f64]) -> Result<Evaluation<Vec<f64>>> {
        let n = self.a.ncols();
        let root = |t: usize| {
            let a = self.a.column(t).iter().enumerate();
            a.map(|(i, a)| Self::weight(z, i) * a * a).sum::<f64>().sqrt()
        };
        let roots: Vec<f64> = (0..n).map(root).collect();
        let trace: f64 = roots.iter().sum();
        let sum = if z.is_empty() { 1.0 } else { z.iter().map(|z| z * z).sum() };
        let mut slopes = vec![0.0; z.len()];
        for (t, root) in roots.iter().enumerate().filter(|(_, root)| **root > 0.0) {
            slopes.iter_mut().zip(self.a.column(t)).for_each(|(slope, a)| *slope += a * a / root);
        }
        Ok(Evaluation {
            value: f64::ln(sum) - 2.0 * trace.ln(),
            gradient: z.iter().zip(slopes).map(|(z, slope)| 2.0 * z * (1.0 / sum - slope / trace)).collect(),
            bound: self.scale_squared * trace * trace / sum,
            state: roots,
        })
    }

    fn gram(&self, _: &[f64], roots: &Vec<f64>) -> Result<Matrix> {
        let least = MIN_SHARE * roots.iter().copied().fold(0.0, f64::max);
        let total: f64 = roots.iter().map(|root| root.max(least)).sum();
        let n = roots.len();
        Ok(Matrix::from_fn(n, n, |i, j| if i == j { roots[i].max(least) / total } else { 0.0 }))
    }
}

pub(super) fn minimize(
    dual: OnePattern,
    problem: &Problem,
    settings: &DenseSettings,
) -> Result<Solution<Matrix>> {
    let rows = if problem.objective == Objective::Max { dual.a.nrows() } else { 0 };
    ascend(dual, vec![1.0; rows], problem, settings)
}
