//! Counts that are published after every day under one epsilon: made, continued by another process, and
//! queried.
//!
//! ```text
//! cargo run --release -p antinoise-release --example daily_counts
//! ```

use antinoise_release::{Period, Release, Settings, Status, Unit, query};

const DAYS: i64 = 30;
const SHOPS: [&str; 2] = ["north", "south"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let place = tempfile::tempdir()?;
    let folder = place.path().join("visits");
    let shops = SHOPS.map(String::from).to_vec();
    // Each user is protected, whatever the user did: one row a day and ten days are counted at most.
    let settings = Settings { max_periods: 10, ..Settings::new(shops, DAYS as usize, Unit::User) };
    let mut release = Release::create(&folder, &settings)?;
    println!("{}", Status::of(&folder)?.statement().summary().join("\n"));

    for day in 1..=DAYS {
        if day == DAYS / 2 {
            // In practice each day has a process of its own, which opens the folder.
            drop(release);
            release = Release::open(&folder)?;
        }
        let mut rows = release.freeze(&Period::Number(day))?;
        for visit in 0..400 {
            let user = (day * 389 + visit * 7919) % 5000;
            rows.add(&format!("user{user}"), SHOPS[usize::from(visit % 3 == 0)], None)?;
        }
        rows.commit()?;
        release.publish()?;
    }
    let last =
        format!("SELECT key, value, lower, upper FROM published WHERE period = {DAYS} AND query = 'counts'");
    for row in query(&folder, &last)?.rows {
        let [shop, value, lower, upper] = &row[..] else { unreachable!("four columns") };
        let shop = shop.as_str().unwrap_or_default();
        println!("{shop}: {value} visits in {DAYS} days, from {lower} to {upper} with 95% confidence");
    }
    Ok(())
}
