//! The query of docs/release.md against the release's own bounds.

use std::path::Path;

use antinoise_release::{Release, Settings, Status, Unit};
use proptest::prelude::*;
use rusqlite::Connection;

const KEYS: [&str; 4] = ["north", "south", "east", "west"];

/// The query of the page, with the day as its parameter.
fn page_query() -> String {
    let page =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/release.md")).unwrap();
    let query = page.split("```sql\n").nth(1).unwrap().split("```").next().unwrap();
    assert!(query.contains("'2026-03-05'") && query.contains("day_of_person <= 7"));
    let query = query.replace("'2026-03-05'", "?1").replace("day_of_person <= 7", "day_of_person <= 2");
    query.replace("day_of_person = 7", "day_of_person = 2")
}

fn settings() -> Settings {
    let keys = KEYS.map(String::from).into();
    Settings { max_periods: 2, epsilon: 8.0, ..Settings::new(keys, 5, Unit::User) }
}

/// The frozen points of each period.
fn frozen(folder: &Path) -> Vec<Vec<u8>> {
    let database = Connection::open(folder.join("release.db")).unwrap();
    let mut statement = database.prepare("SELECT frozen FROM periods ORDER BY step").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().collect::<rusqlite::Result<_>>().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn counts_of_the_page_are_those_that_the_release_makes(
        events in proptest::collection::vec((0..5usize, 0..6usize, 0..5usize), 0..80),
    ) {
        let (own, given) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let release = |folder: &Path| Release::create(folder, &settings().with_left_out()).unwrap();
        let (mut first, mut second) = (release(own.path()), release(given.path()));
        let warehouse = Connection::open_in_memory().unwrap();
        warehouse.execute("CREATE TABLE events (id INTEGER PRIMARY KEY, day, person, branch)", []).unwrap();
        for (day, person, branch) in &events {
            // A branch that is not a key of the release is not counted.
            let branch = KEYS.get(*branch).unwrap_or(&"elsewhere");
            let row = (format!("2026-03-0{}", day + 1), format!("p{person}"), branch);
            warehouse.execute("INSERT INTO events (day, person, branch) VALUES (?, ?, ?)", row).unwrap();
        }
        let query = page_query();
        for day in 0..5 {
            let name = format!("2026-03-0{}", day + 1);
            let mut freezing = first.freeze(&name.parse().unwrap()).unwrap();
            for (_, person, branch) in events.iter().filter(|event| event.0 == day) {
                freezing.add(&format!("p{person}"), KEYS.get(*branch).unwrap_or(&"elsewhere"), None).unwrap();
            }
            freezing.commit().unwrap();
            let mut statement = warehouse.prepare(&query).unwrap();
            let line = |row: &rusqlite::Row| Ok(format!("{},{}\n", row.get::<_, String>(0)?, row.get::<_, i64>(1)?));
            let lines: String = statement.query_map([&name], line).unwrap().collect::<rusqlite::Result<_>>().unwrap();
            let counts = second.read_counts(format!("key,count\n{lines}").as_bytes()).unwrap();
            second.freeze_counts(&name.parse().unwrap(), &counts).unwrap();
        }
        prop_assert_eq!(frozen(own.path()), frozen(given.path()));
        prop_assert!(!Status::of(own.path()).unwrap().statement().to_string().contains("their supplier vouches"));
        prop_assert!(Status::of(given.path()).unwrap().statement().to_string().contains("their supplier vouches"));
    }
}

#[test]
fn counts_that_do_not_belong_are_refused_by_line() {
    let folder = tempfile::tempdir().unwrap();
    let release = Release::create(folder.path(), &settings()).unwrap();
    for (text, named) in [
        ("key,n\nnorth,1\n", "column \"count\" is absent"),
        ("key,count\nnorth,1\nnorth,2\n", "key (line 3) is \"north\""),
        ("key,count\nhere,1\n", "key (line 2) is \"here\""),
        ("key,count\nnorth,-1\n", "count (line 2) is \"-1\""),
        ("key,count\nnorth,1.5\n", "count (line 2)"),
        ("key,count\nnorth,99999999999999999999\n", "count (line 2)"),
        ("key,count\nnorth\n", "events is"),
    ] {
        let message = release.read_counts(text.as_bytes()).unwrap_err().to_string();
        assert!(message.contains(named), "{named}: {message}");
    }
    assert_eq!(release.read_counts("count,key\n 7 ,west\n".as_bytes()).unwrap(), [0, 0, 0, 7]);
}
