//! SQLite files of one format: opening, checks of their tables, and SQLite's errors in words.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::error::{BadInput, InvalidParameter};

/// An SQLite file that cannot be opened, read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file of another format, or one that is damaged, in use or read-only.
    #[error(transparent)]
    Invalid(#[from] InvalidParameter),
    /// A failure of the system, such as a full disk.
    #[error("{file}: {happened}")]
    System {
        /// The file.
        file: String,
        /// The failure in words.
        happened: &'static str,
        /// SQLite's error.
        source: rusqlite::Error,
    },
}

impl BadInput for Error {
    fn is_bad_input(&self) -> bool {
        matches!(self, Self::Invalid(_))
    }
}

/// The format of an SQLite file, and its names in messages.
///
/// ```
/// use antinoise_input::sqlite::Format;
/// use std::time::Duration;
/// const NOTES: Format = Format {
///     prefix: "notes ",
///     kind: "a file of notes",
///     application: 0x6e6f_7465,
///     version: 1,
///     tables: &["CREATE TABLE notes (text TEXT NOT NULL)"],
/// };
/// let path = tempfile::NamedTempFile::new()?;
/// let mut database = NOTES.open(path.path(), Duration::ZERO)?;
/// assert!(NOTES.check(path.path(), &database).is_err());
/// let change = database.transaction()?;
/// NOTES.create(&change)?;
/// change.commit()?;
/// NOTES.check(path.path(), &database)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// The text before the path in messages; may be empty.
    pub prefix: &'static str,
    /// The kind of file, with its article: "a ledger".
    pub kind: &'static str,
    /// SQLite's application id.
    pub application: i64,
    /// The version of the tables, as SQLite's user version.
    pub version: i64,
    /// The statements that create the tables.
    pub tables: &'static [&'static str],
}

impl Format {
    /// Opens the file at `path`, which must exist, for reading and writing. A statement waits for other
    /// processes up to `wait`.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(&self, path: &Path, wait: Duration) -> Result<Connection, Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = || -> rusqlite::Result<Connection> {
            let database = Connection::open_with_flags(path, flags)?;
            database.busy_timeout(wait)?;
            database.pragma_update(None, "trusted_schema", "OFF")?;
            database.pragma_update(None, "cell_size_check", "ON")?;
            Ok(database)
        };
        opened().map_err(|error| self.error(path, error))
    }

    /// Whether nothing was written into the file yet.
    ///
    /// # Errors
    /// If SQLite fails.
    pub fn is_empty(&self, database: &Connection) -> rusqlite::Result<bool> {
        Ok((number(database, "application_id")?, number(database, "user_version")?) == (0, 0)
            && tables(database)?.is_empty())
    }

    /// Creates the tables, within the transaction of a change.
    ///
    /// # Errors
    /// If SQLite fails.
    pub fn create(&self, change: &Connection) -> rusqlite::Result<()> {
        self.tables.iter().try_for_each(|sql| change.execute(sql, []).map(drop))?;
        change.pragma_update(None, "application_id", self.application)?;
        change.pragma_update(None, "user_version", self.version)
    }

    /// Refuses a file of another format or version, and one with other tables, indices or triggers.
    ///
    /// # Errors
    /// Names the difference.
    pub fn check(&self, path: &Path, database: &Connection) -> Result<(), Error> {
        let failed = |error| self.error(path, error);
        let application = number(database, "application_id").map_err(failed)?;
        let version = number(database, "user_version").map_err(failed)?;
        if application != self.application {
            return Err(self.refused(path, "another database, or one that was never initialised", self.kind));
        }
        if version != self.version {
            let must_be = format!("of version {}", self.version);
            return Err(self.refused(path, format!("of version {version}"), must_be));
        }
        let mut wanted = self.tables.to_vec();
        wanted.sort_unstable();
        if tables(database).map_err(failed)? != wanted {
            return Err(self.damaged(path, "tables are missing, or there are others"));
        }
        Ok(())
    }

    /// Refuses a file whose pages contradict each other, as after a flipped bit: every row may be intact, and
    /// yet the next write would overwrite one of them. The check reads the whole file.
    ///
    /// # Errors
    /// If pages contradict each other.
    pub fn check_pages(&self, path: &Path, database: &Connection) -> Result<(), Error> {
        let found = database.pragma_query_value(None, "quick_check", |row| row.get::<_, String>(0));
        match found.map_err(|error| self.error(path, error))?.as_str() {
            "ok" => Ok(()),
            _ => Err(self.damaged(path, "its pages contradict each other")),
        }
    }

    /// SQLite's error for the file at `path`, in words.
    pub fn error(&self, path: &Path, source: rusqlite::Error) -> Error {
        let happened = match source.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                let must_be = "free: one process at a time may use it";
                return self.refused(path, "in use by another process", must_be);
            }
            Some(ErrorCode::NotADatabase) => return self.refused(path, "another file", self.kind),
            Some(ErrorCode::ReadOnly) => {
                let must_be =
                    "a writable file in a writable folder, with its first bytes as they were written";
                return self.refused(path, "read-only", must_be);
            }
            // A value whose type differs from its column's, or a statement that does not fit the tables.
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::Unknown | ErrorCode::ConstraintViolation) | None => {
                return self.refused(path, "damaged", "as it was written");
            }
            Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure) => {
                "the disk is full, or it cannot be read or written. No change was kept in part: once there is room, run the \
                 same command again"
            }
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                "it cannot be opened. This process must be able to read and write the file and its folder"
            }
            Some(ErrorCode::OutOfMemory) => "there is not enough memory",
            Some(ErrorCode::OperationInterrupted | ErrorCode::OperationAborted) => {
                "the operation was stopped"
            }
            Some(_) => "SQLite could not finish the operation. No change was kept in part",
        };
        Error::System { file: self.named(path), happened, source }
    }

    /// The error of a file that is damaged, with the part that differs.
    pub fn damaged(&self, path: &Path, how: impl std::fmt::Display) -> Error {
        self.refused(path, format!("damaged ({how})"), "as it was written")
    }

    /// The error of a file that cannot be used.
    pub fn refused(&self, path: &Path, got: impl std::fmt::Display, must_be: impl Into<String>) -> Error {
        InvalidParameter::new(self.named(path), got, must_be).into()
    }

    fn named(&self, path: &Path) -> String {
        format!("{}{}", self.prefix, path.display())
    }
}

fn number(database: &Connection, pragma: &str) -> rusqlite::Result<i64> {
    database.pragma_query_value(None, pragma, |row| row.get(0))
}

/// The SQL of tables, indices and triggers, sorted.
fn tables(database: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut select = database
        .prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY sql COLLATE BINARY")?;
    select.query_map([], |row| row.get(0))?.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: Format = Format {
        prefix: "file ",
        kind: "a test",
        application: 7,
        version: 2,
        tables: &["CREATE TABLE b (x)", "CREATE TABLE a (x INTEGER PRIMARY KEY, y TEXT UNIQUE)"],
    };

    /// Each way in which a file differs is named, without SQLite's own words.
    #[test]
    fn other_files_are_refused_in_words() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let refused = |sql: &str| {
            std::fs::write(&path, "").unwrap();
            let mut database = FORMAT.open(&path, Duration::ZERO).unwrap();
            assert!(FORMAT.is_empty(&database).unwrap());
            let change = database.transaction().unwrap();
            FORMAT.create(&change).unwrap();
            change.commit().unwrap();
            FORMAT.check(&path, &database).unwrap();
            assert!(!FORMAT.is_empty(&database).unwrap());
            database.execute_batch(sql).unwrap();
            FORMAT.check(&path, &database).unwrap_err().to_string()
        };
        for (sql, named) in [
            ("PRAGMA user_version = 3", "is of version 3 but must be of version 2"),
            (
                "PRAGMA application_id = 8",
                "is another database, or one that was never initialised but must be a test",
            ),
            ("DROP TABLE b", "tables are missing"),
            ("CREATE INDEX c ON b (x)", "or there are others"),
            ("CREATE TRIGGER c AFTER INSERT ON b BEGIN DELETE FROM b; END", "or there are others"),
        ] {
            let found = refused(sql);
            assert!(found.starts_with("file /") && found.contains(named), "{found}");
        }
        std::fs::write(&path, [b'x'; 4096]).unwrap();
        let database = FORMAT.open(&path, Duration::ZERO).and_then(|database| FORMAT.check(&path, &database));
        assert!(database.unwrap_err().to_string().ends_with("is another file but must be a test"));
        let absent = FORMAT.open(&folder.path().join("absent"), Duration::ZERO).unwrap_err();
        assert!(!absent.is_bad_input() && absent.to_string().contains("cannot be opened"), "{absent}");
    }

    /// The header of a table's page says where its rows begin: SQLite reads on, and writes over them.
    #[test]
    fn pages_that_contradict_each_other_are_refused() {
        let path = tempfile::NamedTempFile::new().unwrap();
        let mut database = FORMAT.open(path.path(), Duration::ZERO).unwrap();
        let change = database.transaction().unwrap();
        FORMAT.create(&change).unwrap();
        change.execute_batch("INSERT INTO b VALUES (zeroblob(400)), (zeroblob(400))").unwrap();
        change.commit().unwrap();
        FORMAT.check_pages(path.path(), &database).unwrap();
        let sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'b'";
        let page: i64 = database.query_row(sql, [], |row| row.get(0)).unwrap();
        drop(database);
        let mut bytes = std::fs::read(path.path()).unwrap();
        bytes[(page as usize - 1) * 4096 + 6] ^= 4;
        std::fs::write(path.path(), bytes).unwrap();
        let database = FORMAT.open(path.path(), Duration::ZERO).unwrap();
        FORMAT.check(path.path(), &database).unwrap();
        let refused = FORMAT.check_pages(path.path(), &database).unwrap_err().to_string();
        assert!(refused.contains("is damaged (its pages contradict each other)"), "{refused}");
    }

    #[test]
    fn a_file_in_use_is_named() {
        let path = tempfile::NamedTempFile::new().unwrap();
        let (one, other) =
            (FORMAT.open(path.path(), Duration::ZERO), FORMAT.open(path.path(), Duration::ZERO));
        let (one, other) = (one.unwrap(), other.unwrap());
        one.execute_batch("BEGIN EXCLUSIVE").unwrap();
        let busy = FORMAT.error(path.path(), other.execute_batch("BEGIN EXCLUSIVE").unwrap_err());
        assert!(busy.is_bad_input() && busy.to_string().contains("in use by another process"), "{busy}");
    }
}
