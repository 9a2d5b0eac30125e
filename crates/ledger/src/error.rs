//! Errors of opening, reading or writing a ledger.

use std::path::{Path, PathBuf};

use antinoise_input::{BadInput, InvalidParameter};
use rusqlite::ErrorCode;

/// The error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter that cannot be used, or a file that is not the ledger of this run.
    #[error(transparent)]
    Invalid(#[from] InvalidParameter),
    /// A plan whose privacy unit is not the user.
    #[error(transparent)]
    Plan(#[from] antinoise_plan::Error),
    /// A file that could not be created or examined.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// A change that could not be written, or a page of the file that could not be read.
    #[error("ledger {}: {source}", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
    /// A ledger whose last change may or may not be on disk.
    #[error("ledger {}: an earlier change failed half way: open it again", path.display())]
    Unsure {
        /// The file.
        path: PathBuf,
    },
}

impl BadInput for Error {
    fn is_bad_input(&self) -> bool {
        match self {
            Self::Invalid(_) => true,
            Self::Plan(error) => error.is_bad_input(),
            Self::Io { source, .. } => source.is_bad_input(),
            Self::Database { .. } | Self::Unsure { .. } => false,
        }
    }

    fn file(&self) -> Option<(&Path, &std::io::Error)> {
        match self {
            Self::Io { path, source } => Some((path, source)),
            _ => None,
        }
    }
}

impl Error {
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_path_buf();
        |source| Self::Io { path, source }
    }

    /// SQLite's error for the ledger at `path`, explained if the file is the cause.
    pub(crate) fn database(path: &Path) -> impl Fn(rusqlite::Error) -> Self + use<'_> {
        move |source| match source.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                Self::refused(path, "locked", "free: one process at a time may use it")
            }
            Some(ErrorCode::NotADatabase) => Self::refused(path, "another file", "a ledger"),
            Some(ErrorCode::DatabaseCorrupt) => Self::damaged(path, &source),
            Some(ErrorCode::ReadOnly) => {
                let must_be = "a file that can be written, in a folder that can, with its first bytes as they were written";
                Self::refused(path, "read-only", must_be)
            }
            Some(_) => Self::Database { path: path.to_path_buf(), source },
            // A value of another type than the tables have.
            None => Self::damaged(path, &source),
        }
    }

    pub(crate) fn refused(path: &Path, got: &str, must_be: &str) -> Self {
        InvalidParameter::new(format!("ledger {}", path.display()), got, must_be).into()
    }

    pub(crate) fn damaged(path: &Path, how: impl std::fmt::Display) -> Self {
        Self::refused(path, &format!("damaged ({how})"), "as it was written")
    }
}

/// `Result` with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
