//! Entries of C^T C, one diagonal at a time.

use antinoise_linear::{Matrix, product};

use super::form::Encoder;
use crate::numeric::vector::dot;
use crate::tree::Tree;
use crate::tree::smooth::SmoothLabels;

impl Encoder {
    /// Returns an upper bound on the number of bands of C^T C: (C^T C)\[t, tau\] = 0 if tau - t is at least
    /// this number.
    pub fn bandwidth(&self) -> usize {
        match self {
            Self::Toeplitz { coefficients, .. } | Self::Scaled { coefficients, .. } => coefficients.len(),
            Self::Banded { bands, .. } => *bands,
            Self::Dense(matrix) => dense_bandwidth(matrix),
            Self::Tree { steps, .. } | Self::Circulant { steps, .. } | Self::SmoothTree { steps } => *steps,
            Self::CholeskyOf(of) | Self::LeadingColumns { of, .. } => of.bandwidth(),
            Self::BlockDiagonal { block, period, .. } => block.bandwidth().min(*period),
        }
    }

    /// Returns the diagonal (C^T C)\[t, t + lag\] for t in 0..n - lag.
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
            Self::SmoothTree { .. } => SmoothLabels::new(n).common_nodes(lag),
            Self::Circulant { coefficients: c, .. } => {
                let around = lag % c.len();
                vec![dot(&c[around..], c) + dot(c, &c[c.len() - around..]); n.saturating_sub(lag)]
            }
            Self::CholeskyOf(of) => of.gram_lag(lag),
            Self::LeadingColumns { of, .. } => {
                let mut entries = of.gram_lag(lag);
                entries.truncate(n.saturating_sub(lag));
                entries
            }
            Self::BlockDiagonal { block, period, steps } => {
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

    /// Returns the norm of each column.
    pub(crate) fn column_norms(&self) -> Vec<f64> {
        self.gram_lag(0).iter().map(|x| x.sqrt()).collect()
    }

    /// Returns C^T C as a dense matrix.
    ///
    /// ```
    /// use antinoise_mechanism::Encoder;
    /// let ones = Encoder::Toeplitz { steps: 3, coefficients: vec![1.0; 3] };
    /// assert_eq!(ones.gram()[(2, 0)], 1.0);
    /// ```
    pub fn gram(&self) -> Matrix {
        if let Self::Dense(c) = self {
            return product(c.transpose(), c);
        }
        let n = self.steps();
        let mut gram = Matrix::zeros(n, n);
        for lag in 0..n {
            for (t, x) in self.gram_lag(lag).into_iter().enumerate() {
                (gram[(t, t + lag)], gram[(t + lag, t)]) = (x, x);
            }
        }
        gram
    }
}

/// Returns one more than the largest distance between two columns whose ranges of non-zero rows overlap.
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

/// Returns, for each t, the sum over s < n - t - lag of c_s c_{s + lag}; computed as running sums from the
/// last column backwards.
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
