//! Databases that are altered: bytes of the file, or rows of its tables.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::types::Value;

use crate::files::write;

/// A table of the database.
pub struct Table {
    pub name: &'static str,
    /// What one row is found by: columns, or SQLite's own number of it.
    pub row: &'static str,
    pub columns: &'static [&'static str],
}

/// Writes `saved` to `path`, with bytes altered as `data` says: two that say where, and what is there now.
pub fn patched(path: &Path, saved: &[u8], data: &[u8]) {
    let Some((&kind, rest)) = data.split_first() else { return write(path, saved) };
    let mut bytes = saved.to_vec();
    for patch in rest.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([patch[0], patch[1]])) % bytes.len();
        bytes[at] = patch[2];
    }
    let end = if kind & 1 == 0 { bytes.len() } else { bytes.len() / 2 };
    write(path, &bytes[..end]);
}

/// Writes `saved` to `path`, with rows of its tables altered as `data` says: the database.
pub fn altered(path: &Path, saved: &[u8], data: &[u8], tables: &[Table]) -> Connection {
    write(path, saved);
    let database = Connection::open(path).expect("the file that was saved");
    // It is read once: no machine fails in between.
    database
        .execute_batch("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY; BEGIN")
        .expect("a change");
    let mut bytes = data.iter().copied();
    while let Some(what) = bytes.next() {
        // What SQLite refuses was no change.
        let _ = change(&database, what, &mut bytes, tables);
    }
    database.execute_batch("COMMIT").expect("a change");
    database
}

fn change(
    database: &Connection,
    what: u8,
    bytes: &mut impl Iterator<Item = u8>,
    tables: &[Table],
) -> rusqlite::Result<usize> {
    let Table { name, row, columns } = &tables[what as usize / 4 % tables.len()];
    let column = columns[bytes.next().unwrap_or(0) as usize % columns.len()];
    let number = bytes.next().unwrap_or(0);
    let one = format!(
        "({row}) = (SELECT {row} FROM {name} ORDER BY {row} LIMIT 1 OFFSET {number} % (SELECT COUNT(*) FROM {name}))"
    );
    match what % 4 {
        0 => database.execute(&format!("DELETE FROM {name} WHERE {one}"), []),
        1 => {
            let marks = vec!["?"; columns.len()].join(", ");
            let values: Vec<Value> = columns.iter().map(|_| value(bytes)).collect();
            database
                .execute(&format!("INSERT INTO {name} VALUES ({marks})"), rusqlite::params_from_iter(values))
        }
        2 => database.execute(&format!("UPDATE {name} SET {column} = ? WHERE {one}"), [value(bytes)]),
        // A byte of what is there, whatever its type.
        _ => {
            let at = i64::from(bytes.next().unwrap_or(0));
            let sql = format!(
                "UPDATE {name} SET {column} = CAST(substr(CAST({column} AS BLOB), 1, {at}) || x'{:02x}' || \
                 substr(CAST({column} AS BLOB), {at} + 2) AS BLOB) WHERE {one}",
                bytes.next().unwrap_or(0)
            );
            database.execute(&sql, [])
        }
    }
}

fn value(bytes: &mut impl Iterator<Item = u8>) -> Value {
    let kind = bytes.next().unwrap_or(0);
    let mut taken = |count: u8| -> Vec<u8> { bytes.by_ref().take(count.into()).collect() };
    match kind % 6 {
        0 => Value::Null,
        1 => Value::Integer(i64::from(taken(1).first().copied().unwrap_or(0)) - 2),
        2 => Value::Integer(taken(8).iter().fold(0, |number, &byte| number << 8 | i64::from(byte))),
        3 => Value::Real(f64::from_bits(
            taken(8).iter().fold(0, |number, &byte| number << 8 | u64::from(byte)),
        )),
        4 => Value::Text(String::from_utf8_lossy(&taken(kind / 6)).into_owned()),
        _ => Value::Blob(taken(kind / 6)),
    }
}
