//! Errors of opening, reading or writing a ledger.

use std::path::{Path, PathBuf};

use antinoise_input::{BadInput, InvalidParameter, sqlite};

use crate::format::FORMAT;

/// The error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter is not valid, or a file is not the ledger of this run.
    #[error(transparent)]
    Invalid(#[from] InvalidParameter),
    /// The plan is not valid for a ledger, which needs the user as privacy unit.
    #[error(transparent)]
    Plan(#[from] antinoise_plan::Error),
    /// A file could not be created or examined.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The database could not be read or written.
    #[error(transparent)]
    Database(#[from] sqlite::Error),
    /// An earlier change of the ledger failed, so that it is not known whether it is on disk.
    #[error("ledger {}: an earlier change failed, and may or may not be on disk: open the ledger again", path.display())]
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
            Self::Database(error) => error.is_bad_input(),
            Self::Unsure { .. } => false,
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

    /// SQLite's error for the ledger at `path`.
    pub(crate) fn database(path: &Path) -> impl Fn(rusqlite::Error) -> Self + use<'_> {
        |source| FORMAT.error(path, source).into()
    }

    pub(crate) fn refused(path: &Path, got: &str, must_be: &str) -> Self {
        FORMAT.refused(path, got, must_be).into()
    }

    pub(crate) fn damaged(path: &Path, how: impl std::fmt::Display) -> Self {
        FORMAT.damaged(path, how).into()
    }
}

/// `Result` with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
