use antinoise_input::InvalidParameter;

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

impl Error {
    /// Whether the caller's input is the cause.
    ///
    /// ```
    /// assert!(antinoise_accounting::Gdp::new(-1.0).unwrap_err().is_bad_input());
    /// ```
    pub fn is_bad_input(&self) -> bool {
        matches!(self, Self::Invalid(_))
    }
}

/// `Result` with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
