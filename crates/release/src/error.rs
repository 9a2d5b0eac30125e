//! Errors of making, reading or continuing a release.

use std::path::{Path, PathBuf};

use antinoise_input::{BadInput, InvalidParameter};
use rusqlite::ErrorCode;

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
    /// Errors of a strategy that could not be computed.
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
    /// A change that could not be written, or a page of the database that could not be read.
    #[error("{}: {source}{}", path.display(), advice(source))]
    Database {
        /// The file.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
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
            Self::Database { .. } => false,
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

    /// SQLite's error for the database at `path`, explained if the file is the cause.
    pub(crate) fn database(path: &Path) -> impl Fn(rusqlite::Error) -> Self + use<'_> {
        move |source| {
            let refused = |got: &str, must_be: &str| Self::invalid(path.display().to_string(), got, must_be);
            match source.sqlite_error_code() {
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                    refused("in use by another process", "free: one process at a time may use a release")
                }
                Some(ErrorCode::NotADatabase) => refused("another file", "the database of a release"),
                Some(ErrorCode::ReadOnly) => {
                    let must_be = "a file that can be written, in a folder that can, with its first bytes as they were written";
                    refused("read-only", must_be)
                }
                // A value of another type than the tables have, or a statement that does not fit them.
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::Unknown | ErrorCode::ConstraintViolation)
                | None => refused("damaged", "as it was written"),
                _ => Self::Database { path: path.to_path_buf(), source },
            }
        }
    }
}

/// Advice for a full disk, or a file that cannot grow.
fn advice(error: &rusqlite::Error) -> &'static str {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure) => {
            ". Nothing of this change was kept. Is the disk full? Once there is room, run the same command again"
        }
        _ => "",
    }
}

/// `Result` with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
