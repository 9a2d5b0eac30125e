//! The dense linear algebra of antinoise, in double precision, on faer.
//!
//! The crate exists so that faer's generic algorithms are compiled once, behind the few operations that
//! mechanisms need. Matrices are [`Matrix`], column-major; operations take `&Matrix` or a transpose, a [`View`].
//!
//! ```layers
//! matrix: matrices and their transposes
//! ```

mod matrix;

use faer::diag::Diag;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{cholesky_in_place, cholesky_in_place_scratch};
use faer::linalg::evd::{ComputeEigenvectors, self_adjoint_evd, self_adjoint_evd_scratch};
use faer::linalg::lu::partial_pivoting::factor::{lu_in_place, lu_in_place_scratch};
use faer::linalg::lu::partial_pivoting::inverse::{inverse as inverse_of_factors, inverse_scratch};
use faer::linalg::matmul::matmul;
use faer::linalg::svd::{ComputeSvdVectors, svd, svd_scratch};
use faer::linalg::triangular_inverse::invert_lower_triangular;
use faer::{Accum, Mat, MatRef, Par};
pub use matrix::{Matrix, View};

/// A decomposition that double precision does not allow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A Gram matrix without a Cholesky factor.
    #[error("a {0} x {0} matrix is not positive definite")]
    NotPositiveDefinite(usize),
    /// An eigenvalue or singular value iteration that did not end.
    #[error("the decomposition of a {0} x {1} matrix did not converge")]
    NoConvergence(usize, usize),
}

/// `Result` with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Up to so many rows a matrix is done sooner by one thread than others are woken.
const FEW_ROWS: usize = 96;

/// The threads for matrices of so many rows.
fn threads(rows: usize) -> Par {
    if rows <= FEW_ROWS { Par::Seq } else { faer::get_global_parallelism() }
}

/// The lower-triangular C with positive diagonal and C^T C = X, for positive definite X (n x n): the Cholesky
/// factor read backwards. O(n^3 / 3).
///
/// Any factorisation A = B C' with C'^T C' = X has the errors and the sensitivity of A = (A C^-1) C, so that
/// the best decoder of any encoder can be streamed.
///
/// # Errors
/// When X is not positive definite in double precision.
///
/// ```
/// use antinoise_linear::{Matrix, lower_factor};
/// let x = Matrix::from_fn(2, 2, |i, j| if i == j { 4.0 } else { 2.0 });
/// let c = lower_factor(&x)?;
/// assert_eq!((c[(1, 1)], c[(1, 0)], c[(0, 1)]), (2.0, 1.0, 0.0));
/// # Ok::<(), antinoise_linear::Error>(())
/// ```
pub fn lower_factor(x: &Matrix) -> Result<Matrix> {
    let n = x.nrows();
    let reversed = Mat::from_fn(n, n, |i, j| x[(n - 1 - i, n - 1 - j)]);
    let (mut l, threads) = (reversed, threads(n));
    let scratch = cholesky_in_place_scratch::<f64>(n, threads, Default::default());
    let stack = &mut MemBuffer::new(scratch);
    cholesky_in_place(l.as_mut(), Default::default(), threads, MemStack::new(stack), Default::default())
        .map_err(|_| Error::NotPositiveDefinite(n))?;
    Ok(Matrix::from_fn(n, n, |i, j| if i >= j { l[(n - 1 - j, n - 1 - i)] } else { 0.0 }))
}

/// C^-1 of a lower-triangular C with non-zero diagonal. O(n^3 / 3).
pub fn lower_inverse(c: &Matrix) -> Matrix {
    let mut inverse = Mat::zeros(c.nrows(), c.ncols());
    invert_lower_triangular(inverse.as_mut(), c.0.as_ref(), threads(c.nrows()));
    Matrix(inverse)
}

/// The inverse of a square matrix; entries that are not finite where it has none. O(n^3).
pub fn inverse(a: &Matrix) -> Matrix {
    let (n, threads) = (a.nrows(), threads(a.nrows()));
    let (mut factors, mut found) = (a.0.clone(), Mat::zeros(n, n));
    let (mut forward, mut backward) = (vec![0usize; n], vec![0usize; n]);
    let scratch = lu_in_place_scratch::<usize, f64>(n, n, threads, Default::default());
    let stack = &mut MemBuffer::new(scratch.or(inverse_scratch::<usize, f64>(n, threads)));
    let stack = MemStack::new(stack);
    let (_, rows) =
        lu_in_place(factors.as_mut(), &mut forward, &mut backward, threads, stack, Default::default());
    inverse_of_factors(found.as_mut(), factors.as_ref(), factors.as_ref(), rows, threads, stack);
    Matrix(found)
}

/// A B.
pub fn product<'a, 'b>(a: impl Into<View<'a>>, b: impl Into<View<'b>>) -> Matrix {
    multiplied(a.into().0, b.into().0)
}

fn multiplied(a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> Matrix {
    let mut found = Mat::zeros(a.nrows(), b.ncols());
    let rows = a.nrows().max(a.ncols()).max(b.ncols());
    matmul(found.as_mut(), Accum::Replace, a, b, 1.0, threads(rows));
    Matrix(found)
}

/// Eigenvalues in increasing order and eigenvectors as columns of a symmetric matrix, of which the lower half
/// is read. O(n^3).
///
/// # Errors
/// When the iteration does not converge.
pub fn symmetric_eigen(x: &Matrix) -> Result<(Vec<f64>, Matrix)> {
    let (n, threads) = (x.nrows(), threads(x.nrows()));
    let (mut values, mut vectors) = (Diag::zeros(n), Mat::zeros(n, n));
    // faer's own wrapper keeps the vectors to itself: a copy of them would be as large as the matrix.
    let scratch = self_adjoint_evd_scratch::<f64>(n, ComputeEigenvectors::Yes, threads, Default::default());
    self_adjoint_evd(
        x.0.as_ref(),
        values.as_mut(),
        Some(vectors.as_mut()),
        threads,
        MemStack::new(&mut MemBuffer::new(scratch)),
        Default::default(),
    )
    .map_err(|_| Error::NoConvergence(n, n))?;
    Ok((values.column_vector().iter().copied().collect(), Matrix(vectors)))
}

/// Eigenvalues in increasing order of a symmetric matrix, of which the lower half is read. O(n^3).
///
/// # Errors
/// When the iteration does not converge.
pub fn symmetric_eigenvalues(x: &Matrix) -> Result<Vec<f64>> {
    let (n, threads) = (x.nrows(), threads(x.nrows()));
    let mut values = Diag::zeros(n);
    let scratch = self_adjoint_evd_scratch::<f64>(n, ComputeEigenvectors::No, threads, Default::default());
    let stack = &mut MemBuffer::new(scratch);
    self_adjoint_evd(x.0.as_ref(), values.as_mut(), None, threads, MemStack::new(stack), Default::default())
        .map_err(|_| Error::NoConvergence(n, n))?;
    Ok(values.column_vector().iter().copied().collect())
}

/// Thin U (n x r), singular values and V (m x r) with A = U diag(s) V^T, r = min(n, m).
///
/// # Errors
/// When the iteration does not converge.
pub fn singular_values(a: &Matrix) -> Result<(Matrix, Vec<f64>, Matrix)> {
    let (n, m) = (a.nrows(), a.ncols());
    let (r, threads, thin) = (n.min(m), threads(n.max(m)), ComputeSvdVectors::Thin);
    let (mut u, mut values, mut v) = (Mat::zeros(n, r), Diag::zeros(r), Mat::zeros(m, r));
    let scratch = svd_scratch::<f64>(n, m, thin, thin, threads, Default::default());
    let stack = &mut MemBuffer::new(scratch);
    svd(
        a.0.as_ref(),
        values.as_mut(),
        Some(u.as_mut()),
        Some(v.as_mut()),
        threads,
        MemStack::new(stack),
        Default::default(),
    )
    .map_err(|_| Error::NoConvergence(n, m))?;
    Ok((Matrix(u), values.column_vector().iter().copied().collect(), Matrix(v)))
}

/// The first page, whose code must run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_close(a: &Matrix, b: &Matrix) {
        for j in 0..b.ncols() {
            for i in 0..b.nrows() {
                assert!((a[(i, j)] - b[(i, j)]).abs() < 1e-12, "{i} {j}");
            }
        }
    }

    #[test]
    fn every_decomposition_gives_its_matrix_back() {
        let n = 7;
        let entry =
            |i: usize, j: usize| if i >= j { 1.0 / (1.0 + (i - j) as f64 + 0.1 * j as f64) } else { 0.0 };
        let c = Matrix::from_fn(n, n, entry);
        let x = product(c.transpose(), &c);
        assert_close(&lower_factor(&x).unwrap(), &c);
        assert_close(&product(&lower_inverse(&c), &c), &Matrix::identity(n, n));
        assert_close(&product(&inverse(&x), &x), &Matrix::identity(n, n));
        let (values, u) = symmetric_eigen(&x).unwrap();
        let scaled = Matrix::from_fn(n, n, |i, j| u[(i, j)] * values[j]);
        assert_close(&product(&scaled, u.transpose()), &x);
        assert!(values.windows(2).all(|pair| pair[0] <= pair[1]));
        let (u, s, v) = singular_values(&c).unwrap();
        let scaled = Matrix::from_fn(n, n, |i, j| u[(i, j)] * s[j]);
        assert_close(&product(&scaled, v.transpose()), &c);
        for (value, s) in symmetric_eigenvalues(&x).unwrap().iter().zip(s.iter().rev()) {
            assert!((value - s * s).abs() < 1e-12);
        }
    }

    #[test]
    fn a_matrix_that_is_not_positive_definite_is_refused() {
        assert_eq!(lower_factor(&Matrix::zeros(2, 2)), Err(Error::NotPositiveDefinite(2)));
    }
}
