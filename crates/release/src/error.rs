//! Errors of making, reading or continuing a release.

use std::path::{Path, PathBuf};

use antinoise_input::{BadInput, InvalidParameter, sqlite};

/// The error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter, an event or a file that cannot be used.
    #[error(transparent)]
    Invalid(#[from] InvalidParameter),
    /// No suitable mechanism, or an invalid plan.
    #[error(transparent)]
    Plan(#[from] antinoise_plan::Error),
    /// A privacy claim that could not be computed.
    #[error(transparent)]
    Accounting(#[from] antinoise_accounting::Error),
    /// Errors of a strategy's results that could not be computed.
    #[error(transparent)]
    Mechanism(#[from] antinoise_mechanism::Error),
    /// Noise that could not be made, saved or resumed.
    #[error(transparent)]
    Noise(#[from] antinoise_noise::Error),
    /// A file that could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// A database that cannot be read or written.
    #[error(transparent)]
    Database(#[from] sqlite::Error),
}

impl BadInput for Error {
    fn is_bad_input(&self) -> bool {
        match self {
            Self::Invalid(_) => true,
            Self::Plan(error) => error.is_bad_input(),
            Self::Accounting(error) => error.is_bad_input(),
            Self::Mechanism(error) => error.is_bad_input(),
            Self::Noise(error) => error.is_bad_input(),
            Self::Io { source, .. } => source.is_bad_input(),
            Self::Database(error) => error.is_bad_input(),
        }
    }

    fn file(&self) -> Option<(&Path, &std::io::Error)> {
        match self {
            Self::Io { path, source } => Some((path, source)),
            Self::Plan(error) => error.file(),
            Self::Noise(error) => error.file(),
            _ => None,
        }
    }
}

impl Error {
    /// Adds the place of a row to an error about it.
    pub fn at(self, place: impl std::fmt::Display) -> Self {
        match self {
            Self::Invalid(mut error) => {
                error.parameter = format!("{} ({place})", error.parameter);
                Self::Invalid(error)
            }
            other => other,
        }
    }

    pub(crate) fn invalid(
        parameter: impl Into<String>,
        got: impl std::fmt::Display,
        must_be: impl Into<String>,
    ) -> Self {
        InvalidParameter::new(parameter, got, must_be).into()
    }

    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_path_buf();
        |source| Self::Io { path, source }
    }
}

/// `Result` with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
