//! Events in CSV and JSON lines.

use std::cell::RefCell;

use antinoise_input::BadInput;
use antinoise_release::{Columns, Format, Handling, Keep, Late, Period, Release, Settings, Unit};

use crate::files::folder;

thread_local! {
    static RELEASES: RefCell<Vec<Release>> = RefCell::new(settings().iter().enumerate().map(made).collect());
}

fn settings() -> [Settings; 3] {
    let of = |unit, queries: &[&str]| {
        let queries = queries.iter().map(|query| (query.parse().expect("a query"), 1.0)).collect();
        Settings { queries, ..Settings::new(vec!["north".into(), "7".into()], 4, unit) }
    };
    let users = Settings {
        max_periods: 2,
        max_rows: 2,
        ..of(Unit::User, &["counts", "sum:-5,10", "quantiles:0.5@0,5,10"])
    };
    let sampled = Settings { keep: Keep::Sample, max_rows: 2, ..of(Unit::User, &["counts"]) };
    [users, sampled, of(Unit::Event, &["mean:0,1"])]
}

fn made((number, settings): (usize, &Settings)) -> Release {
    Release::create(&folder(&format!("release-{number}")), settings).expect("a release")
}

/// What `with` makes of a release, whose settings, period and way with other rows `kind` says.
pub fn with_release<T>(kind: u8, with: impl FnOnce(&mut Release, &Period, Handling) -> T) -> T {
    let period = if kind & 4 == 0 { "2026-03-01" } else { "17" }.parse().expect("a period");
    let late = [Late::Refuse, Late::Leave, Late::Include][(kind >> 3) as usize % 3];
    let handling = Handling { late, leave_unknown_keys: kind & 128 != 0 };
    RELEASES.with_borrow_mut(|releases| with(&mut releases[kind as usize & 3], &period, handling))
}

/// The names of the columns.
pub fn columns(release: &Release) -> Columns {
    let columns = Columns {
        time: "day".into(),
        user: Some("id".into()),
        key: Some("shop".into()),
        value: Some("spent".into()),
        ..Columns::default()
    };
    columns.of(release.settings()).expect("all are named")
}

/// Two bytes say how the others are read. Every row has one fate, the same one when it is read again.
pub fn run(data: &[u8]) -> bool {
    let Some((&[kind, format], bytes)) = data.split_first_chunk() else { return false };
    if kind & 3 == 3 {
        return false;
    }
    let format = if format & 1 == 0 { Format::Csv } else { Format::JsonLines };
    with_release(kind, |release, period, handling| {
        let columns = columns(release);
        let mut read = || {
            let mut told = 0;
            let found =
                release
                    .freeze(period)
                    .expect("a period")
                    .read(bytes, format, &columns, handling, || told += 1);
            (found, told)
        };
        match read() {
            (Ok(found), told) => {
                let tally = found.tally;
                let fates =
                    tally.counted + tally.beyond_max_rows + tally.beyond_max_periods + tally.unknown_keys;
                assert_eq!(tally.rows, fates, "{tally:?}");
                assert!(tally.unknown_keys == 0 || handling.leave_unknown_keys);
                assert!(found.late + found.lost == 0 || handling.late != Late::Refuse);
                let elsewhere =
                    found.later + found.lost + if handling.late == Late::Leave { found.late } else { 0 };
                assert_eq!(tally.rows + elsewhere, told, "{found:?}");
                assert_eq!(read().0.ok(), Some(found));
            }
            (Err(error), _) => assert!(error.is_bad_input() && !error.to_string().is_empty(), "{error:?}"),
        }
    });
    true
}

pub fn seeds() -> Vec<Vec<u8>> {
    let texts = [
        "day,id,shop,spent,x,y\n2026-03-01T17:45,ada,north,3.5,0.5,0\n2026-03-01,\"b,ob\",7,-1e3,1,1\n2026-03-02,ada,north,1,0,0\n",
        "{\"day\":\"2026-03-01\",\"id\":7,\"shop\":\"north\",\"spent\":1.5,\"x\":0,\"y\":1}\n{\"day\":\"2026-03-01T1\",\"id\":\"7\",\"shop\":7,\"spent\":\"2\",\"x\":0.1,\"y\":1}\n",
        "day,id,shop,spent,x,y\n17,1,north,0,0,0\n17.5,2,7,1e308,0.5,nan\n16,3,north,2,0,0\n",
        "{\"day\":17,\"id\":\"a\",\"shop\":\"north\",\"spent\":1,\"x\":0,\"y\":1}\n\n{\"day\":18.5,\"id\":7.0,\"shop\":7,\"spent\":2,\"x\":0.1,\"y\":1}\n",
    ];
    let kinds = [0u8, 1, 2, 8, 17, 130];
    let mut seeds = Vec::new();
    for (i, text) in texts.iter().enumerate() {
        for kind in kinds {
            let kind = if i >= 2 { kind | 4 } else { kind };
            seeds.push([&[kind, i as u8 & 1], text.as_bytes()].concat());
        }
    }
    seeds
}
