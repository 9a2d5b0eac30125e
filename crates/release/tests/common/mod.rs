//! Streams of events, their counts by definition, and the points in the database.

use std::collections::HashMap;
use std::path::Path;

use antinoise_release::{Period, Release, Settings, Unit};
use rusqlite::Connection;

/// An event: period, user, key and value.
pub type Event = (usize, usize, usize, f64);

pub fn settings(periods: usize, max_periods: usize, max_rows: usize, queries: &[&str]) -> Settings {
    let queries = queries.iter().map(|query| (query.parse().unwrap(), 1.0)).collect();
    let keys = ["a", "b", "c"].map(String::from).to_vec();
    Settings { max_periods, max_rows, queries, epsilon: 5.0, ..Settings::new(keys, periods, Unit::User) }
}

pub fn freeze(release: &mut Release, step: usize, events: &[Event]) {
    let mut period = release.freeze(&Period::Number(step as i64)).unwrap();
    for &(_, user, key, value) in events.iter().filter(|event| event.0 == step) {
        period.add(&format!("user {user}"), ["a", "b", "c"][key], Some(value)).unwrap();
    }
    period.commit().unwrap();
}

/// The rows that are counted, by definition.
pub fn kept(events: &[Event], periods: usize, max_periods: usize, max_rows: usize) -> Vec<Event> {
    let (mut kept, mut took_part) = (Vec::new(), HashMap::<usize, Vec<usize>>::new());
    for step in 0..periods {
        let mut rows = HashMap::<usize, usize>::new();
        for event in events.iter().filter(|event| event.0 == step) {
            let of_user = took_part.entry(event.1).or_default();
            let counted = rows.entry(event.1).or_default();
            let is_new = !of_user.contains(&step);
            if is_new && of_user.len() == max_periods || *counted == max_rows {
                continue;
            }
            if is_new {
                of_user.push(step);
            }
            *counted += 1;
            kept.push(*event);
        }
    }
    kept
}

/// The points that were frozen and not yet published.
pub fn frozen(folder: &Path, step: usize) -> Vec<i64> {
    points(folder, step, "frozen")
}

fn points(folder: &Path, step: usize, column: &str) -> Vec<i64> {
    let database = Connection::open(folder.join("release.db")).unwrap();
    let sql = format!("SELECT {column} FROM periods WHERE step = ?");
    let bytes: Vec<u8> = database.query_row(&sql, [step as i64], |row| row.get(0)).unwrap();
    bytes.chunks_exact(8).map(|word| i64::from_le_bytes(word.try_into().unwrap())).collect()
}

/// The noise of a step that was just published, given its frozen points.
pub fn noise(folder: &Path, step: usize, frozen: &[i64]) -> Vec<i64> {
    points(folder, step, "noisy").iter().zip(frozen).map(|(noisy, frozen)| noisy - frozen).collect()
}
