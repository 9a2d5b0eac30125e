//! A private model of a table in CSV, and the folder to give away.
//!
//! ```text
//! cargo run --release -p antinoise-study --example train_table [docs/flights.csv]
//! ```
//!
//! The table has a flight a row, and whether it was late.

use std::sync::atomic::AtomicBool;

use antinoise_plan::{Length, Plan, Setting};
use antinoise_study::{Outcome, Settings, StudyRun, Table};
use antinoise_train::data::Schema;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "docs/flights.csv".into());
    // Ranges and categories are public knowledge, never taken from the rows.
    let schema = Schema::from_toml(
        r#"
        label = "late"
        classes = ["no", "yes"]
        [[columns]]
        name = "hour"
        values = { range = [0, 24] }
        [[columns]]
        name = "distance"
        values = { range = [0, 5000] }
        [[columns]]
        name = "origin"
        values = { categories = ["EWR", "JFK", "LGA"] }
    "#,
    )?;
    let table = Table { test: None, test_share: 0.2, test_seed: None, delimiter: b',', user: None, schema };
    let settings = Settings {
        table: Some(table),
        epsilons: vec![1.0],
        lengths: vec![Length::Epochs(10)],
        batch_size: Some(200),
        settings: vec![Setting::Cyclic],
        ..Settings::new(format!("csv:{path}"))
    };
    let place = tempfile::tempdir()?;
    let run = StudyRun::new(&settings, &place.path().join("study"), None, &|_| ())?;
    let Outcome::One(result) = run.train(&AtomicBool::new(false), &|_| ())? else {
        unreachable!("one epsilon");
    };
    let trained = &result.runs[0];
    println!(
        "{}: {:.1}% of {} test rows are right; {:.1}% are of the largest class",
        trained.mechanism,
        100.0 * trained.test_accuracy,
        trained.tested.count(),
        100.0 * result.largest_class_share
    );
    println!("{}", Plan::load(&result.model.join("plan.toml"))?.statement().summary().join("\n"));
    for file in std::fs::read_dir(&result.model)? {
        println!("in the folder to give away: {}", file?.file_name().display());
    }
    Ok(())
}
