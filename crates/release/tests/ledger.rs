//! The ledger of counted users, in parts.

use std::collections::BTreeMap;
use std::path::Path;

use antinoise_release::{Period, Release, Settings, Unit};
use rusqlite::Connection;

/// More users than a part holds, some with long names, some in every period.
fn filled(folder: &Path) -> BTreeMap<(String, usize), u32> {
    let keys = vec!["a".into()];
    let settings = Settings { max_periods: 2, max_rows: 3, ..Settings::new(keys, 5, Unit::User) };
    let mut release = Release::create(folder, &settings).unwrap();
    let (mut expected, mut periods) = (BTreeMap::new(), BTreeMap::<String, usize>::new());
    for step in 0..4usize {
        let mut freezing = release.freeze(&Period::Number(step as i64)).unwrap();
        for row in 0..9000usize {
            let user = row * (step + 3) % 5000;
            let name = format!("{}{user}", ["u", "é", &"long".repeat(50)][user % 3]);
            freezing.add(&name, "a", None).unwrap();
            let rows = expected.get(&(name.clone(), step)).copied().unwrap_or(0);
            if rows == 0 {
                let counted = periods.entry(name.clone()).or_default();
                if *counted == 2 {
                    continue;
                }
                *counted += 1;
            }
            expected.insert((name, step), (rows + 1).min(3));
        }
        freezing.commit().unwrap();
    }
    expected
}

fn counted(release: &Release) -> BTreeMap<(String, usize), u32> {
    let mut found = BTreeMap::new();
    release.counted(|user, step, rows| assert!(found.insert((user.into(), step), rows).is_none())).unwrap();
    found
}

#[test]
fn the_ledger_is_what_was_counted() {
    let folder = tempfile::tempdir().unwrap();
    let expected = filled(folder.path());
    assert_eq!(counted(&Release::open(folder.path()).unwrap()), expected);
    let mut release = Release::open(folder.path()).unwrap();
    // Users who were counted in two periods are not counted any more.
    let mut freezing = release.freeze(&Period::Number(9)).unwrap();
    let spent = |user: &String| expected.keys().filter(|(name, _)| name == user).count() == 2;
    let users: std::collections::BTreeSet<&String> = expected.keys().map(|(user, _)| user).collect();
    let left = users.iter().filter(|user| !spent(user)).count() as u64;
    for user in &users {
        freezing.add(user, "a", None).unwrap();
    }
    assert!(left > 0 && left < users.len() as u64);
    assert_eq!(freezing.tally().counted, left);
    assert_eq!(freezing.tally().beyond_max_periods, users.len() as u64 - left);
}

#[test]
fn what_is_not_as_it_was_written_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path());
    let database = || Connection::open(folder.path().join("release.db")).unwrap();
    for (period, sql) in [
        (0, "UPDATE counted SET users = X'05' WHERE step = 0 AND part = 0"),
        // Out of order: a user could be counted as if new.
        (
            1,
            "UPDATE counted SET users = (SELECT users FROM counted WHERE step = 1 AND part = 0) WHERE step = 1 AND part = 1",
        ),
    ] {
        let before = std::fs::read(folder.path().join("release.db")).unwrap();
        database().execute_batch(sql).unwrap();
        let mut release = Release::open(folder.path()).unwrap();
        let error = release.freeze(&Period::Number(9)).unwrap_err().to_string();
        assert!(
            error.contains(&format!("damaged (the users counted in period {period}, numbered from 0)")),
            "{error}"
        );
        drop(release);
        std::fs::write(folder.path().join("release.db"), before).unwrap();
    }
}
