//! The ledger: the users counted in each period, in the order of their names' bytes, stored in parts.
//!
//! A part is a blob: for each user the length of the name and the number of rows (both LEB128), and the name.
//! One part per period is in memory at a time, so that memory grows with the number of periods, not with the
//! number of users.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rusqlite::{Connection, OptionalExtension, Statement, Transaction, params};

/// The SQL of the table.
pub(crate) const TABLE: &str = "CREATE TABLE counted (step INTEGER NOT NULL, part INTEGER NOT NULL, users BLOB NOT NULL, PRIMARY KEY (step, part))";
/// A part of at least this many bytes is complete.
const FULL: usize = 1 << 14;

/// Errors of reading the ledger.
#[derive(Debug)]
pub(crate) enum Failure {
    Database(rusqlite::Error),
    /// A part of the ledger was altered.
    Damaged,
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

/// Writes the users of one period.
pub(crate) struct Writer {
    step: usize,
    part: usize,
    bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn new(step: usize) -> Self {
        Self { step, part: 0, bytes: Vec::new() }
    }

    /// Adds a user; users must come in the order of their bytes.
    pub(crate) fn add(&mut self, change: &Transaction<'_>, user: &[u8], rows: u32) -> rusqlite::Result<()> {
        number(user.len() as u64, &mut self.bytes);
        number(u64::from(rows), &mut self.bytes);
        self.bytes.extend_from_slice(user);
        if self.bytes.len() >= FULL { self.end_part(change) } else { Ok(()) }
    }

    /// Writes the rest, after the last user.
    pub(crate) fn end(mut self, change: &Transaction<'_>) -> rusqlite::Result<()> {
        if self.bytes.is_empty() { Ok(()) } else { self.end_part(change) }
    }

    fn end_part(&mut self, change: &Transaction<'_>) -> rusqlite::Result<()> {
        let mut insert = change.prepare("INSERT INTO counted VALUES (?, ?, ?)")?;
        insert.execute(params![self.step as i64, self.part as i64, self.bytes])?;
        self.part += 1;
        self.bytes.clear();
        Ok(())
    }
}

/// Reads the users of one period.
struct Reader {
    step: usize,
    part: usize,
    bytes: Vec<u8>,
    at: usize,
}

impl Reader {
    fn new(step: usize) -> Self {
        Self { step, part: 0, bytes: Vec::new(), at: 0 }
    }

    /// The next user, with the number of rows.
    fn next(&mut self, select: &mut Statement<'_>) -> Result<Option<(Vec<u8>, u32)>, Failure> {
        if self.at == self.bytes.len() {
            let read = |row: &rusqlite::Row| row.get(0);
            let found = select.query_row([self.step as i64, self.part as i64], read).optional()?;
            let Some(bytes) = found else { return Ok(None) };
            (self.bytes, self.at, self.part) = (bytes, 0, self.part + 1);
        }
        let read = || -> Option<(&[u8], u32, usize)> {
            let mut left = &self.bytes[self.at..];
            let (length, rows) = (read_number(&mut left)?, read_number(&mut left)?);
            let name = left.get(..usize::try_from(length).ok()?)?;
            Some((name, u32::try_from(rows).ok()?, left.len() - name.len()))
        };
        let (name, rows, left) = read().ok_or(Failure::Damaged)?;
        let name = name.to_vec();
        self.at = self.bytes.len() - left;
        Ok(Some((name, rows)))
    }
}

/// Calls `each` with the name, the period and the number of rows of every user of the first `steps` periods,
/// ordered by name and then by period.
pub(crate) fn all(
    database: &Connection,
    steps: usize,
    mut each: impl FnMut(&[u8], usize, u32) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut select = database.prepare("SELECT users FROM counted WHERE step = ? AND part = ?")?;
    let mut readers: Vec<Reader> = (0..steps).map(Reader::new).collect();
    let mut next = BinaryHeap::new();
    for (step, reader) in readers.iter_mut().enumerate() {
        next.extend(reader.next(&mut select)?.map(|(name, rows)| Reverse((name, step, rows))));
    }
    while let Some(Reverse((name, step, rows))) = next.pop() {
        each(&name, step, rows)?;
        let following = readers[step].next(&mut select)?;
        if following.as_ref().is_some_and(|(following, _)| *following <= name) {
            return Err(Failure::Damaged);
        }
        next.extend(following.map(|(name, rows)| Reverse((name, step, rows))));
    }
    Ok(())
}

/// Calls `each` with every user of the first `steps` periods, period by period.
pub(crate) fn names(database: &Connection, steps: usize, mut each: impl FnMut(&[u8])) -> Result<(), Failure> {
    let mut select = database.prepare("SELECT users FROM counted WHERE step = ? AND part = ?")?;
    for mut reader in (0..steps).map(Reader::new) {
        while let Some((name, _)) = reader.next(&mut select)? {
            each(&name);
        }
    }
    Ok(())
}

/// Calls `each` with every user who was counted in at least `least` of the first `steps` periods, and the
/// number of these periods; `least` is at least 1.
pub(crate) fn frequent(
    database: &Connection,
    steps: usize,
    least: usize,
    mut each: impl FnMut(&[u8], usize),
) -> Result<(), Failure> {
    let (mut user, mut periods) = (Vec::new(), 0);
    let mut end = |user: &[u8], periods: usize| {
        if periods >= least {
            each(user, periods);
        }
    };
    all(database, steps, |name, _, _| {
        if name != user {
            end(&user, periods);
            user.clear();
            user.extend_from_slice(name);
            periods = 0;
        }
        periods += 1;
        Ok(())
    })?;
    end(&user, periods);
    Ok(())
}

/// Appends a number in LEB128: seven bits per byte, the low ones first.
fn number(mut value: u64, bytes: &mut Vec<u8>) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn read_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..63).step_by(7) {
        let (&first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_were_written() {
        for value in [0, 1, 127, 128, 300, 1 << 24, u64::from(u32::MAX), (1 << 62) - 1] {
            let mut bytes = Vec::new();
            number(value, &mut bytes);
            let mut left = &bytes[..];
            assert_eq!((read_number(&mut left), left.len()), (Some(value), 0));
            assert_eq!(read_number(&mut &bytes[..bytes.len() - 1]), None);
        }
    }
}
