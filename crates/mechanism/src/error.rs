//! Why a mechanism could not be built or measured.

use antinoise_input::InvalidParameter;

/// The error of this crate; [`Error::is_bad_input`] distinguishes bad input from other errors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter that cannot be used.
    #[error(transparent)]
    Invalid(#[from] InvalidParameter),
    /// A matrix that could not be decomposed.
    #[error(transparent)]
    Linear(#[from] antinoise_linear::Error),
    /// A computation gave a number that is not finite.
    #[error("{0}")]
    Numerical(String),
}

impl Error {
    /// True when the caller's input is the cause.
    pub fn is_bad_input(&self) -> bool {
        matches!(self, Self::Invalid(_))
    }
}

/// `Result` with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
