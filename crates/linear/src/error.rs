//! The error of a decomposition.

/// A decomposition that double precision does not allow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A Gram matrix without a Cholesky factor.
    #[error("a {0} x {0} matrix is not positive definite")]
    NotPositiveDefinite(usize),
    /// A matrix of which a column is a combination of later columns, up to rounding.
    #[error("column {0} is a combination of the later columns, up to rounding")]
    Dependent(usize),
    /// An eigenvalue iteration that did not converge, or that was not started because an entry is not finite.
    #[error("the eigenvalues of a {0} x {0} matrix did not converge")]
    NoConvergence(usize),
}

/// `Result` with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
