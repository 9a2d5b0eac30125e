//! Parquet and Arrow files of pyarrow against the same rows as CSV (`scripts/release/parquet.py` makes all).
#![cfg(feature = "parquet")]

#[allow(dead_code, reason = "other tests use the rest")]
mod common;

use std::fs::File;
use std::path::PathBuf;

use antinoise_input::BadInput;
use antinoise_release::{
    ColumnFormat, Columns, Format, Found, Freezing, Handling, Late, Period, Release, Result, Settings, Unit,
};

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn columns() -> Columns {
    let [time, user, key, value] = ["time", "user", "shop", "minutes"].map(String::from);
    let categories = ["shop", "late", "minutes"].map(String::from).to_vec();
    Columns { time, user: Some(user), key: Some(key), value: Some(value), categories }
}

/// The numbers of rows, and the points of the period.
fn frozen(day: &str, read: impl FnOnce(&mut Freezing) -> Result<Found>) -> Result<(Found, Vec<i64>)> {
    let folder = tempfile::tempdir().unwrap();
    let marginals = "marginals:shop=north|south|east;late=true|false;minutes@5,10;ways=1,3";
    let queries = ["counts", "sum:0,25", "histogram:0,5,10,20", marginals];
    let queries = queries.map(|query| (query.parse().unwrap(), 1.0));
    let keys = ["north", "south", "east"].map(String::from).to_vec();
    let settings = Settings { max_rows: 5, queries: queries.to_vec(), ..Settings::new(keys, 4, Unit::User) };
    let mut release = Release::create(folder.path(), &settings)?;
    let mut freezing = release.freeze(&day.parse::<Period>()?)?;
    let found = read(&mut freezing)?;
    freezing.commit()?;
    drop(release);
    Ok((found, common::frozen(folder.path(), 0)))
}

#[test]
fn parquet_and_arrow_say_what_csv_says() {
    for (day, late) in [("2026-03-02", Late::Leave), ("2026-03-03", Late::Include), ("2026-03", Late::Refuse)]
    {
        let handling = Handling { late, leave_unknown_keys: true };
        let mut seen = 0;
        let by_parquet = frozen(day, |freezing| {
            freezing.read_columns(
                &data("events.parquet"),
                ColumnFormat::Parquet,
                &columns(),
                handling,
                || seen += 1,
            )
        });
        let by_csv = frozen(day, |freezing| {
            let file = File::open(data("events.csv")).unwrap();
            freezing.read(file, Format::Csv, &columns(), handling, || ())
        });
        for name in ["events.arrow", "events.arrows"] {
            let by_arrow = frozen(day, |freezing| {
                freezing.read_columns(&data(name), ColumnFormat::Arrow, &columns(), handling, || seen += 1)
            });
            assert_eq!(by_arrow.unwrap(), *by_parquet.as_ref().unwrap());
        }
        let (found, points) = by_parquet.unwrap();
        assert!(found.tally.counted > 50 && points.iter().any(|&points| points > 0), "{found:?}");
        assert_eq!((found, points), by_csv.unwrap());
        assert_eq!(seen, 3 * 500);
    }
}

#[test]
fn what_cannot_be_counted_is_named() {
    let handling = Handling { late: Late::Refuse, leave_unknown_keys: false };
    let refused = |day: &str, columns: Columns| {
        let read = frozen(day, |freezing| {
            freezing.read_columns(&data("events.parquet"), ColumnFormat::Parquet, &columns, handling, || ())
        });
        let error = read.unwrap_err();
        assert!(error.is_bad_input(), "{error:?}");
        error.to_string()
    };
    assert!(refused("2026-03-02", columns()).contains("row 0"), "{}", refused("2026-03-02", columns()));
    assert!(refused("2026-03", columns()).contains("\"elsewhere\""), "{}", refused("2026-03", columns()));
    let note = Columns { key: Some("note".into()), ..columns() };
    let message = refused("2026-03", note);
    assert!(message.ends_with("but must be text, whole numbers or true and false"), "{message}");
    let compressed = frozen("2026-03-02", |freezing| {
        freezing.read_columns(&data("events.feather"), ColumnFormat::Arrow, &columns(), handling, || ())
    });
    let message = compressed.unwrap_err().to_string();
    assert!(message.contains("events.feather") && message.contains("lz4"), "{message}");
}
