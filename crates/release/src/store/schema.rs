//! The tables of a release's SQLite file.

use std::path::Path;

use antinoise_input::sqlite::Format;

use crate::Error;
use crate::store::{participants, sealed};

pub(crate) const FORMAT: Format = Format {
    prefix: "",
    kind: "the database of a release",
    // The bytes "anre".
    application: 0x616e_7265,
    version: 3,
    tables: &TABLES,
};
const TABLES: [&str; 6] = [
    // The plan, the settings, and the identity of this release.
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    // The users counted in each period, and the numbers of their rows.
    participants::TABLE,
    // Increments in points: frozen until they are published, noisy after that.
    "CREATE TABLE periods (step INTEGER PRIMARY KEY, period NOT NULL, frozen BLOB, noisy BLOB)",
    // The state of queries: functions of the noisy increments of all periods so far.
    "CREATE TABLE running (name TEXT PRIMARY KEY, cells BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE published (period NOT NULL, key TEXT NOT NULL, value NOT NULL, lower NOT NULL, upper NOT NULL, query TEXT NOT NULL, bucket TEXT NOT NULL)",
    sealed::TABLE,
];

/// SQLite's error for the database at `path`.
pub(crate) fn failed(path: &Path) -> impl Fn(rusqlite::Error) -> Error + use<'_> {
    |source| FORMAT.error(path, source).into()
}
