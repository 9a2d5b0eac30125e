//! Maps errors to Python exceptions: `ValueError` for bad input, `OSError` with path and number for files,
//! `RuntimeError` for all others. The message is the Rust library's.

use std::io;
use std::path::Path;

use antinoise_input::InvalidParameter;
use pyo3::PyErr;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};

/// An error of any crate, as a Python exception.
#[derive(Debug)]
pub struct Raised(PyErr);

/// `Result` with [`Raised`].
pub type Result<T> = std::result::Result<T, Raised>;

impl Raised {
    /// A `RuntimeError`.
    pub fn failed(message: impl ToString) -> Self {
        Self(PyRuntimeError::new_err(message.to_string()))
    }

    /// An `OSError`, of the subclass that belongs to the error number.
    pub fn file(path: &Path, source: &io::Error) -> Self {
        let shown = path.display().to_string();
        let message = source.to_string();
        Self(match source.raw_os_error() {
            // Python derives the subclass from the number, and adds the number to the message.
            Some(number) => {
                let words = message.split(" (os error").next().unwrap_or_default().to_string();
                PyOSError::new_err((number, words, shown))
            }
            None => PyOSError::new_err(format!("{shown}: {message}")),
        })
    }

    fn judged(message: impl ToString, bad_input: bool) -> Self {
        if bad_input { Self(PyValueError::new_err(message.to_string())) } else { Self::failed(message) }
    }
}

impl From<Raised> for PyErr {
    fn from(raised: Raised) -> Self {
        raised.0
    }
}

impl From<PyErr> for Raised {
    fn from(error: PyErr) -> Self {
        Self(error)
    }
}

impl From<InvalidParameter> for Raised {
    fn from(error: InvalidParameter) -> Self {
        Self::judged(error, true)
    }
}

impl From<antinoise_mechanism::Error> for Raised {
    fn from(error: antinoise_mechanism::Error) -> Self {
        Self::judged(&error, error.is_bad_input())
    }
}

impl From<antinoise_accounting::Error> for Raised {
    fn from(error: antinoise_accounting::Error) -> Self {
        Self::judged(&error, error.is_bad_input())
    }
}

impl From<antinoise_plan::Error> for Raised {
    fn from(error: antinoise_plan::Error) -> Self {
        match &error {
            antinoise_plan::Error::Io { path, source } => Self::file(path, source),
            _ => Self::judged(&error, error.is_bad_input()),
        }
    }
}

impl From<antinoise_noise::Error> for Raised {
    fn from(error: antinoise_noise::Error) -> Self {
        match &error {
            antinoise_noise::Error::Io { path, source } => Self::file(path, source),
            _ => Self::judged(&error, error.is_bad_input()),
        }
    }
}

impl From<antinoise_release::Error> for Raised {
    fn from(error: antinoise_release::Error) -> Self {
        use antinoise_release::Error;
        match error {
            Error::Io { path, source } => Self::file(&path, &source),
            Error::Plan(error) => error.into(),
            Error::Noise(error) => error.into(),
            Error::Database { .. } => Self(PyOSError::new_err(error.to_string())),
            other => Self::judged(&other, other.is_bad_input()),
        }
    }
}
