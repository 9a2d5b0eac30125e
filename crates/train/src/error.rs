use std::path::{Path, PathBuf};

use antinoise_input::{BadInput, InvalidParameter};

/// The reason for which training stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter or an input file that cannot be used; the error names it, the value it got and what it
    /// must be.
    #[error(transparent)]
    Invalid(#[from] InvalidParameter),
    /// A file that could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A plan that is invalid or cannot be read.
    #[error(transparent)]
    Plan(#[from] antinoise_plan::Error),
    /// Noise that could not be made, saved or resumed.
    #[error(transparent)]
    Noise(#[from] antinoise_noise::Error),
    /// An operation of candle failed.
    #[cfg(feature = "candle")]
    #[error(transparent)]
    Tensor(#[from] candle_core::Error),
}

impl BadInput for Error {
    fn is_bad_input(&self) -> bool {
        match self {
            Self::Invalid(_) => true,
            Self::Io { source, .. } => source.is_bad_input(),
            Self::Plan(error) => error.is_bad_input(),
            Self::Noise(error) => error.is_bad_input(),
            #[cfg(feature = "candle")]
            Self::Tensor(_) => false,
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
        let path = path.to_owned();
        |source| Self::Io { path, source }
    }
}
