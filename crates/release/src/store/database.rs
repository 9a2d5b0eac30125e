//! The SQLite file: frozen increments, published figures, and the users counted in each period.

use std::path::{Path, PathBuf};
use std::time::Duration;

use antinoise_noise::Key;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use crate::store::folder::{Folder, check_owner_only};
use crate::store::participants::{self, Failure};
use crate::store::published::{Figure, Published};
use crate::store::schema::{self, FORMAT};
use crate::store::seal::Seal;
use crate::store::sealed::{self, Part, Refusal};
use crate::{Error, Period, Result};

/// The name of the fact that some counts were bounded and computed elsewhere.
pub(crate) const GIVEN: &str = "counts were given";
/// The name of the fact that holds the key for sampling rows.
pub(crate) const SAMPLING: &str = "sampling key";
/// Size of SQLite's cache: users are looked up in the order of their events.
const CACHE_KIB: i64 = 128 * 1024;
/// How long a statement waits for another process.
const WAIT: Duration = Duration::from_secs(5);

/// The database of a release, open for writing.
#[derive(Debug)]
pub(crate) struct State {
    folder: Folder,
    path: PathBuf,
    database: Connection,
    seal: Seal,
}

/// A frozen period that is not yet published.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) step: usize,
    pub(crate) period: Period,
    pub(crate) frozen: Vec<i64>,
}

impl State {
    /// Opens the database of `folder` for writing.
    ///
    /// # Errors
    /// If it is not the database of a release, or differs from its seal.
    pub(crate) fn open(folder: &Folder) -> Result<Self> {
        let state = Self::opened(folder, Seal::read)?;
        state.check()?;
        FORMAT.check_pages(&state.path, &state.database)?;
        Ok(state)
    }

    /// Opens the empty database of `folder`, in which [`Self::create`] creates the tables.
    pub(crate) fn new(folder: &Folder) -> Result<Self> {
        Self::opened(folder, Seal::new)
    }

    fn opened(folder: &Folder, seal: impl FnOnce(&Folder) -> Result<Seal>) -> Result<Self> {
        let path = folder.database();
        check_owner_only(&path)?;
        let database = FORMAT.open(&path, WAIT)?;
        let prepared = || -> rusqlite::Result<()> {
            for (name, value) in [
                // Overwrites frozen increments on disk once they are published.
                ("secure_delete", "ON"),
                ("journal_mode", "DELETE"),
                ("synchronous", "EXTRA"),
            ] {
                database.pragma_update(None, name, value)?;
            }
            database.pragma_update(None, "cache_size", -CACHE_KIB)
        };
        prepared().map_err(schema::failed(&path))?;
        Ok(Self { folder: folder.clone(), path, database, seal: seal(folder)? })
    }

    /// Opens the database for reading only, even while another process writes. First rolls back an incomplete
    /// change of a killed writer, which needs write access.
    pub(crate) fn look(folder: &Folder) -> Result<Self> {
        let path = folder.database();
        let refused =
            |_| Error::invalid(path.display().to_string(), "absent", "a release (antinoise release init)");
        std::fs::metadata(&path).map_err(refused)?;
        let database = FORMAT.open(&path, WAIT)?;
        // One transaction, during which no other process changes what is read.
        let begun = database.execute_batch("PRAGMA query_only = ON; BEGIN");
        begun.map_err(schema::failed(&path))?;
        FORMAT.check(&path, &database)?;
        let state = Self { folder: folder.clone(), seal: Seal::read(folder)?, path, database };
        state.check()?;
        Ok(state)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn failed(&self) -> impl Fn(rusqlite::Error) -> Error + use<'_> {
        schema::failed(&self.path)
    }

    /// Whether nothing was written yet.
    pub(crate) fn is_empty(&self) -> Result<bool> {
        FORMAT.is_empty(&self.database).map_err(self.failed())
    }

    /// Creates the tables with these facts in them, atomically.
    pub(crate) fn create(&mut self, facts: &[(&str, &str)]) -> Result<()> {
        self.change(&[Part::Facts], |change| {
            FORMAT.create(change)?;
            for (name, value) in facts {
                change.execute("INSERT INTO facts VALUES (?, ?)", params![name, value])?;
            }
            Ok(())
        })
    }

    /// Refuses a database that differs from its seal; counted users are [checked
    /// separately](Self::check_counted).
    fn check(&self) -> Result<()> {
        FORMAT.check(&self.path, &self.database)?;
        sealed::check(&self.database, &self.seal).map_err(|refusal| self.refused(refusal))
    }

    /// Refuses a database whose counted users were altered.
    pub(crate) fn check_counted(&self) -> Result<()> {
        sealed::check_counted(&self.database, &self.seal).map_err(|refusal| self.refused(refusal))
    }

    fn refused(&self, refusal: Refusal) -> Error {
        match refusal {
            Refusal::Database(error) => self.failed()(error),
            Refusal::Damaged(what) => self.damaged(what),
            Refusal::OfAnotherWrite => {
                let must_be = "the one that was written last, as the file seal next to it says: with an older one, other data could be \
                               published under noise that was used before";
                Error::invalid(
                    self.path.display().to_string(),
                    "older than its seal, or of a copy of the folder",
                    must_be,
                )
            }
        }
    }

    /// Refuses files whose home differs from the one at the last change, unless they are adopted: then their
    /// new home is recorded.
    pub(crate) fn check_home(&mut self, adopt: bool) -> Result<()> {
        let Some(difference) = self.seal.moved(&self.folder)? else { return Ok(()) };
        if adopt {
            return self.change(&[], |_| Ok(()));
        }
        let must_be = "the folder that the release was made in: two copies that continue would publish different data under the same noise, \
                       and the difference of what they publish has no noise at all. Only if the original is gone for good, and nothing was \
                       published since this copy was made: antinoise release adopt DIR";
        Err(Error::invalid(self.path.display().to_string(), format!("a copy ({difference})"), must_be))
    }

    /// Makes a change to these parts, atomically; it is on disk when this returns.
    pub(crate) fn change(
        &mut self,
        changed: &[Part],
        make: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>,
    ) -> Result<()> {
        let failed = schema::failed(&self.path);
        let random = Key::from_os()?.expose(|key| *key);
        let begun = self.database.transaction_with_behavior(TransactionBehavior::Immediate);
        let change = begun.map_err(&failed)?;
        make(&change).map_err(&failed)?;
        let (before, next) = sealed::add(&change, &self.seal, &random, changed).map_err(&failed)?;
        self.seal.write(&self.folder, &before, &next)?;
        change.commit().map_err(&failed)
    }

    pub(crate) fn fact(&self, name: &str) -> Result<String> {
        self.fact_if_any(name)?.ok_or_else(|| self.damaged(format!("no {name}")))
    }

    pub(crate) fn fact_if_any(&self, name: &str) -> Result<Option<String>> {
        let sql = "SELECT value FROM facts WHERE name = ?";
        self.database.query_row(sql, [name], |row| row.get(0)).optional().map_err(self.failed())
    }

    /// Whether counts of some period were computed elsewhere.
    pub(crate) fn counts_were_given(&self) -> Result<bool> {
        let sql = "SELECT COUNT(*) FROM facts WHERE name = ?";
        let found: i64 = self.database.query_row(sql, [GIVEN], |row| row.get(0)).map_err(self.failed())?;
        Ok(found > 0)
    }

    /// The key for sampling rows.
    pub(crate) fn sampling_key(&self) -> Result<[u8; 32]> {
        let text = self.fact(SAMPLING)?;
        let digit = |at: usize| text.get(at..at + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let bytes: Option<Vec<u8>> = (0..64).step_by(2).map(digit).collect();
        let key = bytes.filter(|_| text.len() == 64).and_then(|bytes| bytes.try_into().ok());
        key.ok_or_else(|| self.damaged(SAMPLING))
    }

    pub(crate) fn damaged(&self, how: impl std::fmt::Display) -> Error {
        FORMAT.damaged(&self.path, how).into()
    }

    /// Numbers of frozen and of published periods.
    pub(crate) fn progress(&self) -> Result<(usize, usize)> {
        let sql = "SELECT COUNT(*), COALESCE(MIN(step), 0), COALESCE(MAX(step), -1), COALESCE(SUM(frozen IS NULL), 0),
                   COALESCE(MIN(CASE WHEN frozen IS NOT NULL THEN step END), COUNT(*)) FROM periods";
        let read = |row: &rusqlite::Row| -> rusqlite::Result<[i64; 5]> {
            Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?])
        };
        let [count, first, last, published, waiting] =
            self.database.query_row(sql, [], read).map_err(self.failed())?;
        if first != 0 || last != count - 1 || waiting != published {
            return Err(self.damaged(format!("{count} periods, the last of step {last}")));
        }
        Ok((count as usize, published as usize))
    }

    /// All frozen periods, in the order of freezing.
    pub(crate) fn periods(&self) -> Result<Vec<Period>> {
        let failed = self.failed();
        let mut select =
            self.database.prepare("SELECT period FROM periods ORDER BY step").map_err(&failed)?;
        let values = select.query_map([], |row| row.get(0)).map_err(&failed)?;
        values.map(|value| self.period(value.map_err(&failed)?)).collect()
    }

    /// Whether events were given for a step, and no user was counted.
    pub(crate) fn counted_nobody(&self, step: usize) -> Result<bool> {
        let sql = "SELECT COUNT(*) FROM counted WHERE step = ?";
        let found: i64 =
            self.database.query_row(sql, [step as i64], |row| row.get(0)).map_err(self.failed())?;
        Ok(found == 0 && !self.counts_were_given()?)
    }

    fn period(&self, value: Value) -> Result<Period> {
        match value {
            Value::Integer(number) => Ok(Period::Number(number)),
            Value::Text(text) => Ok(Period::Text(text)),
            other => Err(self.damaged(format!("a period {other:?}"))),
        }
    }

    /// Calls `each` with every user who was counted in at least `least` of the first `steps` periods, and the
    /// number of these periods: one pass over the ledger.
    pub(crate) fn frequent_users(
        &self,
        steps: usize,
        least: usize,
        each: impl FnMut(&[u8], usize),
    ) -> Result<()> {
        participants::frequent(&self.database, steps, least, each).map_err(|failure| self.unread(failure))
    }

    /// Calls `each` with every user, every period in which the user was counted, and the number of rows.
    pub(crate) fn counted(&self, mut each: impl FnMut(&str, usize, u32)) -> Result<()> {
        let (steps, _) = self.progress()?;
        let read = participants::all(&self.database, steps, |user, step, rows| {
            each(std::str::from_utf8(user).map_err(|_| Failure::Damaged)?, step, rows);
            Ok(())
        });
        read.map_err(|failure| self.unread(failure))
    }

    /// Calls `each` with every user who was counted in the first `steps` periods, once per period.
    pub(crate) fn counted_names(&self, steps: usize, each: impl FnMut(&[u8])) -> Result<()> {
        participants::names(&self.database, steps, each).map_err(|failure| self.unread(failure))
    }

    fn unread(&self, failure: Failure) -> Error {
        match failure {
            Failure::Database(error) => self.failed()(error),
            Failure::Damaged => self.damaged("the counted users"),
        }
    }

    /// The next frozen period to publish; it must have `cells` cells.
    pub(crate) fn waiting(&self, cells: usize) -> Result<Option<Waiting>> {
        let sql = "SELECT step, period, frozen FROM periods WHERE frozen IS NOT NULL ORDER BY step LIMIT 1";
        let read = |row: &rusqlite::Row| -> rusqlite::Result<(i64, Value, Vec<u8>)> {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        };
        let found = self.database.query_row(sql, [], read).optional().map_err(self.failed())?;
        let Some((step, period, frozen)) = found else { return Ok(None) };
        let (period, frozen) = (self.period(period)?, self.integers(&frozen, cells)?);
        Ok(Some(Waiting { step: step as usize, period, frozen }))
    }

    /// The noisy increments of a step; there must be `cells` of them.
    pub(crate) fn noisy(&self, step: usize, cells: usize) -> Result<Vec<i64>> {
        let sql = "SELECT noisy FROM periods WHERE step = ?";
        let found = self.database.query_row(sql, [step as i64], |row| row.get::<_, Vec<u8>>(0));
        self.integers(&found.map_err(self.failed())?, cells)
    }

    /// The state of a query, of `cells` cells; zeros at the beginning.
    pub(crate) fn running(&self, name: &str, cells: usize) -> Result<Vec<i64>> {
        let sql = "SELECT cells FROM running WHERE name = ?";
        let found = self.database.query_row(sql, [name], |row| row.get::<_, Vec<u8>>(0)).optional();
        match found.map_err(self.failed())? {
            None => Ok(vec![0; cells]),
            Some(bytes) => self.integers(&bytes, cells),
        }
    }

    fn integers(&self, bytes: &[u8], cells: usize) -> Result<Vec<i64>> {
        if bytes.len() != 8 * cells {
            return Err(self.damaged(format!("{} bytes for {cells} cells", bytes.len())));
        }
        let word = |word: &[u8]| i64::from_le_bytes(word.try_into().expect("8 bytes"));
        Ok(bytes.chunks_exact(8).map(word).collect())
    }

    /// All published figures, in the order of publication.
    pub(crate) fn published(&self) -> Result<Vec<Published>> {
        let sql = "SELECT period, key, value, lower, upper, query, bucket FROM published ORDER BY rowid";
        type Row = (Value, String, [Value; 3], String, String);
        let read = |row: &rusqlite::Row| -> rusqlite::Result<Row> {
            Ok((row.get(0)?, row.get(1)?, [row.get(2)?, row.get(3)?, row.get(4)?], row.get(5)?, row.get(6)?))
        };
        let mut statement = self.database.prepare(sql).map_err(self.failed())?;
        let rows = statement.query_map([], read).map_err(self.failed())?;
        let figure = |value: Value| match value {
            Value::Integer(number) => Ok(Figure::Whole(number)),
            Value::Real(number) => Ok(Figure::Real(number)),
            other => Err(self.damaged(format!("a figure {other:?}"))),
        };
        rows.map(|row| {
            let (period, key, [value, lower, upper], query, bucket) = row.map_err(self.failed())?;
            let (value, lower, upper) = (figure(value)?, figure(lower)?, figure(upper)?);
            Ok(Published { period: self.period(period)?, key, value, lower, upper, query, bucket })
        })
        .collect()
    }
}

/// Points in the form of the database: 8 bytes each, little-endian.
pub(crate) fn bytes(points: &[i64]) -> Vec<u8> {
    points.iter().flat_map(|point| point.to_le_bytes()).collect()
}
