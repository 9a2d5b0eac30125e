//! The number of events per second that one core counts within the bounds, and the time of a publication.
//!
//! ```sh
//! cargo run --release -p antinoise-release --example speed -- 10000000 1000000 10000
//! ```
//!
//! Arguments: events, users, keys. Events come from memory, with random users and keys; a period is one pass
//! over all of them.

use std::time::Instant;

use antinoise_release::{Columns, Format, Handling, Late, Period, Release, Settings, Unit};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>());
    let mut next = |default: usize| arguments.next().unwrap_or(Ok(default));
    let (events, users, keys) = (next(1_000_000)?, next(100_000)?, next(1000)?);
    let folder = tempfile::tempdir()?;
    let names: Vec<String> = (0..keys).map(|key| format!("key{key}")).collect();
    let settings = Settings { max_periods: 60, max_rows: 3, ..Settings::new(names.clone(), 365, Unit::User) };
    let mut release = Release::create(folder.path(), &settings)?;
    let user: Vec<String> = (0..users).map(|user| format!("user{user}")).collect();
    let at = |event: usize| (event.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) % users;

    let start = Instant::now();
    let mut freezing = release.freeze(&Period::Number(1))?;
    for event in 0..events {
        freezing.add(&user[at(event)], &names[event % keys], None)?;
    }
    let counted = start.elapsed().as_secs_f64();
    freezing.commit()?;
    let all = start.elapsed().as_secs_f64();
    println!(
        "counting: {:.2e} events a second; with the ledger on disk: {:.2e}",
        events as f64 / counted,
        events as f64 / all
    );
    let mut times = vec![publication(&mut release)?];

    let row = |event: usize| format!("2,{},{}\n", user[at(event)], names[event % keys]);
    let text: String = std::iter::once("time,user,key\n".to_string()).chain((0..events).map(row)).collect();
    let named = |name: &str| name.to_string();
    let columns = Columns {
        time: named("time"),
        user: Some(named("user")),
        key: Some(named("key")),
        ..Columns::default()
    };
    let handling = Handling { late: Late::Refuse, leave_unknown_keys: false };
    let start = Instant::now();
    let mut freezing = release.freeze(&Period::Number(2))?;
    freezing.read(text.as_bytes(), Format::Csv, &columns, handling, || ())?;
    let read = start.elapsed().as_secs_f64();
    freezing.commit()?;
    let all = start.elapsed().as_secs_f64();
    println!(
        "from CSV: {:.2e} events a second; with the ledger on disk: {:.2e}",
        events as f64 / read,
        events as f64 / all
    );

    times.push(publication(&mut release)?);
    for period in 3..12 {
        release.freeze_counts(&Period::Number(period), &vec![7; keys])?;
        times.push(publication(&mut release)?);
    }
    times.sort_by(f64::total_cmp);
    println!(
        "publication of {keys} keys: {:.1} ms (median of {}; least {:.1})",
        times[5],
        times.len(),
        times[0]
    );
    Ok(())
}

/// The time of one publication, in milliseconds.
fn publication(release: &mut Release) -> antinoise_release::Result<f64> {
    let start = Instant::now();
    release.publish()?;
    Ok(1e3 * start.elapsed().as_secs_f64())
}
