//! The entries of C: a single column, or the whole matrix.

use antinoise_linear::{Matrix, reverse_cholesky};

use super::form::Encoder;
use crate::tree::Tree;
use crate::tree::smooth::SmoothLabels;

impl Encoder {
    /// Returns column j of C, all rows included.
    ///
    /// ```
    /// use antinoise_mechanism::Encoder;
    /// let c = Encoder::Toeplitz { steps: 3, coefficients: vec![1.0, 0.5] };
    /// assert_eq!(c.column(1), [0.0, 1.0, 0.5]);
    /// ```
    ///
    /// # Panics
    /// When `j` is not below n.
    pub fn column(&self, j: usize) -> Vec<f64> {
        let n = self.steps();
        match self {
            Self::Toeplitz { coefficients, .. } => shifted(coefficients, n, j, 1.0),
            Self::Scaled { coefficients, scales } => shifted(coefficients, n, j, scales[j]),
            Self::Banded { bands, rows } => {
                let below = |i: usize| i >= j && i - j < *bands;
                (0..n).map(|i| if below(i) { rows[i * bands + i - j] } else { 0.0 }).collect()
            }
            Self::Dense(matrix) => matrix.column(j).to_vec(),
            Self::Tree { .. }
            | Self::SmoothTree { .. }
            | Self::Circulant { .. }
            | Self::LeadingColumns { .. }
            | Self::CholeskyOf(_)
            | Self::BlockDiagonal { .. } => self.to_dense().column(j).to_vec(),
        }
    }

    /// Returns C as a dense matrix.
    pub fn to_dense(&self) -> Matrix {
        let n = self.steps();
        match self {
            Self::Toeplitz { coefficients, .. } => toeplitz_dense(coefficients, n, |_| 1.0),
            Self::Scaled { coefficients, scales } => toeplitz_dense(coefficients, n, |j| scales[j]),
            Self::Banded { bands, rows } => {
                Matrix::from_fn(
                    n,
                    n,
                    |i, j| if i >= j && i - j < *bands { rows[i * bands + i - j] } else { 0.0 },
                )
            }
            Self::Dense(matrix) => matrix.clone(),
            Self::Tree { steps, weights } => Tree::new(*steps).encoder(weights),
            Self::SmoothTree { steps } => SmoothLabels::new(*steps).encoder(),
            Self::Circulant { coefficients: c, .. } => {
                Matrix::from_fn(c.len(), n, |i, j| c[(c.len() + i - j) % c.len()])
            }
            Self::CholeskyOf(of) => {
                reverse_cholesky(&of.gram()).expect("C^T C of full column rank is positive definite")
            }
            Self::LeadingColumns { of, .. } => of.to_dense().leading_columns(n),
            Self::BlockDiagonal { block, period, steps } => {
                let (whole, rest) = (block.to_dense(), steps % period);
                let rest = if rest > 0 { block.leading(rest).to_dense() } else { Matrix::zeros(0, 0) };
                let full_rows = steps / period * whole.nrows();
                Matrix::from_fn(full_rows + rest.nrows(), n, |i, j| match i.checked_sub(full_rows) {
                    None if i / whole.nrows() == j / period => whole[(i % whole.nrows(), j % period)],
                    Some(i) if j >= steps - steps % period => rest[(i, j % period)],
                    _ => 0.0,
                })
            }
        }
    }
}

fn shifted(c: &[f64], n: usize, j: usize, scale: f64) -> Vec<f64> {
    let mut column = vec![0.0; n];
    column[j..].iter_mut().zip(c).for_each(|(x, c)| *x = c * scale);
    column
}

fn toeplitz_dense(c: &[f64], n: usize, scale: impl Fn(usize) -> f64) -> Matrix {
    Matrix::from_fn(n, n, |i, j| if i >= j && i - j < c.len() { c[i - j] * scale(j) } else { 0.0 })
}
