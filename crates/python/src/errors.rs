//! Maps errors to Python exceptions: `ValueError` for bad input, `OSError` with path and number for files,
//! `RuntimeError` for all others; and warnings. The message is the Rust library's.

use std::ffi::CString;
use std::io;
use std::path::Path;

use antinoise_input::{BadInput, InvalidParameter, sqlite};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;

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

    /// A `ValueError` for a file of another kind, an `OSError` for a failure of the system.
    fn database(error: &sqlite::Error) -> Self {
        match error {
            sqlite::Error::System { .. } => Self(PyOSError::new_err(error.to_string())),
            other => Self::of(other),
        }
    }

    fn of(error: &dyn BadInput) -> Self {
        match error.file() {
            Some((path, source)) => Self::file(path, source),
            None if error.is_bad_input() => Self(PyValueError::new_err(error.to_string())),
            None => Self::failed(error),
        }
    }
}

/// Emits a `UserWarning`, if there is one.
pub fn warn(py: Python<'_>, warning: Option<String>) -> PyResult<()> {
    let Some(warning) = warning else { return Ok(()) };
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &CString::new(warning.replace('\0', " "))?, 1)
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

macro_rules! raised {
    ($($error:ty),*) => {$(
        impl From<$error> for Raised {
            fn from(error: $error) -> Self {
                Self::of(&error)
            }
        }
    )*};
}

raised!(
    InvalidParameter,
    antinoise_mechanism::Error,
    antinoise_accounting::Error,
    antinoise_plan::Error,
    antinoise_noise::Error
);

impl From<antinoise_release::Error> for Raised {
    fn from(error: antinoise_release::Error) -> Self {
        match &error {
            antinoise_release::Error::Database(failed) => Self::database(failed),
            other => Self::of(other),
        }
    }
}

impl From<antinoise_ledger::Error> for Raised {
    fn from(error: antinoise_ledger::Error) -> Self {
        match &error {
            antinoise_ledger::Error::Database(failed) => Self::database(failed),
            other => Self::of(other),
        }
    }
}
