//! The chain of digests, which records the last state of every part of the ledger.
//!
//! Each change of the ledger adds a link for each part that it changed. A link's token covers the part's
//! content and the previous token, so that altered, added or removed rows, and missing rounds, are detected.

use std::collections::BTreeMap;

use antinoise_input::hex;
use rusqlite::{Connection, OptionalExtension, params};
use sha2::{Digest, Sha256};

/// The SQL of the table.
pub(crate) const TABLE: &str = "CREATE TABLE chain (number INTEGER PRIMARY KEY, part TEXT NOT NULL, step INTEGER NOT NULL, content TEXT NOT NULL, token TEXT NOT NULL)";
/// The token before the first link.
const BEGINNING: &str = "antinoise ledger";

/// A part of the ledger that has its own digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// The table `run`.
    Run,
    /// The users of a step.
    Participations(usize),
    /// The base of a step's noisy sum, and a digest of its noisy sum.
    NoisySum(usize),
}

impl Part {
    fn name_and_step(self) -> (&'static str, usize) {
        match self {
            Self::Run => ("run", 0),
            Self::Participations(step) => ("participations", step),
            Self::NoisySum(step) => ("noisy_sums", step),
        }
    }
}

/// A digest of a set of users, independent of their order: their number, and the exclusive or of the digests
/// of their names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Users {
    count: u64,
    sum: [u8; 32],
}

impl Users {
    pub(crate) fn add(&mut self, user: &str) {
        self.count += 1;
        let digest = Sha256::digest(user.as_bytes());
        self.sum.iter_mut().zip(digest).for_each(|(sum, byte)| *sum ^= byte);
    }

    pub(crate) fn content(&self) -> String {
        format!("{} {}", self.count, hex(&self.sum))
    }
}

/// Adds a link, within the transaction of a change.
pub(crate) fn add(change: &Connection, part: Part, content: &str) -> rusqlite::Result<()> {
    let last = "SELECT number, token FROM chain ORDER BY number DESC LIMIT 1";
    let last = change.query_row(last, [], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?))).optional()?;
    let (number, before): (i64, String) = last.unwrap_or((-1, BEGINNING.into()));
    let (name, step) = part.name_and_step();
    let mut insert = change.prepare("INSERT INTO chain VALUES (?, ?, ?, ?, ?)")?;
    let token = token(&before, name, step as i64, content);
    insert.execute(params![number + 1, name, step as i64, content, token]).map(|_| ())
}

/// The content of each part according to the chain, by name and step.
pub(crate) struct Held(BTreeMap<(String, i64), String>);

impl Held {
    /// Reads the chain and verifies its digests; the inner error names the first altered link.
    pub(crate) fn read(database: &Connection) -> rusqlite::Result<Result<Self, String>> {
        let sql = "SELECT number, part, step, content, token FROM chain ORDER BY number";
        let mut select = database.prepare(sql)?;
        let mut rows = select.query([])?;
        let (mut held, mut before, mut wanted) = (BTreeMap::new(), BEGINNING.to_string(), 0i64);
        while let Some(row) = rows.next()? {
            let (number, part, step): (i64, String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let (content, found): (String, String) = (row.get(3)?, row.get(4)?);
            before = token(&before, &part, step, &content);
            if number != wanted || found != before {
                return Ok(Err(format!("link {wanted} of its chain of digests")));
            }
            wanted += 1;
            held.insert((part, step), content);
        }
        Ok(Ok(Self(held)))
    }

    /// Refuses a chain with noisy sums of step `next` or later: the tables, which end before `next`, then
    /// lack rounds.
    pub(crate) fn check_rounds(&self, next: usize) -> Result<(), String> {
        let later = self.0.keys().filter(|(part, step)| part == "noisy_sums" && *step >= next as i64);
        match (later.clone().count(), later.max()) {
            (missing @ 1.., Some((_, last))) => {
                Err(format!("{missing} rounds are missing: it had recorded step {last}"))
            }
            _ => Ok(()),
        }
    }

    fn take(&mut self, part: &str, step: usize) -> Option<String> {
        self.0.remove(&(part.to_string(), step as i64))
    }

    /// Compares every part with the tables; the inner error names an altered part. `users` are the users of
    /// each finished step and of the next step, `next`.
    pub(crate) fn check(
        mut self,
        database: &Connection,
        next: usize,
        users: &[Users],
    ) -> rusqlite::Result<Result<(), String>> {
        if self.take("run", 0) != Some(run(database)?) {
            return Ok(Err("the recorded values, in the table `run`".into()));
        }
        for (step, found) in users.iter().enumerate() {
            let nobody = *found == Users::default();
            if self.take("participations", step).map_or(!nobody, |held| held != found.content()) {
                return Ok(Err(format!("the participants of step {step}")));
            }
        }
        let mut select = database.prepare("SELECT step, base, noisy_sum FROM noisy_sums ORDER BY step")?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let (step, base, sum): (u32, String, Option<Vec<u8>>) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let step = step as usize;
            let held = self.take("noisy_sums", step).unwrap_or_default();
            let same = match sum {
                Some(sum) => step + 1 == next && held == self::noisy_sum(&base, &sum),
                None => step + 1 < next && held.split_once(' ').is_some_and(|(_, written)| written == base),
            };
            if !same {
                return Ok(Err(format!("the noisy sum of step {step}")));
            }
        }
        Ok(match self.0.into_keys().next() {
            None => Ok(()),
            Some((part, step)) => {
                Err(format!("the {part} of step {step}, which the chain records and the tables lack"))
            }
        })
    }
}

/// A digest of the table `run`.
pub(crate) fn run(database: &Connection) -> rusqlite::Result<String> {
    let mut select = database.prepare("SELECT name, value FROM run ORDER BY name")?;
    let mut rows = select.query([])?;
    let mut digest = Sha256::new();
    while let Some(row) = rows.next()? {
        for column in 0..2 {
            let text: String = row.get(column)?;
            digest.update(format!("{}:{text}", text.len()));
        }
    }
    Ok(hex(&digest.finalize()))
}

/// The content of a noisy sum's part of the chain. The noisy sum itself is deleted when the next one is
/// recorded; its digest remains.
pub(crate) fn noisy_sum(base: &str, noisy_sum: &[u8]) -> String {
    format!("{} {}", hex(&Sha256::digest(noisy_sum)), base)
}

fn token(before: &str, part: &str, step: i64, content: &str) -> String {
    hex(&Sha256::digest(format!("{before}\n{part}\n{step}\n{content}")))
}
