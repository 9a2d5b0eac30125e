//! The SQLite file: checks of its permissions and tables, and the lock that excludes other processes.

use std::path::Path;

use antinoise_input::InvalidParameter;
use antinoise_input::files::owner;
use rusqlite::{Connection, OpenFlags, Transaction};

use crate::{Error, Result, chain};

/// The bytes "anti".
const APPLICATION: i64 = 0x616e_7469;
/// The version of the tables below.
const VERSION: i64 = 2;
const TABLES: [(&str, &str); 4] = [
    ("chain", chain::TABLE),
    (
        "participations",
        "CREATE TABLE participations (user TEXT NOT NULL, step INTEGER NOT NULL, PRIMARY KEY (user, step)) WITHOUT ROWID",
    ),
    ("releases", "CREATE TABLE releases (step INTEGER PRIMARY KEY, base TEXT NOT NULL, noisy_sum BLOB)"),
    ("run", "CREATE TABLE run (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"),
];
/// Size of the page cache: the pages of a round's participants are spread over the whole file.
const CACHE_KIB: i64 = 128 * 1024;
/// Page size of a new file, in bytes.
const PAGE: i64 = 2048;

/// Creates an empty file, accessible only to its owner, if it is absent.
pub(crate) fn make_if_absent(path: &Path) -> Result<()> {
    owner::make_if_absent(path).map_err(Error::io(path))
}

/// Opens the database at `path`, which must exist. The connection holds its lock until it is closed or the
/// process ends in any way. An empty file becomes a ledger.
pub(crate) fn open(path: &Path) -> Result<Connection> {
    refuse_others(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = || -> rusqlite::Result<Connection> {
        let database = Connection::open_with_flags(path, flags)?;
        database.busy_timeout(std::time::Duration::ZERO)?;
        for (name, value) in
            [("locking_mode", "EXCLUSIVE"), ("trusted_schema", "OFF"), ("cell_size_check", "ON")]
        {
            database.pragma_update(None, name, value)?;
        }
        Ok(database)
    };
    let settle = |database: &Connection| -> rusqlite::Result<()> {
        // Only for a new file: each participant changes a page of the file, and small pages are written
        // faster.
        database.pragma_update(None, "page_size", PAGE)?;
        // Rollback journal, no write-ahead log: the file itself holds every change whose call returned, and
        // so does a copy of it between two changes.
        database.pragma_update(None, "journal_mode", "DELETE")?;
        database.pragma_update(None, "synchronous", "EXTRA")?;
        database.pragma_update(None, "cache_size", -CACHE_KIB)
    };
    let mut database = opened().map_err(Error::database(path))?;
    refuse_written_ahead(path, &database)?;
    settle(&database).map_err(Error::database(path))?;
    let change = exclusive(&mut database).map_err(Error::database(path))?;
    create_or_check(path, &change)?;
    change.commit().map_err(Error::database(path))?;
    Ok(database)
}

/// Fails if the file cannot be locked: then nothing may be read from it.
fn exclusive(database: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    database.transaction_with_behavior(rusqlite::TransactionBehavior::Exclusive)
}

/// Refuses, before opening it, anything but a regular file that only its owner may read and write.
fn refuse_others(path: &Path) -> Result<()> {
    let found = std::fs::metadata(path).map_err(Error::io(path))?;
    if !found.is_file() {
        return Err(Error::refused(path, "no regular file", "a ledger"));
    }
    Ok(owner::check(path, &found)?)
}

/// Refuses a file with a write-ahead log. SQLite reports the mode: opening and closing the file here would
/// drop the lock that another connection of this process holds on it (POSIX).
fn refuse_written_ahead(path: &Path, database: &Connection) -> Result<()> {
    let mode: String =
        database.pragma_query_value(None, "journal_mode", |row| row.get(0)).map_err(Error::database(path))?;
    if mode != "wal" {
        return Ok(());
    }
    let must_be = "in journal mode DELETE, as this program writes it: rounds that another program wrote ahead, into a file next to it, may be missing";
    Err(Error::refused(path, "in journal mode WAL", must_be))
}

fn create_or_check(path: &Path, database: &Connection) -> Result<()> {
    let failed = Error::database(path);
    let number = |name: &str| database.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (application, version) =
        (number("application_id").map_err(&failed)?, number("user_version").map_err(&failed)?);
    let tables = tables(database).map_err(&failed)?;
    if (application, version, tables.len()) == (0, 0, 0) {
        return create(database).map_err(&failed);
    }
    if application != APPLICATION {
        return Err(Error::refused(path, "another database", "a ledger"));
    }
    if version != VERSION {
        let what = format!("version of {}", path.display());
        return Err(InvalidParameter::new(what, version, VERSION.to_string()).into());
    }
    let ours = TABLES.map(|(name, sql)| (name.to_string(), sql.to_string()));
    if tables == ours { Ok(()) } else { Err(Error::damaged(path, "other tables")) }
}

fn tables(database: &Connection) -> rusqlite::Result<Vec<(String, String)>> {
    let mut found = database.prepare("SELECT name, COALESCE(sql, '') FROM sqlite_schema ORDER BY name")?;
    found.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

fn create(database: &Connection) -> rusqlite::Result<()> {
    for (_, sql) in TABLES {
        database.execute(sql, [])?;
    }
    database.pragma_update(None, "application_id", APPLICATION)?;
    database.pragma_update(None, "user_version", VERSION)
}
