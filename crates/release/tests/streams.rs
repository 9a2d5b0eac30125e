//! Publications are the naive sums plus noise from an explicit C^-1, nobody is counted beyond the bounds, and
//! neighbours are as close as stated.

mod common;
#[path = "common/folder.rs"]
mod folder;

use std::collections::HashMap;

use antinoise_release::{Fate, Figure, Period, Query, Release, Settings};
use common::{Event, freeze, frozen, kept, noise, settings};
use proptest::prelude::*;

fn stream() -> impl Strategy<Value = (usize, usize, usize, Vec<Event>)> {
    (1usize..6).prop_flat_map(|periods| {
        let event = (0..periods, 0usize..5, 0usize..3, -30.0..30.0f64);
        (Just(periods), 1..=periods, 1usize..4, prop::collection::vec(event, 0..60))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Random streams under random bounds: the ledger holds nobody beyond them, and the kept rows are those
    /// of the definition.
    #[test]
    fn nobody_is_counted_beyond_the_bounds((periods, max_periods, max_rows, events) in stream()) {
        let folder = tempfile::tempdir().unwrap();
        let queries = ["counts", "histogram:-10,0,10"];
        let mut release = Release::create(folder.path(), &settings(periods, max_periods, max_rows, &queries)).unwrap();
        let kept = kept(&events, periods, max_periods, max_rows);
        for step in 0..periods {
            freeze(&mut release, step, &events);
            let cells = frozen(folder.path(), step);
            // Equal weights: a row adds equally many points to its count and to its bucket.
            let point = cells.iter().copied().filter(|cell| *cell > 0).min().unwrap_or(1);
            let of_key = |key| kept.iter().filter(|event| event.0 == step && event.2 == key).count() as i64;
            let rows: i64 = (0..3).map(of_key).sum();
            prop_assert_eq!(cells[..3].iter().sum::<i64>(), cells[3..].iter().sum::<i64>());
            prop_assert_eq!(cells[..3].iter().sum::<i64>() % rows.max(1), 0);
            if rows > 0 {
                let per_row = cells[..3].iter().sum::<i64>() / rows;
                prop_assert!(point % per_row == 0);
                for key in 0..3 {
                    prop_assert_eq!(cells[key], per_row * of_key(key));
                }
            }
        }
        let (mut of_user, mut counted) = (HashMap::<String, usize>::new(), 0);
        release.counted(|user, _, rows| {
            *of_user.entry(user.into()).or_default() += 1;
            assert!(rows as usize <= max_rows);
            counted += rows as usize;
        }).unwrap();
        prop_assert!(of_user.values().all(|periods| *periods <= max_periods));
        prop_assert_eq!(counted, kept.len());
    }

    /// Two streams that differ in one user: every period's vectors are as close as the plan's clip norm says,
    /// they differ in at most the stated number of periods, and in no cells but the user's.
    #[test]
    fn neighbours_are_as_near_as_stated((periods, max_periods, max_rows, events) in stream(), out in 0usize..5) {
        let queries = ["counts", "sum:-20,10", "histogram:-10,0,10"];
        let wanted = settings(periods, max_periods, max_rows, &queries);
        let without: Vec<Event> = events.iter().copied().filter(|event| event.1 != out).collect();
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let mut releases = [&folders[0], &folders[1]].map(|folder| Release::create(folder.path(), &wanted).unwrap());
        let spacing = releases[0].plan().arithmetic.grid().unwrap().unwrap().spacing();
        let mut moved = 0;
        for step in 0..periods {
            freeze(&mut releases[0], step, &events);
            freeze(&mut releases[1], step, &without);
            let [with, less] = [&folders[0], &folders[1]].map(|folder| frozen(folder.path(), step));
            let squares: f64 = with.iter().zip(&less).map(|(x, y)| ((x - y) as f64 * spacing).powi(2)).sum();
            prop_assert!(squares.sqrt() <= releases[0].plan().clip_norm);
            moved += usize::from(squares > 0.0);
        }
        prop_assert!(moved <= max_periods);
    }
}

/// The bound is attained: a user whose rows all lie in one cell of each query.
#[test]
fn the_bound_is_attained() {
    let folder = tempfile::tempdir().unwrap();
    let mut release =
        Release::create(folder.path(), &settings(2, 2, 3, &["counts", "sum:-1,1", "histogram:0"])).unwrap();
    freeze(&mut release, 0, &[(0, 0, 1, 1.0); 9]);
    let spacing = release.plan().arithmetic.grid().unwrap().unwrap().spacing();
    let norm =
        frozen(folder.path(), 0).iter().map(|cell| (*cell as f64 * spacing).powi(2)).sum::<f64>().sqrt();
    let clip_norm = release.plan().clip_norm;
    assert!(norm <= clip_norm && norm > clip_norm * (1.0 - 1e-2), "{norm} {clip_norm}");
}

/// All queries, with one and several periods per user: publications are A (G + C^-1 Z), computed from the key
/// only.
#[test]
fn what_is_published_is_the_sums_and_the_noise_of_the_plan() {
    let queries = ["counts", "window:3", "decay:0.5", "sum:-5,20", "histogram:-10,0,10"];
    for max_periods in [1, 4] {
        let folder = tempfile::tempdir().unwrap();
        let periods = 12;
        let wanted = settings(periods, max_periods, 2, &queries);
        let mut release = Release::create(folder.path(), &wanted).unwrap();
        let events: Vec<Event> =
            (0..200).map(|i| (i % 12, i * 7 % 40, i % 3, (i % 61) as f64 - 30.0)).collect();
        let kept = kept(&events, periods, max_periods, 2);
        let mut noises = Vec::new();
        let mut published = Vec::new();
        for step in 0..periods {
            freeze(&mut release, step, &events);
            let cells = frozen(folder.path(), step);
            let rows = release.publish().unwrap();
            noises.push(noise(folder.path(), step, &cells));
            published.push(rows);
        }
        check_noise(&release, &noises);
        let value = |event: &Event, low: f64, high: f64| event.3.clamp(low, high);
        let spacing = release.plan().arithmetic.grid().unwrap().unwrap().spacing();
        for (step, rows) in published.iter().enumerate() {
            for row in rows {
                let key = ["a", "b", "c"].iter().position(|key| *key == row.key).unwrap();
                let query: Query = row.query.parse().unwrap();
                let (first, weight): (usize, Box<dyn Fn(usize) -> f64>) = match &query {
                    Query::Counts => (key, Box::new(|_| 1.0)),
                    Query::Window { width } => {
                        let width = *width;
                        (key, Box::new(move |at| f64::from(at + width > step)))
                    }
                    Query::Decay { factor } => {
                        let factor = *factor;
                        (key, Box::new(move |at| factor.powi((step - at) as i32)))
                    }
                    Query::Sum { .. } => (3 + key, Box::new(|_| 1.0)),
                    Query::Histogram { .. } => {
                        let buckets = ["below -10", "-10 to 0", "0 to 10", "10 or above"];
                        let bucket = buckets.iter().position(|name| *name == row.bucket).unwrap();
                        (6 + 4 * key + bucket, Box::new(|_| 1.0))
                    }
                    other => panic!("{other} is held to its oracle in values.rs"),
                };
                let adds = |event: &Event| match &query {
                    Query::Sum { low, high } => value(event, *low, *high),
                    Query::Histogram { edges } => {
                        let bucket = edges.iter().filter(|edge| **edge <= event.3).count();
                        f64::from(6 + 4 * key + bucket == first)
                    }
                    _ => 1.0,
                };
                let truth: f64 = kept
                    .iter()
                    .filter(|event| event.2 == key && event.0 <= step)
                    .map(|event| weight(event.0) * adds(event))
                    .sum();
                // Three parts of equal weights 1: a row has 1 / spacing points of its maximum contribution.
                let most =
                    if let Query::Sum { low, high } = &query { low.abs().max(high.abs()) } else { 1.0 };
                let unit = most / (1.0 / spacing).floor();
                let noise: f64 = (0..=step).map(|at| weight(at) * noises[at][first] as f64 * unit).sum();
                let allowed = match row.value {
                    Figure::Whole(_) => 0.5 + 1e-6,
                    Figure::Real(_) => kept.len() as f64 * unit + 1e-6,
                };
                let found = row.value.value();
                assert!((found - truth - noise).abs() <= allowed, "{row:?}: {truth} + {noise}");
            }
        }
    }
}

/// The noise of all cells is C^-1 times independent normals of the plan's deviation: solved for with an
/// explicit C^-1, they have the plan's mean square and are not correlated from step to step.
fn check_noise(release: &Release, noises: &[Vec<i64>]) {
    let plan = release.plan();
    let (steps, cells) = (noises.len(), noises[0].len());
    let recursion = plan.strategy.recursion().unwrap().with_one_seed_per_step(steps).unwrap();
    let column = |step: usize| {
        let mut unit = vec![0.0; steps];
        unit[step] = 1.0;
        recursion.apply(steps, &unit)
    };
    let inverse: Vec<Vec<f64>> = (0..steps).map(column).collect();
    let scale = plan.arithmetic.grid().unwrap().unwrap().spacing() / plan.noise_std();
    let (mut squares, mut products) = (0.0, 0.0);
    for cell in 0..cells {
        let mut seeds: Vec<f64> = Vec::new();
        for step in 0..steps {
            let before: f64 = seeds.iter().zip(&inverse).map(|(seed, column)| seed * column[step]).sum();
            seeds.push((noises[step][cell] as f64 * scale - before) / inverse[step][step]);
        }
        squares += seeds.iter().map(|seed| seed * seed).sum::<f64>();
        products += seeds.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>();
    }
    // 216 normals: six standard deviations, exceeded by chance with probability 2e-9.
    let count = (cells * steps) as f64;
    assert!((squares / count - 1.0).abs() < 6.0 * (2.0 / count).sqrt(), "{}", squares / count);
    assert!((products / count).abs() < 6.0 / count.sqrt(), "{}", products / count);
}

/// Rows out of order within a period, and rows that are left out, are treated and reported correctly.
#[test]
fn rows_are_told_their_fate() {
    let folder = tempfile::tempdir().unwrap();
    let mut release = Release::create(folder.path(), &settings(3, 1, 2, &["counts"])).unwrap();
    let mut period = release.freeze(&Period::Number(1)).unwrap();
    let fates: Vec<Fate> = [("x", "a"), ("y", "b"), ("x", "b"), ("x", "a"), ("x", "none")]
        .map(|(user, key)| period.add(user, key, None).unwrap())
        .to_vec();
    assert_eq!(fates, [Fate::Counted, Fate::Counted, Fate::Counted, Fate::BeyondMaxRows, Fate::UnknownKey]);
    period.commit().unwrap();
    let mut period = release.freeze(&Period::Number(2)).unwrap();
    assert_eq!(period.add("x", "a", None).unwrap(), Fate::BeyondMaxPeriods);
    assert_eq!(period.add("z", "a", None).unwrap(), Fate::Counted);
    assert_eq!(frozen_after(period, folder.path()), [1, 0, 0]);
}

fn frozen_after(period: antinoise_release::Freezing<'_>, folder: &std::path::Path) -> Vec<i64> {
    period.commit().unwrap();
    let cells = frozen(folder, 1);
    let point = cells.iter().copied().max().unwrap().max(1);
    cells.iter().map(|cell| cell / point).collect()
}

/// A sample of a user's rows is counted: up to the bound, the same when repeated, different from another
/// user's, and independent of other users' rows.
#[test]
fn samples_of_rows_depend_on_their_user_alone() {
    let folder = tempfile::tempdir().unwrap();
    let queries = ["histogram:0,1,2,3,4,5,6,7,8"];
    let wanted = Settings { keep: antinoise_release::Keep::Sample, ..settings(40, 40, 2, &queries) };
    let mut release = Release::create(folder.path(), &wanted).unwrap();
    let mut buckets = vec![0i64; 10];
    let mut freeze = |step: usize, others: bool| -> Vec<i64> {
        let mut period = release.freeze(&Period::Number(step as i64)).unwrap();
        for row in 0..10 {
            period.add("ada", "a", Some(row as f64 - 0.5)).unwrap();
            if others {
                // In another key.
                for user in 0..5 {
                    period.add(&format!("u{user}"), "b", Some(1.0)).unwrap();
                }
            }
        }
        let before = period.tally();
        let users = if others { 6 } else { 1 };
        assert_eq!((before.counted, before.beyond_max_rows), (2 * users, 8 * users));
        drop(period);
        // Repeated, as after a kill, without other users: the same rows.
        let mut period = release.freeze(&Period::Number(step as i64)).unwrap();
        for row in 0..10 {
            if others {
                for user in 0..5 {
                    period.add(&format!("u{user}"), "b", Some(1.0)).unwrap();
                }
            }
            period.add("ada", "a", Some(row as f64 - 0.5)).unwrap();
        }
        period.commit().unwrap();
        release.counted(|_, _, rows| assert_eq!(rows, 2)).unwrap();
        frozen(folder.path(), step)
    };
    for step in 0..40 {
        let cells = freeze(step, step % 2 == 0);
        let point = cells[..10].iter().copied().filter(|cell| *cell > 0).min().unwrap();
        let of_ada: Vec<i64> = cells[..10].iter().map(|cell| cell / point).collect();
        assert_eq!(of_ada.iter().sum::<i64>(), 2, "{of_ada:?}");
        buckets.iter_mut().zip(of_ada).for_each(|(sum, rows)| *sum += rows);
    }
    // Not the first two rows in each of forty periods.
    assert!(buckets.iter().filter(|rows| **rows > 0).count() > 7, "{buckets:?}");

    // With and without the others, the same rows of the same period.
    let made = tempfile::tempdir().unwrap();
    let wanted = Settings { keep: antinoise_release::Keep::Sample, ..settings(1, 1, 2, &queries) };
    drop(Release::create(made.path(), &wanted).unwrap());
    let [with, without] = [true, false].map(|others| {
        let copy = tempfile::tempdir().unwrap();
        folder::copy(made.path(), copy.path());
        let mut release = Release::adopt(copy.path()).unwrap();
        let mut period = release.freeze(&Period::Number(0)).unwrap();
        for row in 0..10 {
            if others {
                period.add("grace", "b", Some(1.0)).unwrap();
            }
            period.add("ada", "a", Some(row as f64 - 0.5)).unwrap();
        }
        period.commit().unwrap();
        frozen(copy.path(), 0)[..10].to_vec()
    });
    assert_eq!(with, without);
}
