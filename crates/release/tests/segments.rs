//! Open-ended releases: running figures continue from link to link, and a release that was stopped at any
//! point publishes the same bits.

#[path = "common/folder.rs"]
mod folder;

use antinoise_release::{
    Figure, Growth, Period, Published, Query, Release, Segments, Settings, Status, Unit,
};
use folder::copy;

const PERIODS: usize = 17;

fn settings() -> Settings {
    let queries = ["counts", "window:4", "decay:0.5"].map(|query| (query.parse().unwrap(), 1.0)).to_vec();
    let keys = ["a", "b"].map(String::from).to_vec();
    let settings = Settings { max_periods: 2, epsilon: 200.0, queries, ..Settings::new(keys, 2, Unit::User) };
    // Segments of 2, 4, 8 and more periods.
    settings.with_segments(Segments { first: 2, growth: Growth::Doubles })
}

fn count(key: usize, step: usize) -> i64 {
    ((key * 31 + step * 17) % 50) as i64 + 1000
}

fn freeze(release: &mut Release, step: usize) {
    release.freeze_counts(&Period::Number(step as i64), &[count(0, step), count(1, step)]).unwrap();
}

#[test]
fn figures_go_on_over_borders_and_are_the_same_wherever_the_release_was_stopped() {
    let root = tempfile::tempdir().unwrap();
    let whole = root.path().join("whole");
    let mut release = Release::create(&whole, &settings()).unwrap();
    let stopped = root.path().join("stopped");
    copy(&whole, &stopped);
    let mut published: Vec<Published> = Vec::new();
    for step in 0..PERIODS {
        freeze(&mut release, step);
        published.extend(release.publish().unwrap());
    }
    // Figures are the sums plus noise of the stated size, which differs between segments.
    for row in &published {
        let Period::Number(step) = row.period else { panic!("{row:?}") };
        let key = usize::from(row.key == "b");
        let query: Query = row.query.parse().unwrap();
        let weight = |age: usize| match query {
            Query::Window { width } => f64::from(age < width),
            Query::Decay { factor } => factor.powi(age as i32),
            _ => 1.0,
        };
        let step = step as usize;
        let truth: f64 = (0..=step).map(|at| weight(step - at) * count(key, at) as f64).sum();
        let deviation = release.error(&query, step).unwrap();
        assert!((row.value.value() - truth).abs() < 6.0 * deviation + 0.5, "{row:?} {truth} {deviation}");
        if let Figure::Real(value) = row.value {
            assert!((row.upper.value() - value - 1.96 * deviation).abs() < 1e-3 * deviation);
        }
    }
    let status = Status::of(&whole).unwrap();
    let segment = status.segment().unwrap();
    assert_eq!((segment.segment, segment.start, segment.step), (3, 14, 3));
    assert!(status.statement().to_string().contains("segments of 2, 4, 8"));
    drop(release);

    // Opened again for every call, with some periods frozen ahead, also into the next segment; copies stopped
    // before a segment, at its start and after it.
    drop(Release::adopt(&stopped).unwrap());
    let mut again = Vec::new();
    for step in 0..PERIODS {
        freeze(&mut Release::open(&stopped).unwrap(), step);
        if step % 3 == 2 || step + 1 == PERIODS {
            again.extend(Release::open(&stopped).unwrap().publish().unwrap());
        }
    }
    assert_eq!(again, published);
}

/// The secret of another segment is refused, except the previous segment's at its end.
#[test]
fn folders_of_other_segments_are_refused() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("release");
    let mut release = Release::create(&path, &settings()).unwrap();
    let mut secrets = Vec::new();
    let (mut databases, mut seals) = (Vec::new(), Vec::new());
    for step in 0..7 {
        freeze(&mut release, step);
        release.publish().unwrap();
        secrets.push(std::fs::read(path.join("secret")).unwrap());
        databases.push(std::fs::read(path.join("release.db")).unwrap());
        seals.push(std::fs::read(path.join("seal")).unwrap());
    }
    drop(release);
    let opens = |secret: usize, database: usize| {
        std::fs::write(path.join("secret"), &secrets[secret]).unwrap();
        std::fs::write(path.join("release.db"), &databases[database]).unwrap();
        // Restored with its seal, and adopted: only the secret differs.
        std::fs::write(path.join("seal"), &seals[database]).unwrap();
        Release::adopt(&path).is_ok()
    };
    // The noise is saved after the database: it may be one period behind.
    for step in 0..7 {
        assert!(opens(step, step), "{step}");
        assert!(step == 0 || opens(step - 1, step) != matches!(step, 2 | 6), "{step}");
    }
    // A database older than its secret, in the same segment and in another.
    for (secret, database) in [(1, 0), (3, 2), (5, 4), (2, 1), (6, 5), (6, 1)] {
        assert!(!opens(secret, database), "{secret} {database}");
    }
}

#[test]
fn a_release_without_an_end_is_designed_and_never_full() {
    let keys = vec!["a".into()];
    let base = Settings { max_periods: 2, ..Settings::new(keys, 2, Unit::User) };
    let settings = base.clone().open_ended();
    let segments = settings.segments.unwrap();
    assert_eq!((segments.first, segments.growth), (128, Growth::Squares));
    let window = Settings { queries: vec![("window:7".parse().unwrap(), 1.0)], ..base.clone() };
    assert_eq!(window.open_ended().segments.unwrap().growth, Growth::Even);
    // A user may be counted in more periods than a segment would have.
    assert!(
        Settings { max_periods: 3, ..base }
            .with_segments(Segments { first: 2, growth: Growth::Even })
            .check()
            .is_err()
    );

    let folder = tempfile::tempdir().unwrap();
    let mut release = Release::create(folder.path(), &settings).unwrap();
    for step in 0..130 {
        release.freeze(&Period::Number(step)).unwrap().commit().unwrap();
    }
    assert_eq!(release.publish().unwrap().len(), 130);
    // Far beyond the number of periods that could be listed.
    let far = release.error(&Query::Counts, 1_000_000_000).unwrap();
    assert!(far > release.error(&Query::Counts, 1_000_000).unwrap());
    assert!(release.errors(&Query::Counts).is_err());
}
