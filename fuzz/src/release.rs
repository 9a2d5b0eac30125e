//! Folders of releases, whose database or secret was altered.

use std::path::Path;
use std::sync::LazyLock;

use antinoise_release::{Error, Release, Settings, Status, Unit, published};

use crate::database::altered;
use crate::files::{folder, write};

const NAMES: [&str; 2] = ["release.db", "secret"];
const TABLES: &[(&str, &[&str])] = &[
    ("facts", &["name", "value"]),
    ("periods", &["step", "period", "frozen", "noisy"]),
    ("running", &["name", "cells"]),
    ("published", &["period", "key", "value", "lower", "upper", "query", "bucket"]),
    ("counted", &["step", "part", "users"]),
];

/// The files of a release, two of whose three frozen periods are published.
static SAVED: LazyLock<Vec<(std::ffi::OsString, Vec<u8>)>> = LazyLock::new(|| {
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
    let files = entries.filter(|entry| entry.path().is_file());
    files.map(|entry| (entry.file_name(), std::fs::read(entry.path()).expect("a file"))).collect()
});

/// What is damaged is refused in words, or goes on; never a panic.
pub fn run(data: &[u8]) -> bool {
    let path = folder("release-altered");
    for entry in std::fs::read_dir(&path).expect("a folder") {
        let _ = std::fs::remove_file(entry.expect("an entry").path());
    }
    let (which, rest) = data.split_first().map_or((0, data), |(first, rest)| (*first as usize & 1, rest));
    for (name, bytes) in SAVED.iter() {
        let place = path.join(name);
        match () {
            () if name == NAMES[which] && which == 0 => altered(&place, bytes, rest, TABLES),
            // Its bytes alone.
            () if name == NAMES[which] => {
                altered(&place, bytes, &[&[0], rest.get(1..).unwrap_or(&[])].concat(), &[])
            }
            () => write(&place, bytes),
        }
    }
    for looked in [Status::of(&path).map(drop), published(&path).map(drop), gone_on(&path)] {
        if let Err(error) = looked {
            assert!(error.is_bad_input(), "{error:?}");
        }
    }
    true
}

fn gone_on(path: &Path) -> Result<(), Error> {
    let mut release = Release::adopt(path)?;
    release.counted(|_, _, _| ())?;
    if let Ok(period) = "9".parse() {
        let mut frozen = release.freeze(&period)?;
        frozen.add("ada", "a", Some(1.0))?;
        frozen.commit()?;
    }
    release.publish().map(drop)
}

pub fn seeds() -> Vec<Vec<u8>> {
    vec![
        vec![],
        vec![0, 0],
        vec![0, 0, 100, 0, 0],
        vec![0, 1, 6, 2, 1, 2, 1],
        vec![0, 1, 4, 0, 1],
        vec![1, 0, 200, 0, 7],
    ]
}
