//! The dense linear algebra of antinoise, in double precision.
//!
//! The operations that mechanisms need are implemented with faer or, without the feature `faer`, with the
//! short algorithms of the module `reference`. As a crate of their own, they compile faer's generic
//! algorithms once, or not at all. A [`Matrix`] is column-major. Operations take `&Matrix` or a transpose (a
//! [`View`]) and panic if shapes do not match.
//!
//! ```layers
//! error: the error of a decomposition
//! matrix: matrices and their transposes
//! scale: scaling of entries before a decomposition
//! reference: the operations by short algorithms, which the tests compare with faer
//! faer_backend: the operations by faer
//! ```

mod error;
#[cfg(feature = "faer")]
mod faer_backend;
mod matrix;
#[cfg(any(test, not(feature = "faer")))]
mod reference;
mod scale;

use std::cmp::Ordering;

pub use error::{Error, Result};
#[cfg(feature = "faer")]
use faer_backend as backend;
pub use matrix::{Matrix, View};
#[cfg(not(feature = "faer"))]
use reference as backend;
use scale::{column_powers, scaled_near_one};

/// Returns the lower-triangular C with positive diagonal and C^T C = X, for positive definite X (n x n): the
/// Cholesky factor with rows and columns reversed. Only the upper half of X is read. O(n^3 / 3).
///
/// Any encoder C' with C'^T C' = X, decoded by A C'^-1, has the errors and the sensitivity of C, which is
/// lower triangular and can therefore be streamed.
///
/// # Errors
/// When X is not positive definite in double precision.
///
/// ```
/// use antinoise_linear::{Matrix, reverse_cholesky};
/// let x = Matrix::from_fn(2, 2, |i, j| if i == j { 4.0 } else { 2.0 });
/// let c = reverse_cholesky(&x)?;
/// assert_eq!((c[(1, 1)], c[(1, 0)], c[(0, 1)]), (2.0, 1.0, 0.0));
/// # Ok::<(), antinoise_linear::Error>(())
/// ```
pub fn reverse_cholesky(x: &Matrix) -> Result<Matrix> {
    assert_square(x);
    backend::reverse_cholesky(x)
}

/// Returns the lower-triangular L (n x n) with positive diagonal and L^T L = C^T C, for a finite C (r x n,
/// r >= n) of full column rank: the factor of C = Q L for Q with orthonormal columns. O(r n^2).
///
/// C^T C, whose condition number is the square of C's, is not formed. So L is the exact factor of a matrix
/// whose columns differ from those of C by a few units in the last place of their norms.
///
/// # Errors
/// When a column is a combination of later columns, up to rounding.
///
/// # Panics
/// When r < n.
///
/// ```
/// use antinoise_linear::{Matrix, lower_factor};
/// let c = Matrix::from_fn(2, 2, |i, j| if i == j { 0.0 } else { 2.0 - i as f64 });
/// let l = lower_factor(&c)?; // the rows of C in the other order
/// assert_eq!((l[(0, 0)], l[(1, 0)], l[(0, 1)], l[(1, 1)]), (1.0, 0.0, 0.0, 2.0));
/// # Ok::<(), antinoise_linear::Error>(())
/// ```
pub fn lower_factor(c: &Matrix) -> Result<Matrix> {
    factored(c, backend::upper_factor)
}

fn factored(c: &Matrix, upper_factor: impl Fn(&mut Matrix)) -> Result<Matrix> {
    let (r, n) = (c.nrows(), c.ncols());
    assert!(r >= n, "{r} rows of full column rank with {n} columns");
    let powers = column_powers(c);
    // C in reverse order of columns is Q R; R in reverse order of rows and columns is L.
    let mut x = Matrix::from_fn(r, n, |i, j| c[(i, n - 1 - j)] / powers[n - 1 - j]);
    upper_factor(&mut x);
    let smallest = 16.0 * r as f64 * f64::EPSILON;
    // Written as "not above", so that NaN is refused too.
    if let Some(j) =
        (0..n).find(|&j| !matches!(x[(j, j)].abs().partial_cmp(&smallest), Some(Ordering::Greater)))
    {
        return Err(Error::Dependent(n - 1 - j));
    }
    Ok(Matrix::from_fn(n, n, |i, j| match j.cmp(&i) {
        Ordering::Greater => 0.0,
        _ => x[(n - 1 - i, n - 1 - j)] * x[(n - 1 - i, n - 1 - i)].signum() * powers[j],
    }))
}

/// Returns the inverse of a lower-triangular matrix C. Only its lower half is read. Entries are not finite if
/// the diagonal holds a zero. O(n^3 / 3).
pub fn lower_inverse(c: &Matrix) -> Matrix {
    assert_square(c);
    backend::lower_inverse(c)
}

/// Returns the inverse of a square matrix. Entries are not finite if the matrix is singular. O(n^3).
pub fn inverse(a: &Matrix) -> Matrix {
    assert_square(a);
    backend::inverse(a)
}

/// Returns the matrix product A B.
pub fn product<'a, 'b>(a: impl Into<View<'a>>, b: impl Into<View<'b>>) -> Matrix {
    backend::product(a.into(), b.into())
}

/// Returns the eigenvalues of a symmetric matrix in increasing order, and its eigenvectors as columns. Only
/// the lower half is read. O(n^3).
///
/// # Errors
/// When the iteration does not converge, or an entry is not finite.
pub fn symmetric_eigen(x: &Matrix) -> Result<(Vec<f64>, Matrix)> {
    assert_square(x);
    let (x, factor) = scaled_near_one(x)?;
    let (values, vectors) = backend::symmetric_eigen(&x)?;
    Ok((times(values, factor), vectors))
}

/// Returns the eigenvalues of a symmetric matrix in increasing order. Only the lower half is read. O(n^3).
///
/// # Errors
/// When the iteration does not converge, or an entry is not finite.
pub fn symmetric_eigenvalues(x: &Matrix) -> Result<Vec<f64>> {
    assert_square(x);
    let (x, factor) = scaled_near_one(x)?;
    Ok(times(backend::symmetric_eigenvalues(&x)?, factor))
}

fn assert_square(x: &Matrix) {
    assert_eq!(x.nrows(), x.ncols(), "rows and columns of a square matrix");
}

fn times(values: Vec<f64>, factor: f64) -> Vec<f64> {
    values.into_iter().map(|value| value * factor).collect()
}

/// The README, whose code is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;

#[cfg(test)]
mod tests;
