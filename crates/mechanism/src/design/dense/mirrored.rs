//! The dense design for the max loss, single participation, and a workload A that is symmetric about the
//! antidiagonal, as every Toeplitz workload is.
//!
//! The weights p of the queries are then the multipliers v of the steps in reverse order. With J the matrix
//! that reverses the order, the dual is the nuclear norm of the symmetric matrix P^1/2 A J P^1/2. So
//! condition numbers are not squared, there are half as many variables, and an evaluation takes one symmetric
//! eigendecomposition.
//!
//! # Source
//! Monograph, Section 2.12 (the gamma_2 norm).

use antinoise_linear::{Matrix, product, symmetric_eigen};

use super::blocks::Blocks;
use super::certified::{Dual, Evaluation, ascend};
use super::queries::{soft_gradient, soft_weights};
use super::settings::DenseSettings;
use crate::solution::Solution;
use crate::{Problem, Result};

pub(super) struct Mirrored {
    /// A J, the workload with reversed columns.
    reversed: Matrix,
    blocks: Blocks,
    scale_squared: f64,
    softness: f64,
}

/// Returns whether A\[i, j\] = A\[n-1-j, n-1-i\].
pub(super) fn is_mirrored(a: &Matrix) -> bool {
    let last = a.nrows() - 1;
    a.ncols() == a.nrows() && (0..=last).all(|j| (0..=last).all(|i| a[(i, j)] == a[(last - j, last - i)]))
}

impl Mirrored {
    pub(super) fn new(a: &Matrix, scale: f64) -> Self {
        let n = a.nrows();
        Self {
            reversed: Matrix::from_fn(n, n, |i, j| a[(i, n - 1 - j)]),
            blocks: Blocks::new((0..n).map(|t| vec![t]).collect()),
            scale_squared: scale * scale,
            softness: 0.0,
        }
    }
}

impl Dual for Mirrored {
    /// |w| and Q, where P^1/2 A J P^1/2 = Q diag(w) Q^T.
    type State = (Vec<f64>, Matrix);

    fn evaluate(&self, z: &[f64]) -> Result<Evaluation<Self::State>> {
        let n = z.len();
        let p = soft_weights(z, self.softness);
        let roots: Vec<f64> = p.iter().map(|p| p.sqrt()).collect();
        let k = Matrix::from_fn(n, n, |i, j| roots[i] * self.reversed[(i, j)] * roots[j]);
        let (mut values, vectors) = symmetric_eigen(&k)?;
        drop(k);
        values.iter_mut().for_each(|w| *w = w.abs());
        let mut diagonal = vec![0.0; n];
        for (l, w) in values.iter().enumerate() {
            diagonal.iter_mut().zip(vectors.column(l)).for_each(|(sum, q)| *sum += w * q * q);
        }
        let trace: f64 = values.iter().sum();
        let sum: f64 = p.iter().sum();
        let d: Vec<f64> = p.iter().zip(diagonal).map(|(p, d)| 2.0 * (1.0 / sum - d / (p * trace))).collect();
        Ok(Evaluation {
            value: 2.0 * (sum.ln() - trace.ln()),
            gradient: soft_gradient(z, &d, self.softness),
            bound: self.scale_squared * (trace / sum).powi(2),
            state: (values, vectors),
        })
    }

    fn soften(&mut self, softness: f64) {
        self.softness = softness;
    }

    /// Returns X = J P^-1/2 Q diag(|w|) Q^T P^-1/2 J, made feasible.
    fn gram(&self, z: &[f64], (values, vectors): &Self::State) -> Result<Matrix> {
        let n = z.len();
        let p = soft_weights(z, self.softness);
        let mut half = Matrix::zeros(n, n);
        for (l, w) in values.iter().enumerate() {
            let from = vectors.column(l);
            let to = half.column_mut(l).iter_mut().rev();
            to.zip(from.iter().zip(&p)).for_each(|(x, (q, p))| *x = (w / p).sqrt() * q);
        }
        self.blocks.made_feasible(&product(&half, half.transpose()))
    }
}

pub(super) fn minimize(
    dual: Mirrored,
    problem: &Problem,
    settings: &DenseSettings,
) -> Result<Solution<Matrix>> {
    let n = problem.steps;
    ascend(dual, vec![1.0 / (n as f64).sqrt(); n], problem, settings)
}
