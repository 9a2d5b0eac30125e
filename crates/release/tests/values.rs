//! Means, CDFs, quantiles, ranges and histograms with correlated buckets: publications against dense
//! matrices, and the bound of a unit.

mod common;

use antinoise_release::{Figure, Published, Query, Release, Settings};
use common::{Event, freeze, frozen, kept, noise, settings};
use proptest::prelude::*;

const Z: f64 = 1.959_963_984_540_054;
const EDGES: [f64; 4] = [-10.0, 0.0, 10.0, 15.0];
const QUERIES: [&str; 6] = [
    "counts",
    "mean:-5,20",
    "histogram:-10,0,10,15",
    "cdf:-10,0,10,15",
    "quantiles:0.25,0.5,0.9@-10,0,10,15",
    "range:-10,10@-10,0,10,15",
];

/// M: the contribution of a row in each bucket, found by freezing a row of each.
fn matrix(wanted: &Settings) -> Vec<Vec<i64>> {
    let folder = tempfile::tempdir().unwrap();
    let mut release = Release::create(folder.path(), wanted).unwrap();
    let mut column = |(step, value): (usize, f64)| {
        freeze(&mut release, step, &[(step, step, 0, value)]);
        frozen(folder.path(), step)[6..11].to_vec()
    };
    [-11.0, -10.0, 0.0, 10.0, 15.0].into_iter().zip(0..).map(|(value, step)| column((step, value))).collect()
}

/// x with M x = y, for the columns of M, by elimination.
fn solved(columns: &[Vec<i64>], y: &[f64]) -> Vec<f64> {
    let n = y.len();
    let row = |i: usize| columns.iter().map(|column| column[i] as f64).chain([y[i]]).collect();
    let mut rows: Vec<Vec<f64>> = (0..n).map(row).collect();
    for at in 0..n {
        let pivot = rows[at][at];
        rows[at].iter_mut().for_each(|x| *x /= pivot);
        for other in (0..n).filter(|other| *other != at) {
            let (factor, row) = (rows[other][at], rows[at].clone());
            rows[other].iter_mut().zip(row).for_each(|(x, y)| *x -= factor * y);
        }
    }
    rows.into_iter().map(|row| row[n]).collect()
}

/// Weights g of the cells for a weighted sum of rows of buckets: g . y = sum of weight_j (M^-1 y)_j.
fn weights(columns: &[Vec<i64>], of_bucket: &[f64]) -> Vec<f64> {
    let unit = |at: usize| (0..columns.len()).map(|i| f64::from(i == at)).collect::<Vec<_>>();
    let read = |at: usize| solved(columns, &unit(at)).iter().zip(of_bucket).map(|(x, w)| x * w).sum();
    (0..columns.len()).map(read).collect()
}

fn norm(vector: &[f64]) -> f64 {
    vector.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// The standard deviation of a cell's running sum in points after each step, from explicit rows of A C^-1.
fn deviations(release: &Release, steps: usize) -> Vec<f64> {
    let plan = release.plan();
    let recursion = plan.strategy.recursion().unwrap().with_one_seed_per_step(steps).unwrap();
    let mut squares = vec![0.0; steps];
    for seed in 0..steps {
        let mut unit = vec![0.0; steps];
        unit[seed] = 1.0;
        let mut sum = 0.0;
        for (step, entry) in recursion.apply(steps, &unit).into_iter().enumerate() {
            sum += entry;
            squares[step] += sum * sum;
        }
    }
    let of_point = plan.noise_std() / plan.arithmetic.grid().unwrap().unwrap().spacing();
    squares.into_iter().map(|square| of_point * square.sqrt()).collect()
}

/// All figures of a key after a period, by definition, from the true values and the noise.
struct Oracle {
    columns: Vec<Vec<i64>>,
    /// Standard deviation of a cell in points.
    deviation: f64,
    /// Rows of each bucket, with their noise.
    rows: Vec<f64>,
    /// Rows, and the sum of their deviations from 7.5, with their noise.
    count: f64,
    sum: f64,
    points: f64,
}

impl Oracle {
    fn run(&self, from: usize, to: usize) -> (f64, f64) {
        let inside: Vec<f64> = (0..5).map(|at| f64::from(from <= at && at < to)).collect();
        (self.rows[from..to].iter().sum(), self.deviation * norm(&weights(&self.columns, &inside)))
    }

    fn check_run(&self, row: &Published, from: usize, to: usize) {
        let (wanted, deviation) = self.run(from, to);
        let Figure::Whole(value) = row.value else { panic!("{row:?}") };
        assert!((value as f64 - wanted).abs() <= 0.5 + 1e-6, "{row:?} {wanted}");
        // Ends are rounded inwards.
        for (end, found) in [(wanted - Z * deviation, row.lower), (wanted + Z * deviation, row.upper)] {
            assert!((found.value() - end).abs() <= 1.0 + 1e-6, "{row:?} {end}");
        }
    }

    /// At the ends of the interval, the ratio is 1.96 standard deviations from the noisy sums, unless it is
    /// cut.
    fn check_ratio(row: &Published, above: f64, deviation: impl Fn(f64) -> f64, below: f64, cut: (f64, f64)) {
        let (least, most) = cut;
        if below <= Z * deviation(f64::INFINITY) {
            assert_eq!((row.lower.value(), row.upper.value()), (least, most), "{row:?}");
            return;
        }
        assert!((row.value.value() - (above / below).clamp(least, most)).abs() < 1e-6, "{row:?}");
        for (end, sign) in [(row.lower.value(), 1.0), (row.upper.value(), -1.0)] {
            let scores = sign * (above - end * below) / deviation(end);
            let is_cut = end <= least + 1e-9 || end >= most - 1e-9;
            assert!(is_cut || (scores - Z).abs() < 0.02, "{row:?}: {scores}");
        }
    }

    fn check_share(&self, row: &Published, edge: usize) {
        let of_share = |share: f64| -> f64 {
            let of_bucket = |at: usize| match share.is_infinite() {
                true => 1.0,
                false => f64::from(at < edge) - share,
            };
            self.deviation * norm(&weights(&self.columns, &(0..5).map(of_bucket).collect::<Vec<_>>()))
        };
        Self::check_ratio(row, self.run(0, edge).0, of_share, self.run(0, 5).0, (0.0, 1.0));
    }

    fn check_mean(&self, row: &Published) {
        let (of_sum, of_count) = (self.deviation * 12.5 / self.points, self.deviation / self.points);
        let of_mean = |mean: f64| match mean.is_infinite() {
            true => of_count,
            false => of_sum.hypot((mean - 7.5) * of_count),
        };
        // The sum of the values is 7.5 per row plus the deviations.
        Self::check_ratio(row, self.sum + 7.5 * self.count, of_mean, self.count, (-5.0, 20.0));
    }

    fn check_quantile(&self, row: &Published, rank: f64) {
        let all = self.run(0, 5);
        let score = |edge: usize| {
            let of_bucket = |at: usize| f64::from(at < edge) - rank;
            let deviation = norm(&weights(&self.columns, &(0..5).map(of_bucket).collect::<Vec<_>>()));
            (self.run(0, edge).0 - rank * all.0) / (self.deviation * deviation)
        };
        let (mut lower, mut upper) = (EDGES[0], EDGES[3]);
        if all.0 > Z * all.1 {
            for edge in (1..=4).take_while(|edge| score(*edge) < -Z) {
                lower = EDGES[edge - 1];
            }
            for edge in (1..=4).rev().take_while(|edge| score(*edge) > Z) {
                upper = EDGES[edge - 1];
            }
        }
        assert_eq!((row.lower.value(), row.upper.value()), (lower, upper), "{row:?}");
        assert!(lower <= row.value.value() && row.value.value() <= upper, "{row:?}");
    }

    fn check(&self, row: &Published) {
        let edge = |text: &str| 1 + EDGES.iter().position(|edge| edge.to_string() == text).unwrap();
        match row.query.parse().unwrap() {
            Query::Counts => assert!((row.value.value() - self.count).abs() <= 0.5 + 1e-6),
            Query::Window { .. } => {}
            Query::Mean { .. } => self.check_mean(row),
            Query::Range { .. } => self.check_run(row, 1, 3),
            Query::Quantiles { .. } => self.check_quantile(row, row.bucket.parse().unwrap()),
            Query::Histogram { .. } => {
                let names = ["below -10", "-10 to 0", "0 to 10", "10 to 15", "15 or above"];
                let bucket = names.iter().position(|name| *name == row.bucket).unwrap();
                self.check_run(row, bucket, bucket + 1);
            }
            _ => match row.bucket.strip_prefix("share below ") {
                Some(text) => self.check_share(row, edge(text)),
                None => self.check_run(row, 0, edge(row.bucket.strip_prefix("below ").unwrap())),
            },
        }
    }
}

#[test]
fn what_is_published_of_values_follows_from_the_rows_and_the_noise() {
    let (folder, periods) = (tempfile::tempdir().unwrap(), 12);
    // With a window, since noisy points are stored only for windows.
    let wanted = settings(periods, 4, 2, &[&QUERIES[..], &["window:1"]].concat());
    let columns = matrix(&wanted);
    assert!(columns[0].iter().all(|entry| *entry > 0), "buckets are not correlated: {columns:?}");
    let mut release = Release::create(folder.path(), &wanted).unwrap();
    let events: Vec<Event> =
        (0..4000).map(|i| (i % 12, i * 7 % 800, i % 3, (i * 17 % 610) as f64 / 10.0 - 30.0)).collect();
    let kept = kept(&events, periods, 4, 2);
    let deviations = deviations(&release, periods);
    let points = (1.0 / release.plan().arithmetic.grid().unwrap().unwrap().spacing()).floor();
    let mut noises = [0i64; 21];
    for step in 0..periods {
        freeze(&mut release, step, &events);
        let cells = frozen(folder.path(), step);
        let published = release.publish().unwrap();
        noises.iter_mut().zip(noise(folder.path(), step, &cells)).for_each(|(sum, noise)| *sum += noise);
        assert_eq!(published.len(), 3 * (1 + 1 + 5 + 8 + 3 + 1 + 1));
        for row in published {
            let key = ["a", "b", "c"].iter().position(|key| *key == row.key).unwrap();
            let of_key = || kept.iter().filter(|event| event.2 == key && event.0 <= step);
            let buckets = 6 + 5 * key..11 + 5 * key;
            let of_buckets: Vec<f64> = noises[buckets].iter().map(|noise| *noise as f64).collect();
            let mut rows = solved(&columns, &of_buckets);
            let mut sum = noises[3 + key] as f64 * 12.5 / points;
            for event in of_key() {
                rows[EDGES.iter().filter(|edge| **edge <= event.3).count()] += 1.0;
                // Rounded to whole points, as they are added.
                sum += ((event.3.clamp(-5.0, 20.0) - 7.5) / 12.5 * points).round_ties_even() / points * 12.5;
            }
            let count = of_key().count() as f64 + noises[key] as f64 / points;
            let deviation = deviations[step];
            Oracle { columns: columns.clone(), deviation, rows, count, sum, points }.check(&row);
        }
    }
}

/// Queries with the same edges share a part, counts are shared with means, and a histogram without other
/// queries has flat buckets.
#[test]
fn parts_are_shared() {
    for (queries, cells) in [
        (&["histogram:0,1,2"][..], 4),
        (&["counts", "mean:0,1"], 2),
        (&["mean:0,1"], 2),
        (&["mean:0,1", "mean:0,2"], 3),
        (&["histogram:0,1,2", "cdf:0,1,2", "quantiles:0.5@0,1,2", "range:0,2@0,1,2"], 4),
        (&["cdf:0,1,2", "cdf:0,1"], 7),
        (&QUERIES, 7),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut release = Release::create(folder.path(), &settings(2, 2, 1, queries)).unwrap();
        freeze(&mut release, 0, &[(0, 0, 0, 0.5)]);
        let found = frozen(folder.path(), 0);
        assert_eq!(found.len(), 3 * cells, "{queries:?}");
        if queries == ["histogram:0,1,2"] {
            assert_eq!(found.iter().filter(|cell| **cell != 0).count(), 1);
        }
    }
}

fn sets() -> impl Strategy<Value = Vec<(Query, f64)>> {
    let pool =
        [&QUERIES[..], &["sum:-1,1", "mean:0,3", "window:2", "quantiles:0.1,0.7@-5,5", "cdf:1"]].concat();
    let all: Vec<Query> = pool.iter().map(|query| query.parse().unwrap()).collect();
    let chosen = prop::sample::subsequence(all, 1..5);
    (chosen, prop::collection::vec(0.25..4.0f64, 5))
        .prop_map(|(queries, weights)| queries.into_iter().zip(weights).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Two streams that differ in one user: as close as the plan's clip norm says. Publications contain no
    /// NaN, and each value is in its interval.
    #[test]
    fn a_unit_is_bounded_and_figures_are_in_their_intervals(
        queries in sets(),
        rows in 1usize..4,
        (non_negative, monotone) in any::<(bool, bool)>(),
        events in prop::collection::vec((0usize..3, 0usize..5, 0usize..3, -30.0..30.0f64), 0..60),
    ) {
        let wanted = Settings { queries, non_negative, monotone, ..settings(3, 2, rows, &["counts"]) };
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let mut releases = [&folders[0], &folders[1]].map(|folder| Release::create(folder.path(), &wanted).unwrap());
        let spacing = releases[0].plan().arithmetic.grid().unwrap().unwrap().spacing();
        let without: Vec<Event> = events.iter().copied().filter(|event| event.1 != 0).collect();
        let mut last = std::collections::HashMap::new();
        for step in 0..3 {
            freeze(&mut releases[0], step, &events);
            freeze(&mut releases[1], step, &without);
            let [with, less] = [&folders[0], &folders[1]].map(|folder| frozen(folder.path(), step));
            let squares: f64 = with.iter().zip(&less).map(|(x, y)| ((x - y) as f64 * spacing).powi(2)).sum();
            prop_assert!(squares.sqrt() <= releases[0].plan().clip_norm);
            for row in releases[0].publish().unwrap() {
                let (value, lower, upper) = (row.value.value(), row.lower.value(), row.upper.value());
                prop_assert!(lower <= value && value <= upper && lower.is_finite() && upper.is_finite(), "{row:?}");
                let query: Query = row.query.parse().unwrap();
                if let Query::Mean { low, high } = query {
                    prop_assert!(low <= lower && upper <= high, "{row:?}");
                }
                let rises = matches!(query, Query::Counts | Query::Cdf { .. } | Query::Range { .. } | Query::Histogram { .. });
                let is_share = row.bucket.starts_with("share");
                prop_assert!(!(non_negative && rises) || lower >= 0.0, "{row:?}");
                let before = last.insert((row.key, row.query, row.bucket), value);
                prop_assert!(!(monotone && rises && !is_share) || before.is_none_or(|before| before <= value));
            }
        }
    }
}

/// With correlated buckets, the bound is attained up to floors.
#[test]
fn the_bound_is_nearly_attained() {
    let folder = tempfile::tempdir().unwrap();
    let mut release = Release::create(folder.path(), &settings(2, 2, 3, &QUERIES)).unwrap();
    freeze(&mut release, 0, &[(0, 0, 1, 30.0); 9]);
    let spacing = release.plan().arithmetic.grid().unwrap().unwrap().spacing();
    let norm = norm(&frozen(folder.path(), 0).iter().map(|cell| *cell as f64 * spacing).collect::<Vec<_>>());
    let clip_norm = release.plan().clip_norm;
    assert!(norm <= clip_norm && norm > 0.99 * clip_norm, "{norm} {clip_norm}");
}
