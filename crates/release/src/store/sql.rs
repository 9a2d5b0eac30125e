//! SQL queries on the published figures, and on nothing else.

use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, params};

use crate::store::database::State;
use crate::store::folder::Folder;
use crate::store::published::Published;
use crate::{Error, Result};

/// SQLite operations (some milliseconds) between two calls of `go_on`.
const OPERATIONS: i32 = 1 << 18;

/// The result of an SQL query on the published table.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Answer {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// Rows of numbers, texts and nulls.
    pub rows: Vec<Vec<serde_json::Value>>,
}

/// All figures published by the release in `folder`, in the order of publication.
///
/// # Errors
/// If there is no release, or it cannot be read.
pub fn published(folder: &Path) -> Result<Vec<Published>> {
    State::look(&Folder::new(folder)?)?.published()
}

/// Runs `sql`, one SELECT, on the table `published(period, key, value, lower, upper, query, bucket)` of the
/// release in `folder`. It runs on a copy of that table in memory: it cannot read who was counted in which
/// period.
///
/// # Errors
/// If there is no release, or SQLite refuses the statement.
pub fn query(folder: &Path, sql: &str) -> Result<Answer> {
    query_while(folder, sql, || true)
}

/// As [`query`], and stops when `go_on` returns false; `go_on` is called many times a second.
///
/// ```
/// use antinoise_release::{Release, Settings, Unit, query_while};
/// let folder = tempfile::tempdir()?;
/// Release::create(folder.path(), &Settings::new(vec!["a".into()], 2, Unit::Event))?;
/// let endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT COUNT(*) FROM n";
/// assert!(query_while(folder.path(), endless, || false).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`query`], and if it was stopped.
pub fn query_while(
    folder: &Path,
    sql: &str,
    mut go_on: impl FnMut() -> bool + Send + 'static,
) -> Result<Answer> {
    let refused = |must_be: String| Error::invalid("sql", format!("{sql:?}"), must_be);
    let word = sql.trim_start().split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or("");
    if !["select", "with", "values"].contains(&word.to_ascii_lowercase().as_str()) {
        return Err(refused("one SELECT on the table published".into()));
    }
    let mut copy = copied(&published(folder)?).map_err(|error| refused(error.to_string()))?;
    let stop = copy.progress_handler(OPERATIONS, Some(move || !go_on()));
    stop.map_err(|error| refused(error.to_string()))?;
    let run = || -> rusqlite::Result<Answer> {
        let mut statement = copy.prepare(sql)?;
        if !statement.readonly() {
            return Err(rusqlite::Error::InvalidQuery);
        }
        let columns: Vec<String> = statement.column_names().map(ToString::to_string).collect();
        let count = columns.len();
        let read = |row: &rusqlite::Row| -> rusqlite::Result<Vec<serde_json::Value>> {
            (0..count).map(|column| Ok(to_json(row.get(column)?))).collect()
        };
        let rows = statement.query_map([], read)?.collect::<rusqlite::Result<_>>()?;
        Ok(Answer { columns, rows })
    };
    run().map_err(|error| refused(format!("one SELECT on the table published ({error})")))
}

fn copied(published: &[Published]) -> rusqlite::Result<Connection> {
    let mut copy = Connection::open_in_memory()?;
    let change = copy.transaction()?;
    change.execute("CREATE TABLE published (period, key, value, lower, upper, query, bucket)", [])?;
    {
        let mut insert = change.prepare("INSERT INTO published VALUES (?, ?, ?, ?, ?, ?, ?)")?;
        for row in published {
            let Published { period, key, value, lower, upper, query, bucket } = row;
            insert.execute(params![period, key, value, lower, upper, query, bucket])?;
        }
    }
    change.commit()?;
    Ok(copy)
}

fn to_json(value: Value) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Integer(number) => number.into(),
        Value::Real(number) => number.into(),
        Value::Text(text) => text.into(),
        Value::Blob(bytes) => antinoise_input::hex(&bytes).into(),
    }
}
