//! The tables of the SQLite file.

use antinoise_input::sqlite::Format;

use crate::chain;

/// The format of a ledger.
pub(crate) const FORMAT: Format = Format {
    prefix: "ledger ",
    kind: "a ledger",
    // The bytes "anti".
    application: 0x616e_7469,
    version: 2,
    tables: &[
        chain::TABLE,
        "CREATE TABLE participations (user TEXT NOT NULL, step INTEGER NOT NULL, PRIMARY KEY (user, step)) WITHOUT ROWID",
        "CREATE TABLE noisy_sums (step INTEGER PRIMARY KEY, base TEXT NOT NULL, noisy_sum BLOB)",
        "CREATE TABLE run (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    ],
};
