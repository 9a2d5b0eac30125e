//! Refusals: the parameter that each names, and that a refusal changes nothing.

#[path = "common/folder.rs"]
mod folder;

use antinoise_input::BadInput;
use antinoise_release::{
    Columns, Error, Format, Handling, Late, Period, Query, Release, Settings, Status, Unit, published, query,
};
use folder::copy;

fn keys() -> Vec<String> {
    ["a", "b"].map(String::from).to_vec()
}

fn daily() -> Settings {
    Settings { max_periods: 2, ..Settings::new(keys(), 3, Unit::User) }
}

fn refused<T: std::fmt::Debug>(result: Result<T, Error>, named: &str) {
    let error = result.unwrap_err();
    assert!(error.is_bad_input(), "{error:?}");
    assert!(error.to_string().contains(named), "{named:?} is not in {error}");
}

#[test]
fn settings_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let base = daily;
    let table: Vec<(Settings, &str)> = vec![
        (Settings { keys: Vec::new(), ..base() }, "number of keys is 0"),
        (Settings { keys: vec!["a".into(), "a".into()], ..base() }, "keys is with \"a\""),
        (Settings { keys: vec![String::new()], ..base() }, "keys is with \"\""),
        (Settings { periods: 0, ..base() }, "periods is 0"),
        (Settings { max_periods: 4, ..base() }, "max_periods is 4"),
        (Settings { max_periods: 0, ..base() }, "max_periods is 0"),
        (Settings { max_rows: 0, ..base() }, "max_rows is 0"),
        (Settings { unit: Unit::Event, ..base() }, "1 for --unit event"),
        (Settings { epsilon: f64::NAN, ..base() }, "epsilon is NaN"),
        (Settings { delta: 1.0, ..base() }, "delta is 1"),
        (Settings { queries: Vec::new(), ..base() }, "number of queries is 0"),
        (Settings { queries: vec![(Query::Counts, 0.0)], ..base() }, "weight of a query is 0"),
        (Settings { queries: vec![(Query::Counts, 1.0), (Query::Counts, 2.0)], ..base() }, "counts twice"),
    ];
    for (settings, named) in table {
        refused(Release::create(&folder.path().join("new"), &settings), named);
    }
    assert!(!folder.path().join("new").exists());
    for text in [
        "",
        "count",
        "counts:1",
        "window:0",
        "window:x",
        "decay:1",
        "decay:nan",
        "sum:1",
        "sum:2,1",
        "sum:0,inf",
        "histogram:",
        "histogram:2,1",
        "mean:1",
        "mean:1,1",
        "mean:2,1",
        "mean:nan,1",
        "mean:0,inf",
        "mean:-1.7e308,1.7e308,0",
        "mean:-1.7e308,1.7e308",
        "sum:-1e308,1e308",
        "sum:0,1e-300",
        "mean:1,1.0000000000000002",
        "mean:0,5e-324",
        "cdf:",
        "cdf:1,1",
        "cdf:0,nan",
        "quantiles:0.5",
        "quantiles:0.5@1",
        "quantiles:0.5@2,1",
        "quantiles:@0,1",
        "quantiles:0@0,1",
        "quantiles:1@0,1",
        "quantiles:nan@0,1",
        "quantiles:0.9,0.1@0,1",
        "quantiles:0.5,0.5@0,1",
        "range:0,1",
        "range:1,0@0,1",
        "range:0,0@0,1",
        "range:0,2@0,1",
        "range:0,1,2@0,1,2",
        "range:nan,1@0,1",
        "range:0,1@0,inf",
    ] {
        assert!(text.parse::<Query>().is_err(), "{text}");
    }
    let many = (0..1024).map(|edge| edge.to_string()).collect::<Vec<_>>().join(",");
    for text in [format!("cdf:{many}"), format!("quantiles:0.5@{many}"), format!("range:0,1@{many}")] {
        assert!(text.parse::<Query>().unwrap_err().to_string().contains("1023"));
    }
    // The files as they were written.
    for text in ["mean:-1e100,1e100", "cdf:0.1,2", "quantiles:0.5,0.9@-1,0,1e9", "range:0,5@0,2.5,5"] {
        let query: Query = text.parse().unwrap();
        assert_eq!(query.to_string().parse::<Query>().unwrap(), query);
    }
    for text in ["", "1.5", "nan", "99999999999999999", "a\nb", "2026-02-30", "2026-03-0"] {
        assert!(text.parse::<Period>().is_err(), "{text}");
    }
}

fn read(release: &mut Release, period: &str, text: &str, handling: Handling) -> Result<String, Error> {
    let columns = Columns {
        time: "time".into(),
        user: Some("user".into()),
        key: Some("key".into()),
        value: release.settings().needs_value().then(|| "value".into()),
        categories: release.settings().categories().into_iter().map(String::from).collect(),
    };
    let format = if text.starts_with('{') { Format::JsonLines } else { Format::Csv };
    let mut freezing = release.freeze(&period.parse()?)?;
    let found = freezing.read(text.as_bytes(), format, &columns, handling, || ())?;
    freezing.commit()?;
    Ok(format!(
        "{} counted, {} late, {} later, {} unknown",
        found.tally.counted, found.late, found.later, found.tally.unknown_keys
    ))
}

const STRICT: Handling = Handling { late: Late::Refuse, leave_unknown_keys: false };

#[test]
fn events_are_refused_by_name_and_line_and_nothing_is_frozen() {
    for query in ["sum:0,10", "mean:0,10", "cdf:0,10", "quantiles:0.5@0,10", "range:0,10@0,10"] {
        refuse_events(query);
    }
}

fn refuse_events(query: &str) {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { queries: vec![(query.parse().unwrap(), 1.0)], ..daily() };
    let mut release = Release::create(folder.path(), &settings).unwrap();
    let header = "time,user,key,value\n";
    for (rows, named) in [
        ("1,x,a,nan\n", "value of an event (line 2) is NaN"),
        ("1,x,a,\n", "value of an event (line 2)"),
        ("1,x,a,1\n1,x,a,ten\n", "value of an event (line 3) is \"ten\""),
        ("1,,a,1\n", "user of an event (line 2) is empty"),
        (",x,a,1\n", "time of an event (line 2)"),
        ("nan,x,a,1\n", "time of an event (line 2)"),
        ("1,x,c,1\n", "key of an event (line 2) is \"c\""),
        ("0.5,x,a,1\n", "time of an event (line 2) is 0.5"),
        ("7,x,a,1\n", "all of them are later"),
        (
            "1,x,a,1\n3 o'clock,y,a,1\n",
            "time of an event (line 3) is \"3 o'clock\" but must be a number, as those before it",
        ),
        ("noon,x,a,1\n1,y,a,1\n", "must be text, as those before it"),
        ("1,x\n", "cells in line 2"),
        ("1,\"x\n2,y\n", "quote in line 2 that is not closed"),
    ] {
        refused(read(&mut release, "1", &format!("{header}{rows}"), STRICT), named);
    }
    let windows = format!("{header}1,x,a,1\n1,x,a,ten\n").replace('\n', "\r\n");
    refused(read(&mut release, "1", &windows, STRICT), "value of an event (line 3) is \"ten\"");
    refused(read(&mut release, "1", "when,user,key,value\n", STRICT), "column \"time\" is absent");
    refused(read(&mut release, "1", "time,time,user,key,value\n", STRICT), "there twice");
    for (line, named) in [
        ("{\"time\":1}", "without key"),
        ("{\"time\":1,\"user\":\"x\",\"key\":\"a\",\"value\":null}", "value of an event (line 1) is \"\""),
        ("{\"time\":1,\"user\":null,\"key\":\"a\",\"value\":1}", "user of an event (line 1) is empty"),
        ("{\"time\":null,\"user\":\"x\",\"key\":\"a\",\"value\":1}", "time of an event (line 1)"),
        ("{\"time\":1,\"user\":\"x\",\"key\":[\"a\"],\"value\":1}", "with key [\"a\"]"),
        ("{", "line 1"),
    ] {
        refused(read(&mut release, "1", line, STRICT), named);
    }
    assert_eq!(Status::of(folder.path()).unwrap().frozen, 0);
    let loose = Handling { late: Late::Leave, leave_unknown_keys: true };
    let rows = format!("{header}1,x,a,1\n0,y,a,1\n2,z,a,1\n1,x,c,1\n");
    assert_eq!(read(&mut release, "1", &rows, loose).unwrap(), "1 counted, 1 late, 1 later, 1 unknown");
    let rows = "{\"time\":2,\"user\":7,\"key\":\"a\",\"value\":1.5}\n\n{\"time\":1,\"user\":\"y\",\"key\":\"b\",\"value\":2}\n";
    let included = Handling { late: Late::Include, ..STRICT };
    assert_eq!(read(&mut release, "2", rows, included).unwrap(), "2 counted, 1 late, 0 later, 0 unknown");
}

#[test]
fn periods_come_in_order_once_and_no_more_than_planned() {
    let folder = tempfile::tempdir().unwrap();
    let mut release = Release::create(folder.path(), &daily()).unwrap();
    let freeze = |release: &mut Release, period: &str| -> Result<(), Error> {
        release.freeze(&period.parse()?)?.commit().map(|_| ())
    };
    freeze(&mut release, "2026-01-02").unwrap();
    for period in ["2026-01-02", "2026-01-01", "2026-01-02T10", "7"] {
        refused(freeze(&mut release, period), "after 2026-01-02");
    }
    freeze(&mut release, "2026-01-03").unwrap();
    freeze(&mut release, "2026-01-05").unwrap();
    refused(freeze(&mut release, "2026-01-06"), "one of the 3 periods of the plan");
    assert_eq!(release.publish().unwrap().len(), 6);
    assert!(release.publish().unwrap().is_empty());
}

#[test]
fn folders_that_are_not_as_they_were_are_refused() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("release");
    refused(Release::open(&path), "absent");
    let mut release = Release::create(&path, &daily()).unwrap();
    refused(Release::open(&path), "in use by another process");
    copy(&path, &root.path().join("before"));
    release.freeze(&Period::Number(1)).unwrap().commit().unwrap();
    release.publish().unwrap();
    drop(release);
    refused(Release::create(&path, &daily()), "holds a release");
    let file = root.path().join("notes.txt");
    std::fs::write(&file, "").unwrap();
    refused(Release::create(&file, &daily()), "it is a file");

    // A copy, which may be adopted if the original is gone.
    let copied = root.path().join("copied");
    copy(&path, &copied);
    refused(Release::open(&copied), "a copy");
    Release::adopt(&copied).unwrap();
    Release::open(&copied).unwrap();

    // An earlier database with a later secret.
    let rolled = root.path().join("rolled");
    copy(&path, &rolled);
    std::fs::copy(root.path().join("before/release.db"), rolled.join("release.db")).unwrap();
    refused(Release::adopt(&rolled), "older than its seal");

    // Another release's secret, and altered plans and settings.
    let other = root.path().join("other");
    Release::create(&other, &Settings { epsilon: 2.0, ..daily() }).unwrap();
    std::fs::copy(other.join("secret"), copied.join("secret")).unwrap();
    refused(Release::open(&copied), "not a checkpoint of this stream");
    let same = root.path().join("same");
    Release::create(&same, &daily()).unwrap();
    std::fs::copy(same.join("secret"), copied.join("secret")).unwrap();
    refused(Release::open(&copied), "not a checkpoint of this stream");
    for (sql, named) in [
        (
            "UPDATE facts SET value = replace(value, 'max_periods = 2', 'max_periods = 3') WHERE name = 'settings'",
            "damaged (facts: settings and plans)",
        ),
        (
            "UPDATE facts SET value = replace(value, 'non_negative = false', 'non_negative = true') WHERE name = 'settings'",
            "damaged (facts",
        ),
        (
            "UPDATE facts SET value = replace(value, 'noise_multiplier = ', 'noise_multiplier = 0') WHERE name = 'plan'",
            "damaged (facts",
        ),
        ("DELETE FROM facts WHERE name = 'plan'", "damaged (facts"),
        ("DELETE FROM periods", "damaged (period 0"),
        ("UPDATE periods SET step = 5", "damaged (period 0"),
        ("PRAGMA user_version = 9", "of version 9"),
        ("PRAGMA application_id = 9", "another database"),
    ] {
        let altered = root.path().join("altered");
        let _ = std::fs::remove_dir_all(&altered);
        copy(&path, &altered);
        rusqlite::Connection::open(altered.join("release.db")).unwrap().execute_batch(sql).unwrap();
        refused(Release::adopt(&altered), named);
    }
    #[cfg(unix)]
    for file in ["secret", "release.db", "seal"] {
        use std::os::unix::fs::PermissionsExt;
        let mode =
            |mode| std::fs::set_permissions(path.join(file), std::fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(std::fs::metadata(path.join(file)).unwrap().permissions().mode() & 0o777, 0o600);
        mode(0o644);
        refused(Release::open(&path), "mode of");
        mode(0o600);
    }
    Release::open(&path).unwrap();
}

#[test]
fn sql_reaches_what_was_published_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut release = Release::create(folder.path(), &daily()).unwrap();
    release.freeze(&Period::Number(1)).unwrap().commit().unwrap();
    release.publish().unwrap();
    let answer = query(folder.path(), "SELECT key, value FROM published ORDER BY key DESC").unwrap();
    assert_eq!((answer.columns, answer.rows.len()), (vec!["key".into(), "value".into()], 2));
    assert_eq!(published(folder.path()).unwrap().len(), 2);
    for sql in ["SELECT * FROM counted", "DELETE FROM published", "ATTACH 'x' AS x", "", "SELECT"] {
        refused(query(folder.path(), sql), "sql is");
    }
}

/// Raised figures have intervals that contain them, and never decrease.
#[test]
fn figures_are_raised_as_asked() {
    let folder = tempfile::tempdir().unwrap();
    let queries = ["counts", "sum:-5,5", "window:2"].map(|query| (query.parse().unwrap(), 1.0)).to_vec();
    let settings = Settings { queries, non_negative: true, monotone: true, periods: 30, ..daily() };
    let mut release = Release::create(folder.path(), &settings).unwrap();
    let mut last = std::collections::HashMap::new();
    let mut negative = 0;
    for step in 0..30 {
        release.freeze(&Period::Number(step)).unwrap().commit().unwrap();
        for row in release.publish().unwrap() {
            let (value, lower, upper) = (row.value.value(), row.lower.value(), row.upper.value());
            assert!(lower <= value && value <= upper, "{row:?}");
            negative += usize::from(value < 0.0);
            if row.query != "sum:-5,5" {
                assert!(value >= 0.0 && lower >= 0.0, "{row:?}");
            }
            let before = last.insert((row.key, row.query.clone()), value);
            assert!(row.query != "counts" || before.is_none_or(|before| before <= value));
        }
    }
    // A sum of values that may be negative may decrease.
    assert!(negative > 0);
}
