use antinoise_input::InvalidParameter;

/// Why an accountant gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter that cannot be used.
    #[error(transparent)]
    InvalidParameter(#[from] InvalidParameter),
    /// No value of the parameter that was sought meets the target.
    #[error("no {parameter} meets the target: {reason}")]
    OutOfReach {
        /// The parameter that was sought.
        parameter: &'static str,
        /// What stands in the way.
        reason: String,
    },
}

/// What every operation of this crate returns.
pub type Result<T> = std::result::Result<T, Error>;
