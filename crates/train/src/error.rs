use std::path::{Path, PathBuf};

use antinoise_input::InvalidParameter;

/// What stops training.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A parameter or an input file that cannot be used; it names which, what it got and what it must be.
    #[error(transparent)]
    Parameter(#[from] InvalidParameter),
    /// A file that could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A tensor operation failed.
    #[error(transparent)]
    Tensor(#[from] candle_core::Error),
    /// A figure could not be drawn.
    #[error("the figure could not be drawn: {0}")]
    Figure(String),
}

impl Error {
    /// True when the caller's input is at fault rather than the machine.
    ///
    /// ```
    /// use antinoise_input::InvalidParameter;
    /// let error = antinoise_train::Error::from(InvalidParameter::new("clip_norm", 0.0, "positive"));
    /// assert!(error.is_bad_input());
    /// ```
    pub fn is_bad_input(&self) -> bool {
        matches!(self, Self::Parameter(_))
    }

    pub(crate) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        |source| Self::File { path, source }
    }
}
