//! The SQLite file: checks of its permissions and tables, and the lock that excludes other processes.

use std::path::Path;
use std::time::Duration;

use antinoise_input::files::owner;
use rusqlite::{Connection, Transaction};

use crate::format::FORMAT;
use crate::{Error, Result};

/// Size of the page cache. It is large because the pages of a round's participants are spread over the whole
/// file.
const CACHE_KIB: i64 = 128 * 1024;
/// Page size of a new file, in bytes.
const PAGE: i64 = 2048;

/// Creates an empty file, accessible only to its owner, if it is absent.
pub(crate) fn make_if_absent(path: &Path) -> Result<()> {
    owner::make_if_absent(path).map_err(Error::io(path))
}

/// Opens the database at `path`, which must exist. The connection holds a lock on the file until it is closed
/// or the process ends for any reason. An empty file becomes a ledger.
pub(crate) fn open(path: &Path) -> Result<Connection> {
    refuse_others(path)?;
    let settle = |database: &Connection| -> rusqlite::Result<()> {
        // For a new file only. Each participant changes a page of the file, and small pages are written
        // faster.
        database.pragma_update(None, "page_size", PAGE)?;
        // A rollback journal instead of a write-ahead log: the file itself then holds every change whose call
        // has returned, and so does a copy that is made between two changes.
        database.pragma_update(None, "journal_mode", "DELETE")?;
        database.pragma_update(None, "synchronous", "EXTRA")?;
        database.pragma_update(None, "cache_size", -CACHE_KIB)
    };
    let mut database = FORMAT.open(path, Duration::ZERO)?;
    database.pragma_update(None, "locking_mode", "EXCLUSIVE").map_err(Error::database(path))?;
    refuse_written_ahead(path, &database)?;
    settle(&database).map_err(Error::database(path))?;
    let change = exclusive(&mut database).map_err(Error::database(path))?;
    if FORMAT.is_empty(&change).map_err(Error::database(path))? {
        FORMAT.create(&change).map_err(Error::database(path))?;
    }
    FORMAT.check(path, &change)?;
    FORMAT.check_pages(path, &change)?;
    change.commit().map_err(Error::database(path))?;
    Ok(database)
}

/// Starts an exclusive transaction. If the file cannot be locked, it fails, and nothing may be read from the
/// file.
fn exclusive(database: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    database.transaction_with_behavior(rusqlite::TransactionBehavior::Exclusive)
}

/// Checks, before the file is opened, that it is a regular file that only its owner may read and write.
fn refuse_others(path: &Path) -> Result<()> {
    let found = std::fs::metadata(path).map_err(Error::io(path))?;
    if !found.is_file() {
        return Err(Error::refused(path, "not a regular file", "a ledger"));
    }
    Ok(owner::check(path, &found)?)
}

/// Refuses a file with a write-ahead log. The mode is that which SQLite reports: if the file were opened and
/// closed here, POSIX would release the lock that another connection of this process holds on it.
fn refuse_written_ahead(path: &Path, database: &Connection) -> Result<()> {
    let mode: String =
        database.pragma_query_value(None, "journal_mode", |row| row.get(0)).map_err(Error::database(path))?;
    if mode != "wal" {
        return Ok(());
    }
    let must_be = "in journal mode DELETE, as this program writes it: rounds that another program wrote into a write-ahead log next to the file may be missing";
    Err(Error::refused(path, "in journal mode WAL", must_be))
}
