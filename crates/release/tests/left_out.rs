//! Users at their bounds: counted by definition, once each, and within the stated sensitivity.

mod common;

use std::collections::HashMap;
use std::path::Path;

use antinoise_release::{Growth, Keep, Period, Query, Release, Segments, Settings, Unit};
use common::{Event, freeze, frozen, kept, noise, settings};
use proptest::prelude::*;

const QUERIES: [&str; 3] = ["counts", "users-at-bound", "users-over-rows"];

fn stream() -> impl Strategy<Value = (usize, usize, usize, Vec<Event>)> {
    (1usize..7).prop_flat_map(|periods| {
        let event = (0..periods, 0usize..5, 0usize..3, Just(0.0));
        (Just(periods), 1..=periods, 1usize..4, prop::collection::vec(event, 0..80))
    })
}

/// The users at their bound of periods, and beyond their bound of rows, of a step, by definition.
fn defined(
    events: &[Event],
    (periods, max_periods, max_rows): (usize, usize, usize),
    step: usize,
) -> [i64; 2] {
    let kept = kept(events, periods, max_periods, max_rows);
    let counted = |user: usize, at: usize| kept.iter().any(|event| (event.0, event.1) == (at, user));
    let is_counted = |user: &usize| counted(*user, step);
    let periods = |user: usize| (0..=step).filter(|at| counted(user, *at)).count();
    let rows = |user: usize| events.iter().filter(|event| (event.0, event.1) == (step, user)).count();
    let at_bound = (0..5).filter(is_counted).filter(|user| periods(*user) == max_periods).count();
    let over_rows = (0..5).filter(is_counted).filter(|user| rows(*user) > max_rows).count();
    [at_bound, over_rows].map(|count| count as i64)
}

/// The points of a row, of a user at the bound and of a user with too many rows, for queries of equal
/// weights.
fn points(release: &Release) -> [i64; 3] {
    let Settings { max_periods, max_rows, .. } = release.settings();
    let spacing = release.plan().arithmetic.grid().unwrap().unwrap().spacing();
    let rows = *max_rows as f64;
    let once = (*max_periods as f64).sqrt() * (1.0 - 1.0 / f64::from(1 << 20)) * rows;
    [1.0, once, rows].map(|points| (points / spacing).floor() as i64)
}

/// Every frozen vector of a stream in a new release, opened again for every period.
fn vectors(folder: &Path, wanted: &Settings, events: &[Event]) -> Vec<Vec<i64>> {
    drop(Release::create(folder, wanted).unwrap());
    let step = |step: usize| {
        freeze(&mut Release::open(folder).unwrap(), step, events);
        frozen(folder, step)
    };
    (0..wanted.periods).map(step).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Cells hold the numbers of the definition, for the first rows and for sampled ones.
    #[test]
    fn users_are_counted_as_defined(
        (periods, max_periods, max_rows, events) in stream(), sampled in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let keep = if sampled { Keep::Sample } else { Keep::First };
        let wanted = Settings { keep, ..settings(periods, max_periods, max_rows, &QUERIES) };
        let vectors = vectors(folder.path(), &wanted, &events);
        let [_, of_bound, of_rows] = points(&Release::open(folder.path()).unwrap());
        for (step, cells) in vectors.iter().enumerate() {
            let [at_bound, over_rows] = defined(&events, (periods, max_periods, max_rows), step);
            prop_assert_eq!(&cells[3..], &[at_bound * of_bound, over_rows * of_rows]);
        }
    }

    /// Taking one user out moves C G, for the strategy C and the vectors G of all periods, by at most the
    /// sensitivity times the clip norm, which is what the plan's noise covers.
    #[test]
    fn a_user_moves_everything_by_at_most_the_sensitivity(
        (periods, max_periods, max_rows, events) in stream(), out in 0usize..5,
    ) {
        let [with, without] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let wanted = settings(periods, max_periods, max_rows, &QUERIES);
        let others: Vec<Event> = events.iter().copied().filter(|event| event.1 != out).collect();
        let (all, rest) = (vectors(with.path(), &wanted, &events), vectors(without.path(), &wanted, &others));
        let release = Release::open(with.path()).unwrap();
        let moved = moved(&release, &all, &rest);
        let covered = release.plan().sensitivity.value * release.plan().clip_norm;
        prop_assert!(moved <= covered, "{} {}", moved, covered);
    }
}

/// The l2 norm of C (G - H) s, for vectors G and H of all periods in points.
fn moved(release: &Release, some: &[Vec<i64>], others: &[Vec<i64>]) -> f64 {
    let plan = release.plan();
    let (encoder, spacing) =
        (plan.strategy.encoder().unwrap(), plan.arithmetic.grid().unwrap().unwrap().spacing());
    let mut squares = 0.0;
    for cell in 0..some[0].len() {
        let mut sum = vec![0.0; plan.steps];
        for step in 0..some.len() {
            let moved = (some[step][cell] - others[step][cell]) as f64 * spacing;
            for (row, entry) in encoder.column(step).iter().enumerate() {
                sum[row] += moved * entry;
            }
        }
        squares += sum.iter().map(|entry| entry * entry).sum::<f64>();
    }
    squares.sqrt()
}

/// The worst user, in all ways to be counted in up to K of N periods: nobody exceeds the sensitivity, and the
/// worst comes near it where a user's periods are independent of each other (equal columns of the identity).
#[test]
fn no_way_to_take_part_exceeds_the_sensitivity() {
    for (periods, max_periods, queries, least) in [
        (6, 2, ["window:2", "users-at-bound", "users-over-rows"], 0.999),
        (6, 3, QUERIES, 0.85),
        (8, 1, QUERIES, 0.999),
        (7, 7, QUERIES, 0.85),
        (8, 4, ["decay:0.9", "users-at-bound", "users-over-rows"], 0.85),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let release = Release::create(folder.path(), &settings(periods, max_periods, 2, &queries)).unwrap();
        let [of_row, of_bound, of_rows] = points(&release);
        let nobody = vec![vec![0; 5]; periods];
        let mut worst = 0.0f64;
        for pattern in 1u32..1 << periods {
            if pattern.count_ones() as usize > max_periods {
                continue;
            }
            let mut vectors = nobody.clone();
            let last = (31 - pattern.leading_zeros()) as usize;
            for step in (0..periods).filter(|step| pattern >> step & 1 == 1) {
                vectors[step] = vec![2 * of_row, 0, 0, 0, of_rows];
            }
            if pattern.count_ones() as usize == max_periods {
                vectors[last][3] = of_bound;
            }
            worst = worst.max(moved(&release, &vectors, &nobody));
        }
        let covered = release.plan().sensitivity.value * release.plan().clip_norm;
        assert!(worst <= covered && worst > least * covered, "{max_periods} of {periods}: {worst} {covered}");
    }
}

/// A user with rows of two keys, in a period that is given up and begun again, is counted once; so is one who
/// reaches the bound in a later segment, or in an earlier period that is frozen later.
#[test]
fn a_user_is_counted_once() {
    let folder = tempfile::tempdir().unwrap();
    let keys = ["a", "b"].map(String::from).to_vec();
    let settings = Settings { max_periods: 2, ..Settings::new(keys, 2, Unit::User) }
        .with_segments(Segments { first: 2, growth: Growth::Doubles })
        .with_left_out();
    let mut release = Release::create(folder.path(), &settings).unwrap();
    let rows = |release: &mut Release, period: i64, users: &[&str], commit: bool| {
        let mut freezing = release.freeze_in_any_order(&Period::Number(period)).unwrap();
        for user in users {
            for key in ["a", "b", "a"] {
                freezing.add(user, key, None).unwrap();
            }
        }
        if commit {
            freezing.commit().unwrap();
        }
    };
    let mut counted = HashMap::<i64, [bool; 2]>::new();
    for (step, (period, users)) in
        [(1, &["ada"][..]), (2, &["grace"]), (9, &["ada"]), (3, &["ada", "grace"]), (10, &["ada", "grace"])]
            .into_iter()
            .enumerate()
    {
        rows(&mut release, period, users, false);
        rows(&mut release, period, users, true);
        let cells = frozen(folder.path(), step);
        counted.insert(period, [cells[2] > 0, cells[3] > 0]);
    }
    // Over rows in each counted period; at the bound in period 9 (ada) and 3 (grace), in the second segment.
    let wanted =
        [(1, [true, false]), (2, [true, false]), (9, [true, true]), (3, [true, true]), (10, [false; 2])];
    assert_eq!(counted, HashMap::from(wanted));
    assert_eq!(release.publish().unwrap().iter().filter(|row| row.key.is_empty()).count(), 10);
}

/// What is published of users is their number, plus noise of the stated size.
#[test]
fn users_are_published_with_the_stated_error() {
    let folder = tempfile::tempdir().unwrap();
    let keys = vec!["a".to_string()];
    // With a window, noisy increments are kept.
    let queries = ["counts", "window:9"].map(|query| (query.parse().unwrap(), 1.0)).to_vec();
    let base = Settings { max_periods: 2, epsilon: 1e3, queries, ..Settings::new(keys, 4, Unit::User) };
    let mut release = Release::create(folder.path(), &base.with_left_out()).unwrap();
    let truths =
        [(Query::UsersOverRows, 1, [50, 100, 100, 100]), (Query::UsersAtBound, 2, [0, 100, 100, 100])];
    let mut noises = [0; 3];
    for step in 0..4 {
        let mut freezing = release.freeze(&Period::Number(step as i64)).unwrap();
        for user in 0..100 {
            for _ in 0..1 + user % 2 {
                freezing.add(&format!("u{user}"), "a", None).unwrap();
            }
        }
        freezing.commit().unwrap();
        let frozen = frozen(folder.path(), step);
        let published = release.publish().unwrap();
        let of_step = noise(folder.path(), step, &frozen);
        noises.iter_mut().zip(of_step).for_each(|(sum, noise)| *sum += noise);
        for (query, cell, truth) in &truths {
            let row = published.iter().find(|row| row.query == query.to_string()).unwrap();
            let noise = noises[*cell] as f64 / points_of_quarters(&release)[3 - cell] as f64;
            let error = release.error(query, step).unwrap();
            assert!((row.value.value() - f64::from(truth[step]) - noise).abs() < 0.5 + 1e-6, "{row:?}");
            // Twelve standard deviations: exceeded by chance with probability 1e-30.
            assert!(noise.abs() < 12.0 * error && error < 5.0, "{noise} {error}");
        }
    }
}

#[test]
fn events_have_no_users_and_given_counts_name_them() {
    let keys = vec!["a".to_string()];
    let of_events = Settings::new(keys.clone(), 4, Unit::Event);
    let wanted = Settings { queries: vec![(Query::UsersAtBound, 1.0)], ..of_events };
    assert!(
        wanted
            .check()
            .unwrap_err()
            .to_string()
            .contains("users-at-bound but must be left out for --unit event")
    );
    let named = Settings::new(vec!["users-at-bound".into()], 4, Unit::User).with_left_out();
    assert!(named.check().unwrap_err().to_string().contains("different from the names of the queries"));

    let folder = tempfile::tempdir().unwrap();
    let settings = Settings::new(keys, 4, Unit::User).with_left_out();
    let mut release = Release::create(folder.path(), &settings).unwrap();
    let refused =
        release.read_counts("key,count\na,3\nusers-at-bound,1\n".as_bytes()).unwrap_err().to_string();
    assert!(refused.contains("users-over-rows is absent") && refused.contains("--no-left-out"), "{refused}");
    let text = "key,count\nusers-over-rows,2\na,3\nusers-at-bound,1\n";
    assert_eq!(release.read_counts(text.as_bytes()).unwrap(), [3, 2, 1]);
    assert!(release.freeze_counts(&Period::Number(1), &[3]).is_err());
    release.freeze_counts(&Period::Number(1), &[3, 2, 1]).unwrap();
    let [of_row, of_bound, of_rows] = points_of_quarters(&release);
    assert_eq!(frozen(folder.path(), 0), [3 * of_row, 2 * of_rows, of_bound]);
}

/// As [`points`], for R = 1 and queries of users of weight 1/4.
fn points_of_quarters(release: &Release) -> [i64; 3] {
    let spacing = release.plan().arithmetic.grid().unwrap().unwrap().spacing();
    let once = 0.25 * (release.settings().max_periods as f64).sqrt() * (1.0 - 1.0 / f64::from(1 << 20));
    [1.0, once, 0.25].map(|points| (points / spacing).floor() as i64)
}
