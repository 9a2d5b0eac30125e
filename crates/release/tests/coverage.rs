//! 95% intervals contain the true figures in 95% of 10,000 simulated releases, which are keys of one release
//! with independent noise.

use std::collections::HashMap;

use antinoise_release::{Period, Query, Release, Settings, Unit};

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
            // 1% is 4.6 standard deviations of the fraction.
            assert!((share - 0.95).abs() <= 0.01, "{name} of period {step}: {share}");
        }
    }
}

const EDGES: [f64; 6] = [0.0, 5.0, 10.0, 20.0, 40.0, 80.0];

/// The true figure, by definition, from the values of a key in increasing order.
fn truth(query: &Query, bucket: &str, values: &[f64]) -> f64 {
    let (count, below) =
        (values.len() as f64, |edge: f64| values.partition_point(|value| *value < edge) as f64);
    match query {
        Query::Mean { low, high } => values.iter().map(|value| value.clamp(*low, *high)).sum::<f64>() / count,
        Query::Range { low, high, .. } => below(*high) - below(*low),
        Query::Quantiles { .. } => {
            let at = (bucket.parse::<f64>().unwrap() * count).ceil() as usize - 1;
            values[at].clamp(EDGES[0], EDGES[5])
        }
        Query::Histogram { .. } => match bucket.split_once(" to ") {
            Some((low, high)) => below(high.parse().unwrap()) - below(low.parse().unwrap()),
            None if bucket == "below 0" => below(0.0),
            None => count - below(80.0),
        },
        _ => match bucket.strip_prefix("share below ") {
            Some(edge) => below(edge.parse().unwrap()) / count,
            None => below(bucket.strip_prefix("below ").unwrap().parse().unwrap()),
        },
    }
}

/// As many keys, each with about 25 values per period: intervals of sums contain the truth in 95%; those of
/// means, fractions and quantiles in at least 95%.
#[test]
fn intervals_of_values_cover_the_truth_at_least_as_often() {
    let folder = tempfile::tempdir().unwrap();
    let keys: Vec<String> = (0..SIMULATED).map(|key| format!("release {key}")).collect();
    let queries = [
        "mean:0,60",
        "histogram:0,5,10,20,40,80",
        "cdf:0,5,10,20,40,80",
        "quantiles:0.02,0.25,0.5,0.9@0,5,10,20,40,80",
        "range:5,40@0,5,10,20,40,80",
    ];
    let queries = queries.map(|query| (query.parse().unwrap(), 1.0)).to_vec();
    let settings = Settings { epsilon: 4.0, queries, ..Settings::new(keys.clone(), 3, Unit::Event) };
    let mut release = Release::create(folder.path(), &settings).unwrap();
    let mut values = vec![Vec::new(); SIMULATED];
    for step in 0..3 {
        let mut freezing = release.freeze(&Period::Number(step)).unwrap();
        for (key, name) in keys.iter().enumerate() {
            for row in 0..25 + key % 7 {
                let share =
                    ((key * 7919 + row * 104_729 + step as usize * 31_337) % 10_007) as f64 / 10_007.0;
                let value = -15.0 * (1.0 - share).ln() - 1.0;
                freezing.add("", name, Some(value)).unwrap();
                values[key].push(value);
            }
            values[key].sort_by(f64::total_cmp);
        }
        freezing.commit().unwrap();
        let mut held: HashMap<(String, String), usize> = HashMap::new();
        for row in release.publish().unwrap() {
            let key: usize = row.key.strip_prefix("release ").unwrap().parse().unwrap();
            let truth = truth(&row.query.parse().unwrap(), &row.bucket, &values[key]);
            let holds = row.lower.value() <= truth + 1e-9 && truth <= row.upper.value() + 1e-9;
            *held.entry((row.query.clone(), row.bucket.clone())).or_default() += usize::from(holds);
        }
        assert_eq!(held.len(), 1 + 7 + 12 + 4 + 1);
        for ((query, bucket), held) in held {
            let share = held as f64 / SIMULATED as f64;
            println!("{step} {query} {bucket}: {share}");
            let is_exact =
                !(query.starts_with("mean") || query.starts_with("quantiles") || bucket.starts_with("share"));
            // 1% is 4.6 standard deviations of the fraction.
            assert!(
                share >= 0.94 && (share <= 0.96 || !is_exact),
                "{query} {bucket} of period {step}: {share}"
            );
        }
    }
}
