//! The chain of digests in the database, which records the last state of every part.
//!
//! Each change adds a random link, and one link per changed part with a digest of the part as read from the
//! database. The token of a link covers the link and the previous token, under the key of the
//! [seal](crate::store::seal). So altered, added, removed or exchanged rows of any table are detected and
//! named, and two copies that are both continued never have the same token again.

use std::collections::BTreeMap;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OptionalExtension, Params, params};
use sha2::{Digest, Sha256};

use crate::store::seal::{Seal, Token};

/// The SQL of the table. The step of a link for published figures is the last row that it covers.
pub(crate) const TABLE: &str = "CREATE TABLE seals (number INTEGER PRIMARY KEY, part TEXT NOT NULL, step INTEGER NOT NULL, digest BLOB NOT NULL, token BLOB NOT NULL)";

/// A part of the database with a digest of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Facts,
    /// A period's name, and its frozen and noisy increments.
    Period(usize),
    /// The users counted in a period.
    Counted(usize),
    Running,
    /// The figures that a change adds.
    Published,
}

/// The reason for which a database is refused.
pub(crate) enum Refusal {
    Database(rusqlite::Error),
    /// The part that was altered.
    Damaged(String),
    /// The database is intact, but not the latest one.
    OfAnotherWrite,
}

const RENEWAL: &str = "renewal";
const FACTS: &str = "SELECT name, value FROM facts ORDER BY name";
const PERIOD: &str = "SELECT period, frozen, noisy FROM periods WHERE step = ?";
const COUNTED: &str = "SELECT part, users FROM counted WHERE step = ? ORDER BY part";
const RUNNING: &str = "SELECT name, cells FROM running ORDER BY name";
const PUBLISHED: &str = "SELECT period, key, value, lower, upper, query, bucket FROM published WHERE rowid > ? AND rowid <= ? ORDER BY rowid";
const LAST_ROW: &str = "SELECT COALESCE(MAX(rowid), 0) FROM published";

/// Adds the links of a change to these parts, within its transaction; returns the tokens before and after.
pub(crate) fn add(
    change: &Connection,
    seal: &Seal,
    random: &Token,
    changed: &[Part],
) -> rusqlite::Result<(Token, Token)> {
    let last = "SELECT number, token FROM seals ORDER BY number DESC LIMIT 1";
    let last = change.query_row(last, [], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?))).optional()?;
    let (mut number, before): (i64, Token) = last.unwrap_or((-1, [0; 32]));
    let mut token = before;
    let mut insert = change.prepare("INSERT INTO seals VALUES (?, ?, ?, ?, ?)")?;
    let mut link = |part: &str, step: i64, digest: &Token| {
        token = seal.next(&token, part, step, digest);
        number += 1;
        insert.execute(params![number, part, step, digest, token]).map(|_| ())
    };
    link(RENEWAL, 0, random)?;
    for part in changed {
        let (step, digest) = match *part {
            Part::Facts => (0, digest(change, FACTS, [])?),
            Part::Period(step) => (step as i64, digest(change, PERIOD, [step as i64])?),
            Part::Counted(step) => (step as i64, digest(change, COUNTED, [step as i64])?),
            Part::Running => (0, digest(change, RUNNING, [])?),
            Part::Published => {
                let from = "SELECT COALESCE(MAX(step), 0) FROM seals WHERE part = 'published'";
                let from: i64 = change.query_row(from, [], |row| row.get(0))?;
                let to: i64 = change.query_row(LAST_ROW, [], |row| row.get(0))?;
                (to, digest(change, PUBLISHED, [from, to])?)
            }
        };
        link(part.name(), step, &digest)?;
    }
    Ok((before, token))
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Self::Facts => "facts",
            Self::Period(_) => "periods",
            Self::Counted(_) => "counted",
            Self::Running => "running",
            Self::Published => "published",
        }
    }
}

/// The last digest of each part according to the chain.
#[derive(Default)]
struct Chain {
    facts: Option<Vec<u8>>,
    running: Option<Vec<u8>>,
    periods: BTreeMap<i64, Vec<u8>>,
    counted: BTreeMap<i64, Vec<u8>>,
    /// (last row, digest) of each publication.
    published: Vec<(i64, Vec<u8>)>,
}

/// Checks the chain and all parts except the counted users.
pub(crate) fn check(database: &Connection, seal: &Seal) -> Result<(), Refusal> {
    let chain = named("seals", Chain::read(database, seal))??;
    let is_facts = named("facts", digest(database, FACTS, []))?;
    holds(chain.facts.as_deref(), &is_facts, || "facts: settings and plans".into())?;
    let is_running = named("running", digest(database, RUNNING, []))?;
    let nothing = digest_of_nothing();
    holds(chain.running.as_deref().or(Some(&nothing)), &is_running, || "running sums".into())?;
    check_periods(database, &chain)?;
    let mut from = 0;
    for (at, (to, sealed)) in chain.published.iter().enumerate() {
        let what = || format!("published figures of period {at}, numbered from 0");
        let found = named(&what(), digest(database, PUBLISHED, [from, *to]))?;
        holds(Some(sealed), &found, what)?;
        from = *to;
    }
    let last: i64 = named("published", database.query_row(LAST_ROW, [], |row| row.get(0)))?;
    if last != from {
        Err(Refusal::Damaged("published figures that no publication made".into()))
    } else {
        Ok(())
    }
}

fn check_periods(database: &Connection, chain: &Chain) -> Result<(), Refusal> {
    let counts = "SELECT COUNT(*), (SELECT COALESCE(MIN(step), 0) FROM counted), (SELECT COALESCE(MAX(step), 0) FROM counted) FROM periods";
    let read =
        |row: &rusqlite::Row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
    let (count, first, last) = named("periods", database.query_row(counts, [], read))?;
    for (step, sealed) in &chain.periods {
        let what = || format!("period {step}, numbered from 0");
        let found = named(&what(), digest(database, PERIOD, [step]))?;
        holds(Some(sealed), &found, what)?;
    }
    if count != chain.periods.len() as i64 {
        return Err(Refusal::Damaged("periods that were not frozen".into()));
    }
    if first < 0 || last > (count - 1).max(0) {
        return Err(Refusal::Damaged("users counted in periods that were not frozen".into()));
    }
    Ok(())
}

/// Checks the counted users of all periods.
pub(crate) fn check_counted(database: &Connection, seal: &Seal) -> Result<(), Refusal> {
    let chain = named("seals", Chain::read(database, seal))??;
    for (step, sealed) in &chain.counted {
        let what = || format!("the users counted in period {step}, numbered from 0");
        let found = named(&what(), digest(database, COUNTED, [step]))?;
        holds(Some(sealed), &found, what)?;
    }
    Ok(())
}

impl Chain {
    /// Reads the chain of seals and verifies each token; the refusal names the first altered link.
    fn read(database: &Connection, seal: &Seal) -> rusqlite::Result<Result<Self, Refusal>> {
        let (mut chain, mut token, mut wanted) = (Self::default(), [0; 32], 0i64);
        let mut select =
            database.prepare("SELECT number, part, step, digest, token FROM seals ORDER BY number")?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let (number, part, step): (i64, String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let (digest, found): (Vec<u8>, Vec<u8>) = (row.get(3)?, row.get(4)?);
            token = seal.next(&token, &part, step, &digest);
            if number != wanted || found != token {
                return Ok(Err(Refusal::Damaged(format!("seals: link {wanted} of the chain"))));
            }
            wanted += 1;
            match part.as_str() {
                "facts" => chain.facts = Some(digest),
                "running" => chain.running = Some(digest),
                "periods" => drop(chain.periods.insert(step, digest)),
                "counted" => drop(chain.counted.insert(step, digest)),
                "published" => chain.published.push((step, digest)),
                _ => {}
            }
        }
        Ok(if seal.knows(&token) { Ok(chain) } else { Err(Refusal::OfAnotherWrite) })
    }
}

fn holds(sealed: Option<&[u8]>, found: &[u8], what: impl FnOnce() -> String) -> Result<(), Refusal> {
    if sealed == Some(found) { Ok(()) } else { Err(Refusal::Damaged(what())) }
}

/// Turns an error of SQLite into damage of the named part, unless the system is the cause.
fn named<T>(what: &str, found: rusqlite::Result<T>) -> Result<T, Refusal> {
    found.map_err(|error| match error.sqlite_error_code() {
        Some(
            ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::SystemIoFailure
            | ErrorCode::DiskFull
            | ErrorCode::OutOfMemory
            | ErrorCode::OperationInterrupted,
        ) => Refusal::Database(error),
        _ => Refusal::Damaged(what.into()),
    })
}

/// A digest of all cells of all rows, with their types.
fn digest(database: &Connection, sql: &str, parameters: impl Params) -> rusqlite::Result<Token> {
    let mut select = database.prepare(sql)?;
    let columns = select.column_count();
    let mut rows = select.query(parameters)?;
    let mut digest = Sha256::new();
    while let Some(row) = rows.next()? {
        for column in 0..columns {
            match row.get_ref(column)? {
                ValueRef::Null => digest.update([0]),
                ValueRef::Integer(number) => {
                    digest.update([1]);
                    digest.update(number.to_le_bytes());
                }
                ValueRef::Real(number) => {
                    digest.update([2]);
                    digest.update(number.to_bits().to_le_bytes());
                }
                ValueRef::Text(bytes) => put(&mut digest, 3, bytes),
                ValueRef::Blob(bytes) => put(&mut digest, 4, bytes),
            }
        }
    }
    Ok(digest.finalize().into())
}

fn put(digest: &mut Sha256, kind: u8, bytes: &[u8]) {
    digest.update([kind]);
    digest.update((bytes.len() as u64).to_le_bytes());
    digest.update(bytes);
}

fn digest_of_nothing() -> Token {
    Sha256::digest([]).into()
}
