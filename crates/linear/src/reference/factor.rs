//! Triangular factors and their inverses.

use super::vector::{add_scaled, dot};
use crate::error::{Error, Result};
use crate::matrix::Matrix;

/// Computes C from its last row to its first. X\[i, j\] for i <= j is the inner product of columns i and j of
/// C. At row j, the entries of column j below the diagonal are known; they give the diagonal entry, which
/// gives the rest of row j.
pub(crate) fn reverse_cholesky(x: &Matrix) -> Result<Matrix> {
    let n = x.nrows();
    let mut c = Matrix::zeros(n, n);
    for j in (0..n).rev() {
        let below = c.column(j)[j + 1..].to_vec();
        let pivot = x[(j, j)] - dot(&below, &below);
        // Also refuses NaN.
        if !matches!(pivot.partial_cmp(&0.0), Some(std::cmp::Ordering::Greater)) {
            return Err(Error::NotPositiveDefinite(n));
        }
        let diagonal = pivot.sqrt();
        c[(j, j)] = diagonal;
        for i in 0..j {
            c[(j, i)] = (x[(i, j)] - dot(&c.column(i)[j + 1..], &below)) / diagonal;
        }
    }
    Ok(c)
}

/// Replaces the upper triangle of X by the R of X = Q R: a Householder reflection for each column maps its
/// entries from the diagonal on to a multiple of e_0. Entries below the diagonal are meaningless afterwards.
pub(crate) fn upper_factor(x: &mut Matrix) {
    for j in 0..x.ncols() {
        let mut normal = x.column(j)[j..].to_vec();
        let length = dot(&normal, &normal).sqrt();
        let diagonal = -length.copysign(normal[0]);
        normal[0] -= diagonal;
        let square = dot(&normal, &normal);
        if square > 0.0 {
            for k in j + 1..x.ncols() {
                let rest = &mut x.column_mut(k)[j..];
                let factor = -2.0 * dot(&normal, rest) / square;
                add_scaled(rest, factor, &normal);
            }
        }
        x[(j, j)] = diagonal;
    }
}

/// Solves C y = e_j for each column j by forward substitution.
pub(crate) fn lower_inverse(c: &Matrix) -> Matrix {
    let n = c.nrows();
    let mut found = Matrix::zeros(n, n);
    for j in 0..n {
        let y = found.column_mut(j);
        y[j] = 1.0;
        for k in j..n {
            let column = &c.column(k)[k..];
            let (at, below) = y[k..].split_first_mut().expect("row k is there");
            *at /= column[0];
            add_scaled(below, -*at, &column[1..]);
        }
    }
    found
}
