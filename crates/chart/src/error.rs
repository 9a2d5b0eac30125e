//! Errors of drawing.

use std::fmt;

/// The drawing library refused to draw.
#[derive(Debug)]
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the figure could not be drawn: {}", self.0)
    }
}

impl std::error::Error for Error {}

/// `Result` with [`Error`].
pub(crate) type Result<T> = std::result::Result<T, Error>;

/// Converts an error of the drawing library.
pub(crate) fn failed(error: impl fmt::Display) -> Error {
    Error(error.to_string())
}
