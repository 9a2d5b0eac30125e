//! The tables of a release's SQLite file.

use crate::{ledger, sealed};

/// "anre".
pub(crate) const APPLICATION: i64 = 0x616e_7265;
/// The version of the tables below.
pub(crate) const VERSION: i64 = 3;
pub(crate) const TABLES: [&str; 6] = [
    // The plan, the settings, and what tells this release from others.
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    // Who was counted in which period, and how many of their rows.
    ledger::TABLE,
    // Increments in points: frozen until they are published, noisy from then on.
    "CREATE TABLE periods (step INTEGER PRIMARY KEY, period NOT NULL, frozen BLOB, noisy BLOB)",
    // What queries remember of the noisy increments of all periods so far.
    "CREATE TABLE running (name TEXT PRIMARY KEY, cells BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE published (period NOT NULL, key TEXT NOT NULL, value NOT NULL, lower NOT NULL, upper NOT NULL, query TEXT NOT NULL, bucket TEXT NOT NULL)",
    sealed::TABLE,
];
