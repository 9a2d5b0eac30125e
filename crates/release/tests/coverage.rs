//! 95% intervals contain the true figures in 95% of 10,000 simulated releases, which are keys of one release
//! with independent noise. The intervals of k-means, whose regions are chosen with the same noise, are
//! counted at the end.

#[path = "common/cells.rs"]
mod cells;

use std::collections::HashMap;

use antinoise_release::{Axis, Period, Query, Release, Settings, Unit};
use cells::{axes, centres, nearest};

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

/// A point of one of three clusters of a key, or anywhere: row `row` of `key` in `step`.
fn drawn(key: usize, step: usize, row: usize, clusters: bool) -> [f64; 2] {
    let uniform = |salt: usize| {
        ((key * 7919 + row * 104_729 + step * 31_337 + salt * 15_485_863) % 10_007) as f64 / 10_007.0
    };
    if !clusters {
        return [60.0 * uniform(1), 60.0 * uniform(7)];
    }
    let (middle, spread) = [([12.0, 10.0], 4.0), ([40.0, 30.0], 6.0), ([15.0, 44.0], 5.0)][row % 3];
    // Sums of three uniform numbers look normal enough.
    let normal = |salt: usize| (0..3).map(|i| uniform(salt + i)).sum::<f64>() * 2.0 - 3.0;
    [middle[0] + spread * normal(1), middle[1] + spread * normal(11)]
}

/// 4000 keys serve as releases. Regions are chosen with the noise of the same figures, so no theorem gives
/// the coverage of the intervals: this test counts.
#[test]
fn intervals_hold_the_rows_and_the_means_of_regions() {
    // Rows of a key and period, from three clusters or anywhere.
    for (query, epsilon, rows, clusters) in [
        ("kmeans:3@x:0,60,12@y:0,60,12", 2.0, 60, true),
        ("kmeans:3@x:0,60,12@y:0,60,12", 2.0, 60, false),
        ("kmeans:3@x:0,60,30@y:0,60,30", 8.0, 60, true),
        ("kmeans:3@x:0,60,6", 2.0, 0, true),
        ("kmeans:4@x:0,60,8", 2.0, 10, false),
        ("kmeans:16@x:0,60,12@y:0,60,12", 2.0, 4, true),
    ] {
        let shares = held(query, epsilon, rows, clusters);
        for (what, share) in shares {
            println!("{query} at epsilon {epsilon}, {rows} rows, in clusters {clusters}: {what} {share:.3}");
            // For at least 12,000 intervals, 1% is 5 standard deviations of the fraction.
            assert!(share >= 0.94, "{query} {epsilon} {rows} {clusters} {what}: {share}");
        }
    }
}

/// The fraction of 4000 keys and two periods in which the intervals of each column, and of rows, contain the
/// truth.
fn held(query: &str, epsilon: f64, rows: usize, clusters: bool) -> HashMap<String, f64> {
    let (keys, (count, axes), folder) = (4000, axes(query), tempfile::tempdir().unwrap());
    let names: Vec<String> = (0..keys).map(|key| key.to_string()).collect();
    let queries = vec![(query.parse().unwrap(), 1.0)];
    let settings = Settings { epsilon, queries, ..Settings::new(names.clone(), 2, Unit::Event) };
    let mut release = Release::create(folder.path(), &settings).unwrap();
    let (mut all, mut held) = (vec![Vec::new(); keys], HashMap::new());
    for step in 0..2 {
        let mut freezing = release.freeze(&Period::Number(step as i64)).unwrap();
        for (key, name) in names.iter().enumerate() {
            for row in 0..rows {
                let point = drawn(key, step, row, clusters);
                freezing.add_point("", name, None, &point[..axes.len()]).unwrap();
                all[key].push(point.map(|x| x.clamp(0.0, 60.0)));
            }
        }
        freezing.commit().unwrap();
        let published = release.publish().unwrap();
        for (told, points) in published.chunks(count * (axes.len() + 1)).zip(&all) {
            let found = centres(&told.iter().collect::<Vec<_>>(), axes.len());
            let region = |point: &[f64; 2]| {
                let of_axis =
                    |(axis, x): (&Axis, &f64)| ((x * axis.cells as f64 / 60.0) as usize).min(axis.cells - 1);
                let places = axes.iter().zip(point);
                nearest(
                    &axes,
                    &found,
                    places.fold(0, |cell, (axis, x)| cell * axis.cells + of_axis((axis, x))),
                )
            };
            let regions: Vec<usize> = points.iter().map(region).collect();
            for (at, of_centre) in told.chunks(axes.len() + 1).enumerate() {
                let inside = || points.iter().zip(&regions).filter(|(_, region)| **region == at);
                let number = inside().count() as f64;
                for (i, row) in of_centre.iter().enumerate() {
                    let sum = || inside().map(|(point, _)| point[i]).sum::<f64>();
                    let truth = if i == axes.len() { number } else { sum() / number };
                    // Without rows there is no mean.
                    let holds = row.lower.value() <= truth && truth <= row.upper.value() || truth.is_nan();
                    let what = row.bucket.rsplit(' ').next().unwrap().to_string();
                    *held.entry(what).or_insert(0.0) += f64::from(holds) / (2 * count * keys) as f64;
                }
            }
        }
    }
    held
}
