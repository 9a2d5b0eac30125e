//! Simulated releases in which a few users come far more often than the others.

use antinoise_release::{Period, Published, Query, Release, Settings, Unit};

pub const PERIODS: usize = 8;
const USERS: usize = 400;

/// The figures of a query after the last period, summarised over many releases.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub query: String,
    /// The rows or users to which the query's intervals refer, as a phrase.
    pub about: String,
    /// Whether the intervals refer to all rows or users, and not only to those within the bounds.
    pub of_all: bool,
    pub releases: usize,
    /// Number of releases whose interval contains the true number of these rows or users.
    pub held: usize,
    /// Number of releases whose interval contains the number of all rows.
    pub held_all: usize,
    /// Number of releases whose lower end is at most the number of all rows.
    pub above_lower: usize,
    /// Means over the releases: the truth, the number of all rows, and the width of the interval.
    pub truth: f64,
    pub all: f64,
    pub width: f64,
}

/// Users' rows by period: a user comes in every period with the same probability, and heavy users in nearly
/// all, with several rows.
fn rows_of_users(state: &mut u64) -> Vec<[usize; PERIODS]> {
    let mut next = || {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 11) as f64 / (1u64 << 53) as f64
    };
    (0..USERS)
        .map(|_| {
            // Few are heavy: the chance to come is below 0.25 for most users.
            let often = next().powi(3);
            std::array::from_fn(|_| if next() < often { 1 + (next() * 6.0 * often) as usize } else { 0 })
        })
        .collect()
}

/// Settings of the simulation: a user is counted in at most 4 periods, with at most 2 rows each; events have
/// no bounds.
pub fn settings(unit: Unit) -> Settings {
    let queries = ["counts", "window:3"].map(|query| (query.parse().unwrap(), 1.0)).to_vec();
    let settings = Settings { epsilon: 4.0, queries, ..Settings::new(vec!["all".into()], PERIODS, unit) };
    match unit {
        Unit::User => Settings { max_periods: 4, max_rows: 2, ..settings }.with_left_out(),
        Unit::Event => settings,
    }
}

/// Makes `releases` releases of data drawn by `seed`, each with a key of its own.
pub fn simulate(settings: &Settings, releases: usize, seed: u64) -> Vec<Outcome> {
    let outcome = |query: &Query| Outcome {
        query: query.to_string(),
        about: settings.about(query),
        of_all: settings.is_of_all(query),
        releases,
        held: 0,
        held_all: 0,
        above_lower: 0,
        truth: 0.0,
        all: 0.0,
        width: 0.0,
    };
    let mut outcomes: Vec<Outcome> = settings.queries.iter().map(|(query, _)| outcome(query)).collect();
    let mut state = seed;
    for _ in 0..releases {
        let rows = rows_of_users(&mut state);
        let published = published(settings, &rows);
        for (outcome, (query, _)) in outcomes.iter_mut().zip(&settings.queries) {
            let last = published.iter().rev().find(|row| row.query == outcome.query).unwrap();
            let [truth, all] = [true, false].map(|bounded| truth(settings, query, &rows, bounded) as f64);
            let (lower, upper) = (last.lower.value(), last.upper.value());
            outcome.held += usize::from(lower <= truth && truth <= upper);
            outcome.held_all += usize::from(lower <= all && all <= upper);
            outcome.above_lower += usize::from(lower <= all);
            outcome.truth += truth / releases as f64;
            outcome.all += all / releases as f64;
            outcome.width += (upper - lower) / releases as f64;
        }
    }
    outcomes
}

/// The figures that a new release publishes for these rows.
fn published(settings: &Settings, rows: &[[usize; PERIODS]]) -> Vec<Published> {
    let folder = tempfile::tempdir().unwrap();
    let mut release = Release::create(folder.path(), settings).unwrap();
    for period in 0..PERIODS {
        let mut freezing = release.freeze(&Period::Number(period as i64)).unwrap();
        for (user, rows) in rows.iter().enumerate() {
            for _ in 0..rows[period] {
                freezing.add(&format!("user {user}"), "all", None).unwrap();
            }
        }
        freezing.commit().unwrap();
    }
    release.publish().unwrap()
}

/// The true figure of `query` after the last period: over the rows within the bounds if `bounded`, else over
/// all rows.
fn truth(settings: &Settings, query: &Query, rows: &[[usize; PERIODS]], bounded: bool) -> usize {
    let (most_periods, most_rows) = match bounded && settings.unit == Unit::User {
        true => (settings.max_periods, settings.max_rows),
        false => (PERIODS, usize::MAX),
    };
    let of_user = |rows: &[usize; PERIODS]| -> usize {
        let came = rows.iter().enumerate().filter(|(_, rows)| **rows > 0);
        let counted: Vec<(usize, usize)> = came.map(|(at, rows)| (at, *rows)).take(most_periods).collect();
        let within = |from: usize| -> usize {
            counted.iter().filter(|(at, _)| *at >= from).map(|(_, rows)| (*rows).min(most_rows)).sum()
        };
        match query {
            Query::UsersAtBound => {
                usize::from(rows.iter().filter(|rows| **rows > 0).count() >= settings.max_periods)
            }
            Query::UsersOverRows => {
                let came = rows.iter().filter(|rows| **rows > 0).take(settings.max_periods);
                came.filter(|rows| **rows > settings.max_rows).count()
            }
            Query::Window { width } => within(PERIODS - width),
            _ => within(0),
        }
    };
    rows.iter().map(of_user).sum()
}
