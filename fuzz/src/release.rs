//! Folders of releases, whose database, seal or secret was altered; digests are made right or not.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use antinoise_input::BadInput;
use antinoise_release::{Error, Published, Release, Settings, Status, Unit, published};
use hmac::{Hmac, KeyInit, Mac};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, params};
use sha2::{Digest, Sha256};

use crate::database::{Table, altered, patched};
use crate::files::{folder, hex, write};

const DATABASE: &str = "release.db";
const SEAL: &str = "seal";
const TABLES: &[Table] = &[
    Table { name: "facts", row: "name", columns: &["name", "value"] },
    Table { name: "periods", row: "step", columns: &["step", "period", "frozen", "noisy"] },
    Table { name: "running", row: "name", columns: &["name", "cells"] },
    Table {
        name: "published",
        row: "rowid",
        columns: &["period", "key", "value", "lower", "upper", "query", "bucket"],
    },
    Table { name: "counted", row: "rowid", columns: &["step", "part", "users"] },
    Table { name: "seals", row: "number", columns: &["number", "part", "step", "digest", "token"] },
];

/// The files of a release, two of whose three frozen periods are published.
static SAVED: LazyLock<Vec<(String, Vec<u8>)>> = LazyLock::new(|| {
    let path = folder("release-saved");
    let queries =
        ["counts", "window:2", "sum:0,9"].map(|query| (query.parse().expect("a query"), 1.0)).into();
    let settings =
        Settings { queries, max_periods: 2, ..Settings::new(vec!["a".into(), "b".into()], 5, Unit::User) };
    let mut release = Release::create(&path, &settings).expect("a release");
    for day in 1..=3 {
        let mut period = release.freeze(&format!("{day}").parse().expect("a period")).expect("it is next");
        for user in ["ada", "grace"] {
            period.add(user, "a", Some(3.0)).expect("a row");
        }
        period.commit().expect("it is frozen");
        if day < 3 {
            release.publish().expect("it is published");
        }
    }
    drop(release);
    let entries = std::fs::read_dir(path).expect("a folder").map(|entry| entry.expect("an entry"));
    let name = |entry: &std::fs::DirEntry| entry.file_name().into_string().expect("a name in ASCII");
    entries.map(|entry| (name(&entry), std::fs::read(entry.path()).expect("a file"))).collect()
});

/// What is published in the end where nothing was altered.
static WANTED: LazyLock<Vec<Published>> =
    LazyLock::new(|| ended(&put(write)).expect("the release as it was saved"));

/// The first byte says what is altered: bytes of the database, rows of it, bytes of its seal or of the
/// secret; and whether digests are made right, so that what lies behind them is reached. What is damaged is
/// refused in words, or continues; as long as digests are as they were, to the same figures.
pub fn run(data: &[u8]) -> bool {
    let (kind, rest) = data.split_first().map_or((0, data), |(first, rest)| (*first, rest));
    let (which, is_mended) = (["", "", SEAL, "secret"][kind as usize & 3], kind & 4 != 0);
    let path = put(|path, bytes| match path.file_name().and_then(|name| name.to_str()) {
        Some(DATABASE) if kind & 3 == 0 => patched(path, bytes, rest),
        Some(DATABASE) if kind & 3 == 1 => drop(altered(path, bytes, rest, TABLES)),
        Some(name) if name == which => patched(path, bytes, rest),
        _ => write(path, bytes),
    });
    let is_mended = is_mended && kind & 3 != 3;
    if is_mended {
        // What cannot be read has no digest.
        let _ = if kind & 3 == 2 { mend_seal(&path) } else { mend(&path) };
    }
    for looked in [Status::of(&path).map(drop), published(&path).map(drop)] {
        looked.unwrap_or_else(|error| assert!(error.is_bad_input(), "{error:?}"));
    }
    match ended(&path) {
        Ok(figures) => assert!(is_mended || figures == *WANTED, "altered rows are published"),
        Err(error) => assert!(error.is_bad_input(), "{error:?}"),
    }
    true
}

/// The folder with files that `each` writes from those that were saved.
fn put(mut each: impl FnMut(&Path, &[u8])) -> PathBuf {
    let path = folder("release-altered");
    for entry in std::fs::read_dir(&path).expect("a folder") {
        let _ = std::fs::remove_file(entry.expect("an entry").path());
    }
    SAVED.iter().for_each(|(name, bytes)| each(&path.join(name), bytes));
    path
}

fn ended(path: &Path) -> Result<Vec<Published>, Error> {
    let mut release = Release::adopt(path)?;
    release.counted(|_, _, _| ())?;
    let mut frozen = release.freeze(&"9".parse()?)?;
    frozen.add("ada", "a", Some(1.0))?;
    frozen.commit()?;
    release.publish()?;
    drop(release);
    published(path)
}

/// Writes the chain of digests anew, of the rows as they are now, under the key of the seal.
fn mend(folder: &Path) -> Option<()> {
    let path = folder.join(SEAL);
    let text = std::fs::read_to_string(&path).ok()?;
    let mut seal: toml::Table = text.split_once('\n')?.1.parse().ok()?;
    let database = Connection::open(folder.join(DATABASE)).ok()?;
    let token = chained(&database, seal.get("key")?.as_str()?).ok()?;
    seal["tokens"] = toml::Value::Array(vec![hex(&token).into(); 2]);
    write(&path, with_digest(&seal.to_string()).as_bytes());
    Some(())
}

/// Makes the digest of the seal right.
fn mend_seal(folder: &Path) -> Option<()> {
    let path = folder.join(SEAL);
    let bytes = std::fs::read(&path).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    write(&path, with_digest(text.split_once('\n')?.1).as_bytes());
    Some(())
}

fn with_digest(body: &str) -> String {
    format!("{}\n{body}", hex(&Sha256::digest(body)))
}

/// The last token of the chain that this writes.
fn chained(database: &Connection, key: &str) -> rusqlite::Result<[u8; 32]> {
    let steps = |table: &str| -> rusqlite::Result<Vec<i64>> {
        let mut select = database.prepare(&format!("SELECT DISTINCT step FROM {table} ORDER BY step"))?;
        select.query_map([], |row| row.get(0))?.collect()
    };
    let facts = digest(database, "SELECT name, value FROM facts WHERE 0 = ? ORDER BY name", 0)?;
    let running = digest(database, "SELECT name, cells FROM running WHERE 0 = ? ORDER BY name", 0)?;
    let mut parts = vec![("renewal", 0, [7; 32]), ("facts", 0, facts), ("running", 0, running)];
    for step in steps("periods")? {
        parts.push((
            "periods",
            step,
            digest(database, "SELECT period, frozen, noisy FROM periods WHERE step = ?", step)?,
        ));
    }
    for step in steps("counted")? {
        let sql = "SELECT part, users FROM counted WHERE step = ? ORDER BY part";
        parts.push(("counted", step, digest(database, sql, step)?));
    }
    let last: i64 =
        database.query_row("SELECT COALESCE(MAX(rowid), 0) FROM published", [], |row| row.get(0))?;
    let sql = "SELECT period, key, value, lower, upper, query, bucket FROM published WHERE rowid <= ? ORDER BY rowid";
    parts.push(("published", last, digest(database, sql, last)?));
    let mut token = [0; 32];
    database.execute_batch("PRAGMA synchronous = OFF; BEGIN; DELETE FROM seals")?;
    for (number, (part, step, digest)) in parts.iter().enumerate() {
        let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).expect("any key does");
        [&token[..], &Sha256::digest(part), &step.to_le_bytes(), digest]
            .iter()
            .for_each(|bytes| mac.update(bytes));
        token = mac.finalize().into_bytes().into();
        let values = params![number as i64, part, step, digest, token];
        database.execute("INSERT INTO seals VALUES (?, ?, ?, ?, ?)", values)?;
    }
    database.execute_batch("COMMIT")?;
    Ok(token)
}

/// Of all cells of all rows, with their types.
fn digest(database: &Connection, sql: &str, parameter: i64) -> rusqlite::Result<[u8; 32]> {
    let mut select = database.prepare(sql)?;
    let columns = select.column_count();
    let mut rows = select.query([parameter])?;
    let mut digest = Sha256::new();
    while let Some(row) = rows.next()? {
        for column in 0..columns {
            let (kind, bytes) = match row.get_ref(column)? {
                ValueRef::Null => (0, vec![]),
                ValueRef::Integer(number) => (1, number.to_le_bytes().into()),
                ValueRef::Real(number) => (2, number.to_bits().to_le_bytes().into()),
                ValueRef::Text(bytes) => (3, with_length(bytes)),
                ValueRef::Blob(bytes) => (4, with_length(bytes)),
            };
            digest.update([kind]);
            digest.update(bytes);
        }
    }
    Ok(digest.finalize().into())
}

fn with_length(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u64).to_le_bytes(), bytes].concat()
}

pub fn seeds() -> Vec<Vec<u8>> {
    vec![
        vec![],
        vec![0, 0],
        vec![0, 0, 100, 0, 0],
        vec![1, 6, 2, 1, 2, 1],
        vec![1, 4, 0, 1],
        // A fact that is no text.
        vec![1, 2, 1, 0, 23, 1, 2, 3],
        vec![2, 0, 70, 0, b'0'],
        vec![3, 0, 200, 0, 7],
        vec![5],
        // The same with digests made right: a fact, a period, running sums, figures, who was counted, and
        // digests.
        vec![5, 2, 1, 0, 23, 1, 2, 3],
        vec![5, 6, 1, 1, 1, 9],
        vec![5, 7, 2, 2, 0, 200],
        vec![5, 11, 1, 0, 7, 255],
        vec![5, 15, 2, 0, 0, 1],
        vec![5, 19, 2, 0, 0, 1],
        vec![5, 22, 3, 0, 29, 1, 2],
        vec![6, 0, 80, 0, b'0'],
        vec![4, 0, 200, 10, 7],
        // The byte of the header that says whether a file may be written.
        vec![0, 0, 18, 0, 3],
        // A window so large that a period more, or one that leaves it, is too much.
        vec![5, 11, 1, 35, 7, 128],
        vec![5, 11, 1, 35, 7, 127],
    ]
}
