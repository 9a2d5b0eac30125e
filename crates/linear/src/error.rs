//! What can go wrong.

/// A decomposition that double precision does not allow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A Gram matrix without a Cholesky factor.
    #[error("a {0} x {0} matrix is not positive definite")]
    NotPositiveDefinite(usize),
    /// An eigenvalue or singular value iteration that did not end, or was not begun since an entry is not finite.
    #[error("the decomposition of a {0} x {1} matrix did not converge")]
    NoConvergence(usize, usize),
}

/// `Result` with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
