//! The forms of C and their operations.

use antinoise_linear::Matrix;

use crate::tree::smooth::SmoothLabels;
use crate::tree::{Nested, Tree};

/// The strategy matrix C, with one column for each of n steps.
///
/// [`Strategy::encoder`](crate::Strategy::encoder) returns valid encoders; the numbers of an encoder built by
/// hand are not checked.
///
/// # Panics
/// Methods panic if the numbers describe no matrix: 0 bands, rows of the wrong length, or a period of 0.
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
    /// C_tree: one row for each node of the binary tree over the steps, in postorder. The entries are the
    /// weight of the node's height for the steps below the node, and 0 elsewhere. Nodes without a step below
    /// them are left out, so that there are at most 2n - 1 rows.
    Tree {
        /// Number of steps n.
        steps: usize,
        /// One weight for each height, from the leaves up: ceil(log2 n) + 1 weights.
        weights: Vec<f64>,
    },
    /// The smooth tree: one row for each node that some prefix reads, in the order in which they are first
    /// read, with 1 for the steps below the node and 0 elsewhere.
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
    /// The lower-triangular C' (n x n) with C'^T C' = C^T C, for a C of full column rank. Its decoder A C'^-1
    /// has the row norms of A C^+, the best decoder of C.
    CholeskyOf(Box<Encoder>),
    /// The first `steps` columns of another encoder: the part of a C with more rows than columns that the
    /// first `steps` steps use.
    LeadingColumns {
        /// The other encoder, with at least `steps` columns.
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

    /// Returns the encoder of the binary tree with weights 1.
    pub(crate) fn tree(steps: usize) -> Self {
        Self::Tree { steps, weights: Tree::new(steps).equal_weights() }
    }

    /// Returns the nodes of a tree as nested ranges of steps; `None` if C is not a tree, or trees that follow
    /// one another.
    pub(crate) fn nested(&self) -> Option<Nested> {
        match self {
            Self::Tree { steps, weights } => Some(Nested::complete(weights).leading(*steps)),
            Self::SmoothTree { steps } => Some(SmoothLabels::new(*steps).nested()),
            Self::CholeskyOf(of) => of.nested(),
            Self::LeadingColumns { of, steps } => Some(of.nested()?.leading(*steps)),
            Self::BlockDiagonal { block, period, steps } => {
                let rest =
                    if steps % period > 0 { Some(block.leading(steps % period).nested()?) } else { None };
                Some(block.nested()?.repeated(steps / period, rest))
            }
            Self::Toeplitz { .. }
            | Self::Scaled { .. }
            | Self::Banded { .. }
            | Self::Dense(_)
            | Self::Circulant { .. } => None,
        }
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

    /// Returns the part of C that the first `steps` steps use: the first `steps` columns and, if C is square,
    /// the first `steps` rows.
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
