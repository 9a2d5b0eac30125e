//! The forms of C and their operations.

use antinoise_linear::Matrix;

use crate::tree::Tree;

/// The strategy matrix C, with one column for each of n steps.
///
/// [`Strategy::encoder`](crate::Strategy::encoder) gives valid numbers; others are not checked.
///
/// # Panics
/// Methods panic on numbers that describe no matrix: no bands, rows of another length, a period of 0.
#[derive(Debug, Clone)]
pub enum Encoder {
    /// Lower-triangular Toeplitz T (n x n), by its first column.
    Toeplitz {
        /// Number of steps n.
        steps: usize,
        /// At most n values; trailing zeros may be left out.
        coefficients: Vec<f64>,
    },
    /// T diag(scales): Toeplitz with its columns scaled.
    Scaled {
        /// First column of T; trailing zeros may be left out.
        coefficients: Vec<f64>,
        /// One factor per column.
        scales: Vec<f64>,
    },
    /// Banded lower triangular (n x n).
    Banded {
        /// Number of diagonals, the main one included.
        bands: usize,
        /// C\[t, t - tau\] at index t bands + tau; ignored if tau > t.
        rows: Vec<f64>,
    },
    /// Any matrix, r x n.
    Dense(Matrix),
    /// C_tree: one row per node of the binary tree over the steps, in postorder, with the weight of its
    /// height on the steps below it. Nodes of the complete tree without a step below them are left out (at
    /// most 2n - 1 x n).
    Tree {
        /// Number of steps n.
        steps: usize,
        /// One weight per height, from the leaves up: ceil(log2 n) + 1 of them.
        weights: Vec<f64>,
    },
    /// One row for each node that the prefixes of the smooth tree read, 1 on the steps below it, in the order
    /// of reading.
    SmoothTree {
        /// Number of steps n.
        steps: usize,
    },
    /// The first `steps` columns of a circulant matrix.
    Circulant {
        /// Number of steps n.
        steps: usize,
        /// First column of the circulant, at least n values.
        coefficients: Vec<f64>,
    },
    /// The lower-triangular C' (n x n) with C'^T C' = C^T C for a C of full column rank. Its noise C'^-1 Z
    /// belongs to the best decoder A C^+, which has the norms of A C'^-1.
    CholeskyOf(Box<Encoder>),
    /// The first `steps` columns of another form: the part that a truncated run uses if C cannot be cut to a
    /// square matrix.
    LeadingColumns {
        /// A matrix of at least `steps` columns.
        of: Box<Encoder>,
        /// Number of steps n.
        steps: usize,
    },
    /// The first `steps` rows and columns of I (x) block: the block is repeated along the diagonal every
    /// `period` steps.
    BlockDiagonal {
        /// C of one run, with `period` columns.
        block: Box<Encoder>,
        /// Number of steps of a run.
        period: usize,
        /// Number of steps n.
        steps: usize,
    },
}

impl Encoder {
    /// Number of steps n.
    pub fn steps(&self) -> usize {
        match self {
            Self::Toeplitz { steps, .. } | Self::BlockDiagonal { steps, .. } | Self::SmoothTree { steps } => {
                *steps
            }
            Self::Tree { steps, .. } | Self::Circulant { steps, .. } | Self::LeadingColumns { steps, .. } => {
                *steps
            }
            Self::CholeskyOf(of) => of.steps(),
            Self::Scaled { scales, .. } => scales.len(),
            Self::Banded { bands, rows } => rows.len() / bands,
            Self::Dense(matrix) => matrix.ncols(),
        }
    }

    /// Returns the binary tree with equal weights.
    pub(crate) fn tree(steps: usize) -> Self {
        Self::Tree { steps, weights: Tree::new(steps).equal_weights() }
    }

    /// Scales the columns of C to norm 1.
    pub(crate) fn with_unit_columns(self) -> Self {
        let scales: Vec<f64> = self.column_norms().iter().map(|norm| 1.0 / norm).collect();
        self.with_scaled_columns(&scales)
    }

    /// Returns C diag(scales).
    pub(crate) fn with_scaled_columns(self, scales: &[f64]) -> Self {
        match self {
            Self::Toeplitz { coefficients, .. } => Self::Scaled { coefficients, scales: scales.to_vec() },
            Self::Scaled { coefficients, scales: first } => {
                let scales = first.iter().zip(scales).map(|(x, y)| x * y).collect();
                Self::Scaled { coefficients, scales }
            }
            Self::Banded { bands, mut rows } => {
                for (t, row) in rows.chunks_exact_mut(bands).enumerate() {
                    row.iter_mut().enumerate().take(t + 1).for_each(|(tau, x)| *x *= scales[t - tau]);
                }
                Self::Banded { bands, rows }
            }
            other => {
                let c = other.to_dense();
                Self::Dense(Matrix::from_fn(c.nrows(), c.ncols(), |i, j| c[(i, j)] * scales[j]))
            }
        }
    }

    /// Returns the part of C that a run truncated to `steps` steps uses: the first `steps` columns and, if C
    /// is square, as many rows.
    pub(crate) fn leading(&self, steps: usize) -> Self {
        let cut = |x: &[f64], length: usize| x[..x.len().min(length)].to_vec();
        match self {
            Self::Toeplitz { coefficients, .. } => {
                Self::Toeplitz { steps, coefficients: cut(coefficients, steps) }
            }
            Self::Scaled { coefficients, scales } => {
                Self::Scaled { coefficients: cut(coefficients, steps), scales: cut(scales, steps) }
            }
            Self::Banded { bands, rows } => Self::Banded { bands: *bands, rows: cut(rows, steps * bands) },
            Self::Dense(matrix) => {
                let rows = if matrix.nrows() == matrix.ncols() { steps } else { matrix.nrows() };
                Self::Dense(Matrix::from_fn(rows, steps, |i, j| matrix[(i, j)]))
            }
            Self::BlockDiagonal { block, period, .. } => {
                Self::BlockDiagonal { block: block.clone(), period: *period, steps }
            }
            Self::Tree { .. }
            | Self::SmoothTree { .. }
            | Self::Circulant { .. }
            | Self::CholeskyOf(_)
            | Self::LeadingColumns { .. } => Self::LeadingColumns { of: Box::new(self.clone()), steps },
        }
    }
}
