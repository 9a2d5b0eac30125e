//! The command line of `python -m antinoise`.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the command line `arguments`, program name first, and returns the exit status.
///
/// Python's handler of Ctrl-C does not run during the call: the caller must let the system handle signals.
#[pyfunction]
pub fn run_command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| antinoise_cli::run(arguments))
}
