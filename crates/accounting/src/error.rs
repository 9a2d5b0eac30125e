use antinoise_input::{BadInput, InvalidParameter};

/// The error of this crate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An invalid parameter.
    #[error(transparent)]
    Invalid(#[from] InvalidParameter),
    /// No value of the solved-for parameter meets the target.
    #[error("no {parameter} meets the target: {reason}")]
    OutOfReach {
        /// The solved-for parameter.
        parameter: &'static str,
        /// The reason.
        reason: String,
    },
}

impl BadInput for Error {
    fn is_bad_input(&self) -> bool {
        match self {
            Self::Invalid(_) => true,
            Self::OutOfReach { .. } => false,
        }
    }
}

/// `Result` with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
