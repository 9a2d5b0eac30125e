//! Why a command failed, and the exit status that says so.

use std::fmt;
use std::process::ExitCode;

use antinoise_input::InvalidParameter;

/// A message and whether the input is to blame.
#[derive(Debug)]
pub struct Failure {
    message: String,
    bad_input: bool,
}

impl Failure {
    /// Bad input: exit status 2.
    pub fn input(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), bad_input: true }
    }

    /// Anything else: exit status 1.
    pub fn other(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), bad_input: false }
    }

    fn judged(message: impl fmt::Display, bad_input: bool) -> Self {
        Self { message: message.to_string(), bad_input }
    }

    /// 2 for bad input, 1 for the rest.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(if self.bad_input { 2 } else { 1 })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<InvalidParameter> for Failure {
    fn from(error: InvalidParameter) -> Self {
        Self::input(error)
    }
}

impl From<antinoise_mechanism::Error> for Failure {
    fn from(error: antinoise_mechanism::Error) -> Self {
        Self::judged(&error, error.is_invalid_parameter())
    }
}

impl From<antinoise_accounting::Error> for Failure {
    fn from(error: antinoise_accounting::Error) -> Self {
        Self::judged(&error, matches!(error, antinoise_accounting::Error::InvalidParameter(_)))
    }
}

impl From<antinoise_plan::Error> for Failure {
    fn from(error: antinoise_plan::Error) -> Self {
        Self::judged(&error, error.is_bad_input())
    }
}

impl From<antinoise_noise::NoiseError> for Failure {
    fn from(error: antinoise_noise::NoiseError) -> Self {
        use antinoise_noise::NoiseError::{Checkpoint, Input, Io};
        let absent = |source: &std::io::Error| source.kind() == std::io::ErrorKind::NotFound;
        let bad_input = match &error {
            Input(_) | Checkpoint { .. } => true,
            Io { source, .. } => absent(source),
            _ => false,
        };
        Self::judged(&error, bad_input)
    }
}

impl From<antinoise_audit::Error> for Failure {
    fn from(error: antinoise_audit::Error) -> Self {
        Self::judged(&error, error.is_bad_input())
    }
}

impl From<antinoise_train::Error> for Failure {
    fn from(error: antinoise_train::Error) -> Self {
        Self::judged(&error, error.is_bad_input())
    }
}

/// `Result` with [`Failure`].
pub type Result<T> = std::result::Result<T, Failure>;
