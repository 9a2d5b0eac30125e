//! 95% intervals hold their truths in 95% of 10,000 simulated releases: as many keys of one release, whose noise is independent of each other.

use antinoise_release::{Period, Release, Settings, Unit};

const SIMULATED: usize = 10_000;
const PERIODS: usize = 12;

#[test]
fn intervals_cover_the_truth_as_often_as_they_say() {
    let folder = tempfile::tempdir().unwrap();
    let keys = (0..SIMULATED).map(|key| format!("release {key}")).collect();
    let queries = ["counts", "window:4", "decay:0.8"].map(|query| (query.parse().unwrap(), 1.0)).to_vec();
    let settings =
        Settings { max_periods: 3, epsilon: 8.0, queries, ..Settings::new(keys, PERIODS, Unit::User) };
    let mut release = Release::create(folder.path(), &settings).unwrap();
    let count = |key: usize, step: usize| ((key * 31 + step * 17) % 50) as i64;
    for step in 0..PERIODS {
        let counts: Vec<i64> = (0..SIMULATED).map(|key| count(key, step)).collect();
        release.freeze_counts(&Period::Number(step as i64), &counts).unwrap();
        let published = release.publish().unwrap();
        for (name, weight) in [
            ("counts", Box::new(|_| 1.0) as Box<dyn Fn(usize) -> f64>),
            ("window:4", Box::new(|age| f64::from(age < 4))),
            ("decay:0.8", Box::new(|age| 0.8f64.powi(age as i32))),
        ] {
            let rows = published.iter().filter(|row| row.query == name);
            let held = rows.enumerate().filter(|(key, row)| {
                let truth: f64 = (0..=step).map(|at| weight(step - at) * count(*key, at) as f64).sum();
                row.lower.value() <= truth && truth <= row.upper.value()
            });
            let share = held.count() as f64 / SIMULATED as f64;
            // 1% is 4.6 standard deviations of the share.
            assert!((share - 0.95).abs() <= 0.01, "{name} of period {step}: {share}");
        }
    }
}
