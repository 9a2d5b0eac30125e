//! Alterations by hand or by a disk are detected and named, or do not affect publications.

#[path = "common/folder.rs"]
mod folder;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use antinoise_input::BadInput;
use antinoise_input::damage::damages;
use antinoise_release::{Error, Period, Published, Release, Result, Settings, Unit, published};
use folder::copy;
use rusqlite::Connection;
use rusqlite::types::Value;

/// Two periods published and one waiting; everything that a release stores.
fn begun(folder: &Path) {
    let queries = ["counts", "window:2", "sum:0,9"].map(|query| (query.parse().unwrap(), 1.0)).to_vec();
    let keys = ["a", "b"].map(String::from).to_vec();
    let settings = Settings { max_periods: 2, queries, monotone: true, ..Settings::new(keys, 4, Unit::User) };
    let mut release = Release::create(folder, &settings).unwrap();
    for period in 0..3 {
        freeze(&mut release, period).unwrap();
        if period < 2 {
            release.publish().unwrap();
        }
    }
}

fn freeze(release: &mut Release, period: i64) -> Result<()> {
    let mut freezing = release.freeze(&Period::Number(period))?;
    for user in 0..30 {
        let key = if user % 3 == 0 { "a" } else { "b" };
        freezing.add(&format!("user {}", user * (period + 1) % 37), key, Some(user as f64))?;
    }
    freezing.commit().map(|_| ())
}

/// All that the release in `folder`, possibly a copy, publishes in the end; a panic is a failure.
fn ended(folder: &Path) -> Result<Vec<Published>> {
    let go_on = || {
        let mut release = Release::adopt(folder)?;
        release.publish()?;
        freeze(&mut release, 3)?;
        release.publish()?;
        drop(release);
        published(folder)
    };
    catch_unwind(AssertUnwindSafe(go_on)).expect("no panic")
}

fn check_named(what: &str, error: &Error, words: &[&str]) {
    let said = error.to_string();
    assert!(error.is_bad_input() && words.iter().any(|word| said.contains(word)), "{what}: {said}");
    assert!(
        !["SQL", "sql", "UNIQUE", "malformed", "no such", "NULL"].iter().any(|word| said.contains(word)),
        "{what}: {said}"
    );
}

type Rows = Vec<Vec<Value>>;

fn read(database: &Connection, table: &str) -> Rows {
    let mut select = database.prepare(&format!("SELECT * FROM {table}")).unwrap();
    let columns = select.column_count();
    let row = |row: &rusqlite::Row| (0..columns).map(|column| row.get(column)).collect();
    select.query_map([], row).unwrap().map(|row| row.unwrap()).collect()
}

/// Whether the tables accept these rows.
fn write(database: &mut Connection, table: &str, rows: &Rows) -> bool {
    let change = database.transaction().unwrap();
    change.execute(&format!("DELETE FROM {table}"), []).unwrap();
    let places = vec!["?"; rows.first().map_or(0, Vec::len)].join(",");
    let insert = format!("INSERT INTO {table} VALUES ({places})");
    let all = rows.iter().all(|row| change.execute(&insert, rusqlite::params_from_iter(row)).is_ok());
    if all { change.commit().is_ok() } else { false }
}

fn altered(value: &Value) -> Vec<Value> {
    let mut others = match value {
        Value::Null => vec![Value::Integer(1), Value::Blob(vec![0; 48])],
        Value::Integer(number) => {
            vec![Value::Integer(number + 1), Value::Real(*number as f64), Value::Text(number.to_string())]
        }
        Value::Real(number) => vec![Value::Real(number + 1.0), Value::Integer(*number as i64)],
        Value::Text(text) => vec![
            Value::Text(format!("{text} ")),
            Value::Text(String::new()),
            Value::Blob(text.clone().into_bytes()),
        ],
        Value::Blob(bytes) => {
            let mut flipped = bytes.clone();
            flipped.last_mut().into_iter().for_each(|byte| *byte ^= 1);
            vec![Value::Blob(flipped), Value::Blob(bytes[..bytes.len().saturating_sub(8)].into())]
        }
    };
    others.push(Value::Null);
    others.retain(|other| other != value);
    others
}

/// Every table and column, in the first, a middle and the last row: altered, deleted, duplicated, and
/// exchanged with another row.
fn alterations(rows: &Rows) -> Vec<(String, Rows)> {
    let mut all = Vec::new();
    let mut places = vec![0, rows.len() / 2, rows.len() - 1];
    places.dedup();
    let mut with = |what: String, change: &dyn Fn(&mut Rows)| {
        let mut rows = rows.clone();
        change(&mut rows);
        all.push((what, rows));
    };
    for &at in &places {
        with(format!("row {at} deleted"), &|rows| drop(rows.remove(at)));
        with(format!("row {at} twice"), &|rows| rows.push(rows[at].clone()));
        with(format!("row {at} exchanged"), &|rows| {
            let last = rows.len() - 1;
            rows.swap(at, if at == last { 0 } else { last });
        });
        for column in 0..rows[at].len() {
            for other in altered(&rows[at][column]) {
                with(format!("row {at}, column {column}: {other:?}"), &|rows| {
                    rows[at][column] = other.clone()
                });
            }
            with(format!("row {at}, column {column} exchanged"), &|rows| {
                let other = (at + 1) % rows.len();
                let mine = rows[at][column].clone();
                rows[at][column] = std::mem::replace(&mut rows[other][column], mine);
            });
        }
    }
    with("all deleted".into(), &|rows| rows.clear());
    all
}

#[test]
fn whatever_is_altered_in_the_database_is_named() {
    let root = tempfile::tempdir().unwrap();
    let (base, folder) = (root.path().join("base"), root.path().join("case"));
    begun(&base);
    copy(&base, &folder);
    let wanted = ended(&folder).unwrap();
    assert_eq!(wanted.len(), 4 * 2 * 3);
    let again = |folder: &Path| {
        std::fs::remove_dir_all(folder).unwrap();
        copy(&base, folder);
    };
    let (mut cases, mut kept) = (0, Vec::new());
    for (table, named) in [
        ("facts", "facts"),
        ("counted", "counted"),
        ("periods", "period"),
        ("running", "running sums"),
        ("published", "published figures"),
        ("seals", "seals"),
    ] {
        again(&folder);
        let rows = read(&Connection::open(folder.join("release.db")).unwrap(), table);
        for (what, rows_now) in alterations(&rows) {
            again(&folder);
            let mut database = Connection::open(folder.join("release.db")).unwrap();
            if rows_now == rows || !write(&mut database, table, &rows_now) {
                continue;
            }
            // Columns of integers store no other type.
            if read(&database, table) == rows {
                continue;
            }
            drop(database);
            cases += 1;
            match ended(&folder) {
                Ok(figures) => {
                    assert_eq!(figures, wanted, "{table}: {what}");
                    kept.push(format!("{table}: {what}"));
                }
                Err(error) => {
                    check_named(&format!("{table}: {what}"), &error, &[named, "older than its seal"]);
                }
            }
        }
    }
    // The order in which rows of this table were written is never read.
    kept.retain(|what| !(what.starts_with("counted: row ") && what.ends_with(" exchanged")));
    assert!(cases > 230 && kept.is_empty(), "{cases}, {kept:?}");
    for (sql, named) in [
        ("CREATE TRIGGER t AFTER INSERT ON published BEGIN DELETE FROM counted; END", "damaged (tables"),
        ("DROP TABLE running", "damaged (tables"),
        ("ALTER TABLE periods ADD COLUMN more", "damaged (tables"),
        (
            "DELETE FROM published WHERE rowid > 6; DELETE FROM periods WHERE step = 2; DELETE FROM counted WHERE step = 2",
            "damaged (",
        ),
    ] {
        again(&folder);
        Connection::open(folder.join("release.db")).unwrap().execute_batch(sql).unwrap();
        check_named(sql, &ended(&folder).unwrap_err(), &[named]);
    }
}

#[test]
fn damage_of_the_database_the_seal_or_the_secret_is_named_or_changes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let [base, other, folder] = ["base", "other", "case"].map(|name| root.path().join(name));
    begun(&base);
    begun(&other);
    copy(&base, &folder);
    let wanted = ended(&folder).unwrap();
    for (file, least) in [("release.db", 121), ("seal", 200), ("secret", 200)] {
        let [whole, another] = [&base, &other].map(|folder| std::fs::read(folder.join(file)).unwrap());
        let (mut refused, mut tried) = (BTreeMap::new(), 0);
        for (kind, damaged) in damages(&whole, &[another]) {
            std::fs::remove_dir_all(&folder).unwrap();
            copy(&base, &folder);
            std::fs::write(folder.join(file), damaged).unwrap();
            tried += 1;
            match ended(&folder) {
                Ok(figures) => assert_eq!(figures, wanted, "{file}: {kind} {tried}"),
                Err(error) => {
                    *refused.entry(kind).or_insert(0) += 1;
                    let words = [
                        "damaged",
                        "another database",
                        "another file",
                        "of version",
                        "older than its seal",
                        "not a checkpoint of this stream",
                        "a writable file in a writable folder, with its first bytes as they were",
                    ];
                    check_named(&format!("{file}: {kind} {tried}"), &error, &words);
                }
            }
        }
        println!("{file}: {refused:?} of {tried} refused");
        assert!(tried > 460 && refused["flip in use"] >= least, "{file}: {refused:?} of {tried}");
    }
}

/// A byte of the header can forbid writing. SQLite's own message, "attempt to write a readonly database",
/// does not name the cause.
#[test]
fn a_header_that_forbids_writing_is_refused_in_words() {
    let root = tempfile::tempdir().unwrap();
    let (base, folder) = (root.path().join("base"), root.path().join("case"));
    begun(&base);
    copy(&base, &folder);
    let path = folder.join("release.db");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[18] = 3;
    std::fs::write(&path, bytes).unwrap();
    let refused = ended(&folder).unwrap_err();
    check_named("byte 18", &refused, &["release.db is read-only but must be a writable file"]);
}
