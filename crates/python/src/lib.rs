//! The compiled half of the Python package `antinoise`: `antinoise._antinoise`.
//!
//! This crate computes nothing itself: each file wraps a class or a few functions of the Rust crates for
//! Python. It adds only what is specific to Python: memory owned by others, Ctrl-C, forks and pickles.
//!
//! Layers: each line uses only the lines above it.
//!
//! ```layers
//! errors: the Python exception of each error
//! words, process, rows, values: parsing of names and lists; threads, Ctrl-C and forks; one row in arrays that Python owns; single objects
//! accounting, design, command, table: privacy; mechanisms; the command line; figures as tables
//! candidate: the description of a candidate
//! plan, key: the plan; the secret key, and the runs that used it
//! choose: the choice of a plan
//! held: a value that holds a file open
//! wanted, uses: the options of a stream; which of its steps are in use
//! stream: the noise
//! saved: a saved state before it is verified
//! batches, arrow: the examples of each step; tables of other libraries
//! participations, clipping: which examples took part when; passes over per-example gradients
//! owners: examples with several owners
//! events: rows of events from Python objects
//! counts, ledger: running counts; the participations of a federated run
//! federated: the cohort and the sum of a federated round, and the server's optimizer
//! ```

mod accounting;
mod arrow;
mod batches;
mod candidate;
mod choose;
mod clipping;
mod command;
mod counts;
mod design;
mod errors;
mod events;
mod federated;
mod held;
mod key;
mod ledger;
mod owners;
mod participations;
mod plan;
mod process;
mod rows;
mod saved;
mod stream;
mod table;
mod uses;
mod values;
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
    use crate::clipping::{_add_weighted, _squared_lengths};
    #[pymodule_export]
    use crate::command::run_command;
    #[pymodule_export]
    use crate::counts::RunningCounts;
    #[pymodule_export]
    use crate::design::{Strategy, compare, loss};
    #[pymodule_export]
    use crate::federated::{_clipped_update_sum, _draw_cohort, _similar_names, ServerOptimizer};
    #[pymodule_export]
    use crate::key::Key;
    #[pymodule_export]
    use crate::ledger::Ledger;
    #[pymodule_export]
    use crate::owners::OwnedExamples;
    #[pymodule_export]
    use crate::participations::Participations;
    #[pymodule_export]
    use crate::plan::Plan;
    #[pymodule_export]
    use crate::saved::SavedState;
    #[pymodule_export]
    use crate::stream::NoiseStream;
    #[pymodule_export]
    use crate::table::Table;
    #[pymodule_export]
    use crate::words::Workload;

    /// The version of the package.
    #[expect(non_upper_case_globals, reason = "Python's name")]
    #[pymodule_export]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
