//! Errors of noise streams.

use std::path::{Path, PathBuf};

use antinoise_input::{BadInput, InvalidParameter};

/// The reason why noise cannot be made, saved or resumed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter that cannot be used.
    #[error(transparent)]
    Invalid(#[from] InvalidParameter),
    /// All steps of the stream have been made. Another step would not be covered by the plan's privacy
    /// statement.
    #[error(
        "all {steps} steps of this stream have been made; another one would not be covered by its privacy"
    )]
    Exhausted {
        /// The number of steps of the stream.
        steps: usize,
    },
    /// The operating system gave no random bytes.
    #[error("the operating system gave no random bytes: {0}")]
    Entropy(getrandom::Error),
    /// The requested threads could not be started.
    #[error("could not start the noise threads: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// A state by coordinate differs from the one that was saved.
    #[error(
        "the state is not the one that was saved: its words, steps, run key, plan or other entries were altered or \
         are of several states. Nothing was restored; use another copy of the state"
    )]
    AlteredState,
    /// A checkpoint is of another stream, or incomplete.
    #[error("{}: not a checkpoint of this stream: {reason}", path.display())]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// The reason why the checkpoint is refused.
        reason: String,
    },
}

/// `Result` with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl BadInput for Error {
    fn is_bad_input(&self) -> bool {
        match self {
            Self::Invalid(_) | Self::Checkpoint { .. } => true,
            Self::Io { source, .. } => source.is_bad_input(),
            Self::Exhausted { .. } | Self::Entropy(_) | Self::Threads(_) | Self::AlteredState => false,
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
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io { path: path.to_path_buf(), source }
    }

    pub(crate) fn checkpoint(path: &Path, reason: impl Into<String>) -> Self {
        Self::Checkpoint { path: path.to_path_buf(), reason: reason.into() }
    }

    /// Maps errors of the mechanism crate to refused parameters.
    pub(crate) fn of_mechanism(error: antinoise_mechanism::Error) -> Self {
        match error {
            antinoise_mechanism::Error::Invalid(error) => error.into(),
            other => {
                Self::input("recursion", other, "one whose coefficients can be computed in double precision")
            }
        }
    }

    pub(crate) fn input(parameter: &str, got: impl std::fmt::Display, must_be: impl Into<String>) -> Self {
        InvalidParameter::new(parameter, got, must_be).into()
    }
}
