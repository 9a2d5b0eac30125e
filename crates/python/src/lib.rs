//! The compiled half of the Python package `antinoise`: `antinoise._antinoise`.
//!
//! It computes nothing of its own: each file puts a class or a few functions of the crates below into Python's words. What is here
//! alone is what Python brings along: memory that others own, Ctrl-C, forks and pickles.
//!
//! Each line uses those above it alone:
//!
//! ```layers
//! errors: which exception an error becomes
//! words, process, rows: what texts and lists name; threads, Ctrl-C and forks; one row in arrays that Python owns
//! accounting, design, command: privacy; mechanisms; the command line
//! candidate: what is told of one
//! plan, key: privacy and mechanism in one value; the secret, and what it has served
//! choose: which plan
//! wanted: what a stream makes, and how
//! stream: the noise
//! batches: who takes part
//! ```

mod accounting;
mod batches;
mod candidate;
mod choose;
mod command;
mod design;
mod errors;
mod key;
mod plan;
mod process;
mod rows;
mod stream;
mod wanted;
mod words;

use pyo3::prelude::pymodule;

/// The compiled half of antinoise.
#[pymodule]
mod _antinoise {
    #[pymodule_export]
    use crate::accounting::{account, calibrate};
    #[pymodule_export]
    use crate::batches::Batches;
    #[pymodule_export]
    use crate::choose::plan;
    #[pymodule_export]
    use crate::command::run_command;
    #[pymodule_export]
    use crate::design::{Strategy, compare, loss};
    #[pymodule_export]
    use crate::key::Key;
    #[pymodule_export]
    use crate::plan::Plan;
    #[pymodule_export]
    use crate::stream::NoiseStream;

    /// The version of the package.
    #[expect(non_upper_case_globals, reason = "Python's name")]
    #[pymodule_export]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
