//! The matrix C itself, in the forms that strategies have, and the entries of C^T C that sensitivity needs.

use antinoise_linear::{Matrix, lower_factor};

use crate::toeplitz::dot;
use crate::tree::Tree;
use crate::tree::smooth::SmoothTree;

/// C, with n columns.
#[derive(Debug, Clone)]
pub enum Encoder {
    /// Lower-triangular Toeplitz T (n x n), by its first column.
    Toeplitz {
        /// n.
        steps: usize,
        /// At most n values; zeros at the end may be left out.
        coefficients: Vec<f64>,
    },
    /// T diag(scales): Toeplitz with its columns scaled.
    Scaled {
        /// First column of T; zeros at the end may be left out.
        coefficients: Vec<f64>,
        /// One factor a column.
        scales: Vec<f64>,
    },
    /// Banded lower triangular (n x n).
    Banded {
        /// Number of diagonals, the main one included.
        bands: usize,
        /// C\[t, t - tau\] at index t bands + tau; ignored where tau > t.
        rows: Vec<f64>,
    },
    /// Any matrix, r x n.
    Dense(Matrix),
    /// C_tree: a row a node of the binary tree over the steps, its height's weight on the steps below it, in postorder;
    /// nodes of the complete tree that have no step below them are left out (up to 2n - 1 x n).
    Tree {
        /// n.
        steps: usize,
        /// A weight a height, from the leaves up: ceil(log2 n) + 1 of them.
        weights: Vec<f64>,
    },
    /// A row a node that the smooth tree's prefixes read, 1 on the steps below it, in the order in which they do.
    SmoothTree {
        /// n.
        steps: usize,
    },
    /// The first `steps` columns of a circulant matrix.
    Circulant {
        /// n.
        steps: usize,
        /// The circulant's first column, at least n values.
        coefficients: Vec<f64>,
    },
    /// The lower-triangular C' (n x n) with C'^T C' = C^T C for a C of full column rank: what C^-1 Z is made
    /// with when the decoder is the best one, A C^+, which has the norms of A C'^-1.
    Triangular(Box<Encoder>),
    /// The first `steps` columns of another: what a run that is cut short uses of a C that cannot be cut to a
    /// square.
    Leading {
        /// At least `steps` columns.
        of: Box<Encoder>,
        /// n.
        steps: usize,
    },
    /// The first `steps` rows and columns of I (x) block: the block started anew every `period` steps.
    Stamped {
        /// C of one run, `period` columns.
        block: Box<Encoder>,
        /// Columns in a run.
        period: usize,
        /// n.
        steps: usize,
    },
}

impl Encoder {
    /// n.
    pub fn steps(&self) -> usize {
        match self {
            Self::Toeplitz { steps, .. } | Self::Stamped { steps, .. } | Self::SmoothTree { steps } => *steps,
            Self::Tree { steps, .. } | Self::Circulant { steps, .. } | Self::Leading { steps, .. } => *steps,
            Self::Triangular(of) => of.steps(),
            Self::Scaled { scales, .. } => scales.len(),
            Self::Banded { bands, rows } => rows.len() / bands,
            Self::Dense(matrix) => matrix.ncols(),
        }
    }

    /// (C^T C)\[t, tau\] = 0 where tau - t is at least this.
    pub fn bandwidth(&self) -> usize {
        match self {
            Self::Toeplitz { coefficients, .. } | Self::Scaled { coefficients, .. } => coefficients.len(),
            Self::Banded { bands, .. } => *bands,
            Self::Dense(matrix) => dense_bandwidth(matrix),
            Self::Tree { steps, .. } | Self::Circulant { steps, .. } | Self::SmoothTree { steps } => *steps,
            Self::Triangular(of) | Self::Leading { of, .. } => of.bandwidth(),
            Self::Stamped { block, period, .. } => block.bandwidth().min(*period),
        }
    }

    /// (C^T C)\[t, t + lag\] for t in 0..n - lag.
    ///
    /// ```
    /// use antinoise_mechanism::Encoder;
    /// let ones = Encoder::Toeplitz { steps: 3, coefficients: vec![1.0; 3] };
    /// assert_eq!(ones.gram_lag(1), [2.0, 1.0]);
    /// ```
    pub fn gram_lag(&self, lag: usize) -> Vec<f64> {
        let n = self.steps();
        match self {
            Self::Toeplitz { coefficients, .. } => toeplitz_lag(coefficients, n, lag),
            Self::Scaled { coefficients, scales } => {
                let mut entries = toeplitz_lag(coefficients, n, lag);
                entries.iter_mut().enumerate().for_each(|(t, x)| *x *= scales[t] * scales[t + lag]);
                entries
            }
            Self::Banded { bands, rows } => (0..n.saturating_sub(lag))
                .map(|t| {
                    let last = (t + bands).min(n);
                    (t + lag..last).map(|i| rows[i * bands + i - t] * rows[i * bands + i - t - lag]).sum()
                })
                .collect(),
            Self::Dense(matrix) => {
                (0..n.saturating_sub(lag)).map(|t| dot(matrix.column(t), matrix.column(t + lag))).collect()
            }
            Self::Tree { weights, .. } => {
                let common = Tree::new(n).squares_from(weights);
                (0..n.saturating_sub(lag)).map(|t| common[Tree::meeting_height(t, t + lag)]).collect()
            }
            Self::SmoothTree { .. } => SmoothTree::new(n).common_nodes(lag),
            Self::Circulant { coefficients: c, .. } => {
                let around = lag % c.len();
                vec![dot(&c[around..], c) + dot(c, &c[c.len() - around..]); n.saturating_sub(lag)]
            }
            Self::Triangular(of) => of.gram_lag(lag),
            Self::Leading { of, .. } => {
                let mut entries = of.gram_lag(lag);
                entries.truncate(n.saturating_sub(lag));
                entries
            }
            Self::Stamped { block, period, steps } => {
                let within = |block: &Self, length: usize| {
                    let mut entries = if lag < length { block.gram_lag(lag) } else { Vec::new() };
                    entries.resize(length, 0.0);
                    entries
                };
                let (runs, rest) = (steps / period, steps % period);
                let mut entries = within(block, *period).repeat(runs);
                if rest > 0 {
                    entries.extend(within(&block.leading(rest), rest));
                }
                entries.truncate(n.saturating_sub(lag));
                entries
            }
        }
    }

    /// Column j of C, from its first row on.
    ///
    /// ```
    /// use antinoise_mechanism::Encoder;
    /// let c = Encoder::Toeplitz { steps: 3, coefficients: vec![1.0, 0.5] };
    /// assert_eq!(c.column(1), [0.0, 1.0, 0.5]);
    /// ```
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
            _ => self.to_dense().column(j).to_vec(),
        }
    }

    /// C^T C written out.
    fn gram(&self) -> Matrix {
        let n = self.steps();
        let mut gram = Matrix::zeros(n, n);
        for lag in 0..n {
            for (t, x) in self.gram_lag(lag).into_iter().enumerate() {
                (gram[(t, t + lag)], gram[(t + lag, t)]) = (x, x);
            }
        }
        gram
    }

    /// C written out.
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
            Self::SmoothTree { steps } => SmoothTree::new(*steps).encoder(),
            Self::Circulant { coefficients: c, .. } => {
                Matrix::from_fn(c.len(), n, |i, j| c[(c.len() + i - j) % c.len()])
            }
            Self::Triangular(of) => {
                lower_factor(&of.gram()).expect("C^T C of full column rank is positive definite")
            }
            Self::Leading { of, .. } => of.to_dense().leading_columns(n),
            Self::Stamped { block, period, steps } => {
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

    /// The binary tree whose nodes count alike.
    pub(crate) fn tree(steps: usize) -> Self {
        Self::Tree { steps, weights: Tree::new(steps).equal_weights() }
    }

    /// The norm of each column.
    pub(crate) fn column_norms(&self) -> Vec<f64> {
        self.gram_lag(0).iter().map(|x| x.sqrt()).collect()
    }

    /// C with its columns scaled to norm 1.
    pub(crate) fn with_unit_columns(self) -> Self {
        let scales: Vec<f64> = self.column_norms().iter().map(|norm| 1.0 / norm).collect();
        self.with_scaled_columns(&scales)
    }

    /// C diag(scales).
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

    /// What a run that is cut short after `steps` steps uses: the first `steps` columns, and as many rows where
    /// C is square.
    fn leading(&self, steps: usize) -> Self {
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
            Self::Stamped { block, period, .. } => {
                Self::Stamped { block: block.clone(), period: *period, steps }
            }
            Self::Tree { .. }
            | Self::SmoothTree { .. }
            | Self::Circulant { .. }
            | Self::Triangular(_)
            | Self::Leading { .. } => Self::Leading { of: Box::new(self.clone()), steps },
        }
    }
}

/// One more than the largest distance between columns that are both other than 0 in the same rows' range.
fn dense_bandwidth(matrix: &Matrix) -> usize {
    let support = |t: usize| {
        let column = matrix.column(t);
        let first = column.iter().position(|&x| x != 0.0)?;
        Some((first, column.iter().rposition(|&x| x != 0.0)?))
    };
    let supports: Vec<Option<(usize, usize)>> = (0..matrix.ncols()).map(support).collect();
    let overlap = |t: usize, tau: usize| match (supports[t], supports[tau]) {
        (Some((first, last)), Some((start, end))) => start <= last && first <= end,
        _ => false,
    };
    let n = supports.len();
    (1..n).rev().find(|lag| (0..n - lag).any(|t| overlap(t, t + lag))).unwrap_or(0) + 1
}

/// sum over s < n - t - lag of c_s c_{s + lag}, by t: a running sum from the last column back.
fn toeplitz_lag(c: &[f64], n: usize, lag: usize) -> Vec<f64> {
    let mut entries = vec![0.0; n.saturating_sub(lag)];
    let mut sum = 0.0;
    for (s, entry) in entries.iter_mut().rev().enumerate() {
        if let Some(later) = c.get(s + lag) {
            sum += c[s] * later;
        }
        *entry = sum;
    }
    entries
}

fn shifted(c: &[f64], n: usize, j: usize, scale: f64) -> Vec<f64> {
    let mut column = vec![0.0; n];
    column[j..].iter_mut().zip(c).for_each(|(x, c)| *x = c * scale);
    column
}

fn toeplitz_dense(c: &[f64], n: usize, scale: impl Fn(usize) -> f64) -> Matrix {
    Matrix::from_fn(n, n, |i, j| if i >= j && i - j < c.len() { c[i - j] * scale(j) } else { 0.0 })
}
