//! The eigendecomposition K = Q diag(w) Q^T (n x n, positive semi-definite) and the square root of K.

use antinoise_linear::{Matrix, symmetric_eigen, symmetric_eigenvalues};

use crate::Result;

/// Addition to the eigenvalues of K, relative to the trace of K at the start. Workloads without an inverse
/// make K singular; rounding errors of eigenvalues are of the same size.
pub(super) const FLOOR: f64 = 1e-15;

/// Bound on the error of a backward-stable eigenvalue, relative to the largest.
const ROUNDING: f64 = 4.0 * f64::EPSILON;

/// The eigenvalues and eigenvectors of K.
pub(super) struct Spectrum {
    /// sqrt(w + floor) for each eigenvalue w.
    pub(super) roots: Vec<f64>,
    /// The eigenvalues w, with negative rounding errors replaced by 0.
    values: Vec<f64>,
    /// Q, whose columns are the eigenvectors of K.
    pub(super) vectors: Matrix,
}

/// Returns a lower bound on the nuclear norm of N (q x n), from the eigenvalues of [[0, N], [N^T, 0]], which
/// are the singular values of N and their negatives.
pub(super) fn certified_nuclear_norm(n: &Matrix) -> Result<f64> {
    let (rows, columns) = (n.nrows(), n.ncols());
    let mut both = Matrix::zeros(rows + columns, rows + columns);
    for j in 0..columns {
        // Only the lower half is read.
        both.column_mut(j)[columns..].copy_from_slice(n.column(j));
    }
    let values = symmetric_eigenvalues(&both)?;
    let largest = values.iter().copied().fold(0.0, f64::max);
    Ok(values.iter().map(|value| (value - ROUNDING * largest).max(0.0)).sum())
}

impl Spectrum {
    pub(super) fn new(k: Matrix, floor: f64) -> Result<Self> {
        let (mut values, vectors) = symmetric_eigen(&k)?;
        values.iter_mut().for_each(|w| *w = w.max(0.0));
        let roots = values.iter().map(|w| (w + floor).sqrt()).collect();
        Ok(Self { roots, values, vectors })
    }

    /// Returns tr (K + floor I)^1/2, a smooth function of K.
    pub(super) fn trace(&self) -> f64 {
        self.roots.iter().sum()
    }

    /// Returns a lower bound on tr K^1/2, for certificates: each eigenvalue is reduced by the bound on its
    /// rounding error. Without this, the roots of the rounding errors would add up where K is singular.
    pub(super) fn certified_trace(&self) -> f64 {
        let largest = self.values.iter().copied().fold(0.0, f64::max);
        self.values.iter().map(|w| (w - ROUNDING * largest).max(0.0).sqrt()).sum()
    }

    /// Returns the eigenvalues of K (K + floor I)^-1/2, which the derivative of the trace needs.
    pub(super) fn slopes(&self) -> Vec<f64> {
        self.values.iter().zip(&self.roots).map(|(w, root)| w / root).collect()
    }

    /// Returns H = Q diag(roots)^1/2, so that H H^T = (K + floor I)^1/2.
    pub(super) fn half(&self) -> Matrix {
        let mut half = self.vectors.clone();
        for (l, root) in self.roots.iter().enumerate() {
            half.column_mut(l).iter_mut().for_each(|q| *q *= root.sqrt());
        }
        half
    }

    /// Returns the diagonal of (K + floor I)^1/2.
    pub(super) fn root_diagonal(&self) -> Vec<f64> {
        let mut diagonal = vec![0.0; self.roots.len()];
        for (l, root) in self.roots.iter().enumerate() {
            diagonal.iter_mut().zip(self.vectors.column(l)).for_each(|(sum, q)| *sum += root * q * q);
        }
        diagonal
    }
}
