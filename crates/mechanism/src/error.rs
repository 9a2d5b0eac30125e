//! The error type of this crate.

use antinoise_input::{BadInput, InvalidParameter};

/// A reason why a mechanism cannot be built, or its figures not be computed. [`Error::is_bad_input`] tells
/// bad input from other failures.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter is not valid.
    #[error(transparent)]
    Invalid(#[from] InvalidParameter),
    /// A matrix cannot be decomposed.
    #[error(transparent)]
    Linear(#[from] antinoise_linear::Error),
    /// A computation left the range of double precision.
    #[error("{0}")]
    Numerical(String),
}

impl BadInput for Error {
    fn is_bad_input(&self) -> bool {
        match self {
            // Overflow depends on the parameters alone.
            Self::Invalid(_) | Self::Numerical(_) => true,
            Self::Linear(_) => false,
        }
    }
}

/// `Result` with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
