//! The dense linear algebra of antinoise, in double precision.
//!
//! It has the few operations that mechanisms need, by faer or, without the feature `faer`, by short algorithms of its own. The
//! crate exists so that faer's generic algorithms are compiled once, or not at all. A [`Matrix`] is
//! column-major. Operations take `&Matrix` or a transpose, a [`View`], and panic where shapes do not match.
//!
//! ```layers
//! error: what can go wrong
//! matrix: matrices and their transposes
//! scale: scaling of entries before a decomposition
//! reference: the operations by short algorithms, the reference of the tests
//! faer_backend: the operations by faer
//! ```

mod error;
#[cfg(feature = "faer")]
mod faer_backend;
mod matrix;
#[cfg(any(test, not(feature = "faer")))]
mod reference;
mod scale;

pub use error::{Error, Result};
#[cfg(feature = "faer")]
use faer_backend as backend;
pub use matrix::{Matrix, View};
#[cfg(not(feature = "faer"))]
use reference as backend;
use scale::scaled_near_one;

/// The lower-triangular C with positive diagonal and C^T C = X, for positive definite X (n x n), of which the upper half
/// is read: the Cholesky factor read backwards. O(n^3 / 3).
///
/// Any factorisation A = B C' with C'^T C' = X has the errors and the sensitivity of A = (A C^-1) C, so that
/// the best decoder of any encoder can be streamed.
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

/// C^-1 of a lower-triangular C, of which the lower half is read; entries that are not finite where its diagonal holds a
/// zero. O(n^3 / 3).
pub fn lower_inverse(c: &Matrix) -> Matrix {
    assert_square(c);
    backend::lower_inverse(c)
}

/// The inverse of a square matrix; entries that are not finite where it has none. O(n^3).
pub fn inverse(a: &Matrix) -> Matrix {
    assert_square(a);
    backend::inverse(a)
}

/// A B.
pub fn product<'a, 'b>(a: impl Into<View<'a>>, b: impl Into<View<'b>>) -> Matrix {
    backend::product(a.into(), b.into())
}

/// Eigenvalues in increasing order and eigenvectors as columns of a symmetric matrix, of which the lower half
/// is read. O(n^3).
///
/// # Errors
/// When the iteration does not converge, or an entry is not finite.
pub fn symmetric_eigen(x: &Matrix) -> Result<(Vec<f64>, Matrix)> {
    assert_square(x);
    let (x, factor) = scaled_near_one(x)?;
    let (values, vectors) = backend::symmetric_eigen(&x)?;
    Ok((times(values, factor), vectors))
}

/// Eigenvalues in increasing order of a symmetric matrix, of which the lower half is read. O(n^3).
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

/// The README, whose code runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;

#[cfg(test)]
mod tests;
