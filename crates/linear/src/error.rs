//! Failures of matrix decompositions.

/// A failure of a matrix decomposition in double precision.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The matrix has no Cholesky factor; its number of rows.
    #[error("a {0} x {0} matrix is not positive definite")]
    NotPositiveDefinite(usize),
    /// A column is a linear combination of later columns, up to rounding; its index.
    #[error("column {0} is a combination of the later columns, up to rounding")]
    Dependent(usize),
    /// The eigenvalue iteration did not converge, or an entry is not finite; the number of rows.
    #[error("the eigenvalues of a {0} x {0} matrix did not converge")]
    NoConvergence(usize),
}

/// `Result` with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
