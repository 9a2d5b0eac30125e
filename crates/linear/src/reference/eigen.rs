//! Eigenvalues and eigenvectors of a symmetric matrix X (Golub and Van Loan, Matrix Computations, Sections
//! 8.3.1 to 8.3.3):
//!
//! 1. Householder reflections Q make X tridiagonal: X = Q T Q^T.
//! 2. Steps of the shifted QR iteration make T diagonal; the rotations of each step are multiplied into Q.

use super::vector::{NEGLIGIBLE_SQUARE, add_scaled, dot, rotate, two_columns};
use crate::error::{Error, Result};
use crate::matrix::Matrix;

/// Maximum number of QR steps for one eigenvalue; two are typical.
const MAX_STEPS: usize = 60;

pub(crate) fn symmetric_eigen(x: &Matrix) -> Result<(Vec<f64>, Matrix)> {
    let n = x.nrows();
    let (tridiagonal, reflections) = Tridiagonal::of(x.clone());
    let (values, vectors) = tridiagonal.diagonalised(multiplied(&reflections))?;
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| values[i].total_cmp(&values[j]));
    let sorted = Matrix::from_fn(n, n, |i, j| vectors[(i, order[j])]);
    Ok((order.iter().map(|&j| values[j]).collect(), sorted))
}

pub(crate) fn symmetric_eigenvalues(x: &Matrix) -> Result<Vec<f64>> {
    let (tridiagonal, _) = Tridiagonal::of(x.clone());
    // With no rows to rotate, no eigenvectors are computed.
    let (mut values, _) = tridiagonal.diagonalised(Matrix::zeros(0, x.nrows()))?;
    values.sort_by(f64::total_cmp);
    Ok(values)
}

/// A symmetric tridiagonal matrix.
struct Tridiagonal {
    diagonal: Vec<f64>,
    off_diagonal: Vec<f64>,
}

impl Tridiagonal {
    /// Returns T with X = Q T Q^T for symmetric X, of which only the lower half is read, and a matrix that
    /// stores Q: column j holds, below its diagonal, the u of the j-th reflection I - 2 u u^T in the product
    /// Q.
    fn of(mut x: Matrix) -> (Self, Matrix) {
        let n = x.nrows();
        let mut off_diagonal = vec![0.0; n.saturating_sub(1)];
        for k in 0..off_diagonal.len() {
            let (u, left) = reflection(&x.column(k)[k + 1..]);
            off_diagonal[k] = left;
            // X <- X - u q^T - q u^T with q = 2 (p - (u . p) u) and p = X u; each entry of the lower half
            // once.
            let mut p = vec![0.0; u.len()];
            for j in 0..u.len() {
                let column = &x.column(k + 1 + j)[k + 1 + j..];
                p[j] += dot(column, &u[j..]);
                add_scaled(&mut p[j + 1..], u[j], &column[1..]);
            }
            let along = dot(&u, &p);
            let q: Vec<f64> = p.iter().zip(&u).map(|(p, u)| 2.0 * (p - along * u)).collect();
            for j in 0..u.len() {
                let column = &mut x.column_mut(k + 1 + j)[k + 1 + j..];
                add_scaled(column, -u[j], &q[j..]);
                add_scaled(column, -q[j], &u[j..]);
            }
            x.column_mut(k)[k + 1..].copy_from_slice(&u);
        }
        let diagonal = (0..n).map(|k| x[(k, k)]).collect();
        (Self { diagonal, off_diagonal }, x)
    }

    /// Returns the eigenvalues of T, unsorted, and Q Z, where the columns of Z are the eigenvectors of T.
    fn diagonalised(mut self, mut q: Matrix) -> Result<(Vec<f64>, Matrix)> {
        let (n, mut steps) = (self.diagonal.len(), 0);
        let mut last = n.saturating_sub(1);
        // Dropping off-diagonal entries up to this size moves eigenvalues by no more than rounding does.
        let largest =
            self.diagonal.iter().chain(&self.off_diagonal).fold(0.0, |most: f64, x| most.max(x.abs()));
        let negligible = largest * f64::EPSILON / 2.0;
        while last > 0 {
            let linked = (0..last).rev().take_while(|&k| self.off_diagonal[k].abs() > negligible);
            let Some(first) = linked.last() else {
                (last, steps) = (last - 1, 0);
                continue;
            };
            if steps == MAX_STEPS {
                return Err(Error::NoConvergence(n));
            }
            self.step(first, last, &mut q);
            steps += 1;
        }
        Ok((self.diagonal, q))
    }

    /// Applies one QR step to rows `first..=last`, shifted by an eigenvalue of the last 2 x 2 block: T <- G^T
    /// T G and Q <- Q G for the step's rotations G.
    fn step(&mut self, first: usize, last: usize, q: &mut Matrix) {
        let (d, e) = (&mut self.diagonal, &mut self.off_diagonal);
        let half = (d[last - 1] - d[last]) / 2.0;
        let shift = d[last] - e[last - 1] * (e[last - 1] / (half + half.hypot(e[last - 1]).copysign(half)));
        // The next rotation maps the pair (x, beyond) to (length, 0).
        let (mut x, mut beyond) = (d[first] - shift, e[first]);
        for k in first..last {
            let length = x.hypot(beyond);
            let (cos, sin) = if length == 0.0 { (1.0, 0.0) } else { (x / length, beyond / length) };
            if k > first {
                e[k - 1] = length;
            }
            let turned = sin * (d[k + 1] - d[k]) + 2.0 * cos * e[k];
            d[k] += sin * turned;
            d[k + 1] -= sin * turned;
            e[k] = cos * turned - e[k];
            if k + 1 < last {
                (x, beyond) = (e[k], sin * e[k + 1]);
                e[k + 1] *= cos;
            }
            let (left, right) = two_columns(q, k, k + 1);
            rotate(left, right, (cos, sin));
        }
    }
}

/// Returns a unit vector u (or 0 if none is needed) and the number b such that (I - 2 u u^T) v = b e_0.
fn reflection(v: &[f64]) -> (Vec<f64>, f64) {
    let squared = dot(v, v);
    if squared < NEGLIGIBLE_SQUARE {
        return (vec![0.0; v.len()], 0.0);
    }
    let norm = squared.sqrt();
    let left = -norm.copysign(v[0]);
    let length = (2.0 * norm * (norm + v[0].abs())).sqrt();
    let mut u: Vec<f64> = v.iter().map(|v| v / length).collect();
    u[0] = (v[0] - left) / length;
    (u, left)
}

/// Returns the product of the reflections I - 2 u u^T whose u are stored below the diagonal.
fn multiplied(reflections: &Matrix) -> Matrix {
    let n = reflections.nrows();
    let mut q = Matrix::identity(n, n);
    for k in (0..n.saturating_sub(1)).rev() {
        let u = &reflections.column(k)[k + 1..];
        for j in k + 1..n {
            let y = &mut q.column_mut(j)[k + 1..];
            add_scaled(y, -2.0 * dot(u, y), u);
        }
    }
    q
}
