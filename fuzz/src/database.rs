//! Databases that are altered: bytes of the file, or rows of its tables.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::types::Value;

use crate::files::write;

/// Writes `saved` to `path`, altered as `data` says: by bytes in place, or by rows.
pub fn altered(path: &Path, saved: &[u8], data: &[u8], tables: &[(&str, &[&str])]) {
    let Some((&kind, rest)) = data.split_first() else { return write(path, saved) };
    if kind & 1 == 0 {
        let mut bytes = saved.to_vec();
        for patch in rest.chunks_exact(3) {
            let at = usize::from(u16::from_le_bytes([patch[0], patch[1]])) % bytes.len();
            bytes[at] = patch[2];
        }
        let cut = if kind & 2 == 0 { bytes.len() } else { bytes.len() / 2 };
        return write(path, &bytes[..cut]);
    }
    write(path, saved);
    let database = Connection::open(path).expect("the file that was saved");
    let mut bytes = rest.iter().copied();
    while let Some(what) = bytes.next() {
        // What SQLite refuses was no change.
        let _ = change(&database, what, &mut bytes, tables);
    }
}

fn change(
    database: &Connection,
    what: u8,
    bytes: &mut impl Iterator<Item = u8>,
    tables: &[(&str, &[&str])],
) -> rusqlite::Result<usize> {
    let (table, columns) = tables[what as usize / 4 % tables.len()];
    let column = columns[bytes.next().unwrap_or(0) as usize % columns.len()];
    let row = i64::from(bytes.next().unwrap_or(0));
    let one = format!(
        "(SELECT {} FROM {table} ORDER BY 1 LIMIT 1 OFFSET {row} % (SELECT COUNT(*) FROM {table}))",
        columns[0]
    );
    match what % 4 {
        0 => database.execute(&format!("DELETE FROM {table} WHERE {} = {one}", columns[0]), []),
        1 => {
            let marks = vec!["?"; columns.len()].join(", ");
            let values: Vec<Value> = columns.iter().map(|_| value(bytes)).collect();
            database
                .execute(&format!("INSERT INTO {table} VALUES ({marks})"), rusqlite::params_from_iter(values))
        }
        2 => database.execute(
            &format!("UPDATE {table} SET {column} = ? WHERE {} = {one}", columns[0]),
            [value(bytes)],
        ),
        // A byte of what is there, whatever its type.
        _ => {
            let at = i64::from(bytes.next().unwrap_or(0));
            let sql = format!(
                "UPDATE {table} SET {column} = CAST(substr(CAST({column} AS BLOB), 1, {at}) || x'{:02x}' || \
                 substr(CAST({column} AS BLOB), {at} + 2) AS BLOB) WHERE {} = {one}",
                bytes.next().unwrap_or(0),
                columns[0]
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
