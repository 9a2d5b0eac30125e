//! Ledgers, of which bytes or rows were altered; the digests of rows are made right or not.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use antinoise_input::BadInput;
use antinoise_ledger::{Error, Ledger};
use antinoise_plan::{Length, PrivacyUnit, Request, Setting, VerifiedPlan, choose};
use rusqlite::{Connection, params};
use sha2::{Digest, Sha256};

use crate::database::{Table, altered, patched};
use crate::files::{folder, hex};

const MIN_SEP: usize = 3;
const MOST: usize = 2;
const TABLES: &[Table] = &[
    Table { name: "run", row: "name", columns: &["name", "value"] },
    Table { name: "participations", row: "user, step", columns: &["user", "step"] },
    Table { name: "noisy_sums", row: "step", columns: &["step", "base", "noisy_sum"] },
    Table { name: "chain", row: "number", columns: &["number", "part", "step", "content", "token"] },
];

struct Saved {
    plan: VerifiedPlan,
    file: Vec<u8>,
    participations: Vec<(String, usize)>,
}

static SAVED: LazyLock<Saved> = LazyLock::new(|| {
    let setting = Setting::Federated { min_sep: MIN_SEP, max_participations: Some(MOST) };
    let request = Request {
        unit: PrivacyUnit::User,
        thorough: false,
        ..Request::new(40, 2, Length::Steps(8), setting)
    };
    let plan = choose(&request).expect("a plan").plan;
    let path = folder("ledgers").join("saved.db");
    let mut ledger = Ledger::open(&path, &plan, "0").expect("a ledger");
    for users in [&["ada", "grace"][..], &["edsger"], &[], &["ada", "barbara"]] {
        let charged = ledger.charge(users).expect("they may");
        ledger.record_noisy_sum(charged, "base", &[1, 2, 3]).expect("a noisy sum");
    }
    let participations = ledger.participations().expect("rows");
    drop(ledger);
    Saved { plan, file: std::fs::read(path).expect("a file"), participations }
});

/// The first byte says whether bytes or rows are altered, and whether digests are made right, so that what
/// lies behind them is reached. What still opens keeps the plan's limits and is written to; with its digests
/// as they were, it holds what was written.
pub fn run(data: &[u8]) -> bool {
    let path = folder("ledgers").join("ledger.db");
    for end in ["", "-wal", "-shm", "-journal"] {
        let _ = std::fs::remove_file(format!("{}{end}", path.display()));
    }
    let (kind, rest) = data.split_first().map_or((0, data), |(first, rest)| (*first, rest));
    let is_mended = kind & 3 == 3;
    if kind & 1 == 0 {
        patched(&path, &SAVED.file, rest);
    } else {
        let database = altered(&path, &SAVED.file, rest, TABLES);
        if is_mended {
            // Rows of other types than the tables have no digest.
            let _ = mend(&database);
        }
    }
    if let Err(error) = looked_at(&path, is_mended) {
        assert!(error.is_bad_input(), "{error:?}");
    }
    true
}

fn looked_at(path: &Path, is_mended: bool) -> Result<(), Error> {
    let mut ledger = Ledger::open(path, &SAVED.plan, "0")?;
    let mut all = ledger.participations()?;
    assert!(is_mended || all == SAVED.participations || ledger.step() == 0, "altered rows are read");
    all.sort();
    for pair in all.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        assert!(pair[1].1 >= pair[0].1 + MIN_SEP, "{pair:?}");
    }
    assert!(all.windows(MOST + 1).all(|some| some[0].0 != some[MOST].0), "{all:?}");
    let observed = ledger.observed()?;
    assert!(observed.participations <= all.len() && observed.steps <= 8);
    ledger.last_noisy_sum()?;
    if ledger.step() < 8 {
        let charged = ledger.charge(&["somebody new"])?;
        ledger.record_noisy_sum(charged, "", &[])?;
    }
    Ok(())
}

/// Writes the chain anew, of the rows as they are now.
fn mend(database: &Connection) -> rusqlite::Result<()> {
    let mut parts = vec![("run", 0, run_of(database)?)];
    let mut users = BTreeMap::<i64, (u64, [u8; 32])>::new();
    let mut select = database.prepare("SELECT step, user FROM participations")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let (count, sum) = users.entry(row.get(0)?).or_default();
        *count += 1;
        let digest = Sha256::digest(row.get::<_, String>(1)?);
        sum.iter_mut().zip(digest).for_each(|(sum, byte)| *sum ^= byte);
    }
    parts.extend(
        users.iter().map(|(step, (count, sum))| ("participations", *step, format!("{count} {}", hex(sum)))),
    );
    let mut select = database.prepare("SELECT step, base, noisy_sum FROM noisy_sums")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let (base, sum): (String, Option<Vec<u8>>) = (row.get(1)?, row.get(2)?);
        let digest = Sha256::digest(sum.unwrap_or_default());
        parts.push(("noisy_sums", row.get(0)?, format!("{} {base}", hex(&digest))));
    }
    database.execute("DELETE FROM chain", [])?;
    let mut token = "antinoise ledger".to_string();
    for (number, (part, step, content)) in parts.iter().enumerate() {
        token = hex(&Sha256::digest(format!("{token}\n{part}\n{step}\n{content}")));
        let values = params![number as i64, part, step, content, token];
        database.execute("INSERT INTO chain VALUES (?, ?, ?, ?, ?)", values)?;
    }
    Ok(())
}

fn run_of(database: &Connection) -> rusqlite::Result<String> {
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

pub fn seeds() -> Vec<Vec<u8>> {
    let named: &[u8] = &[1, 5, 0, 0, 40, b'a', b'd', b'a', 1, 9];
    vec![
        vec![],
        vec![0],
        vec![0, 0, 100, 0, 0],
        // The byte of the header that says whether a file may be written.
        vec![0, 0, 18, 0, 3],
        vec![1],
        named.into(),
        vec![1, 4, 0, 1],
        vec![1, 10, 1, 0, 1, 4],
        vec![1, 14, 3, 0, 4, 40, b'0'],
        vec![3],
        vec![3, 4, 0, 0],
        // Another user in the place of one, and one more user of a step.
        [&[3, 6, 0, 0, 22], &b"eve"[..]].concat(),
        [&[3, 5, 0, 0, 22], &b"eve"[..], &[1, 5]].concat(),
        vec![3, 10, 2, 3, 0],
        vec![3, 3, 1, 0, 2, 7],
    ]
}
