//! Tests that everything which a release accepts can be published, at the largest accepted sizes.

use crate::{Error, Growth, Period, Query, Release, Segments, Settings, Unit};
use antinoise_input::BadInput;

/// Publishes `periods` periods whose cells have the largest accepted size; returns the number of figures.
fn published(settings: &Settings, periods: usize, sign: i64) -> Result<usize, Error> {
    let folder = tempfile::tempdir().unwrap();
    let mut release = Release::create(folder.path(), settings)?;
    let most = settings.most_points() as i64;
    let mut figures = 0;
    for period in 0..periods {
        let mut most = most;
        // With correlated buckets, fewer rows already have that many points.
        loop {
            let mut freezing = release.freeze(&Period::Number(period as i64))?;
            // Sums can have both signs; counts of rows are not negative.
            freezing.increments.fill(if sign == 0 { [most, -most][period % 2] } else { sign * most });
            match freezing.commit() {
                Ok(_) => break,
                Err(_) => most /= 2,
            }
            assert!(most > 1 << 30, "{settings:?}");
        }
        for row in release.publish().expect("what was accepted is published") {
            let (value, lower, upper) = (row.value.value(), row.lower.value(), row.upper.value());
            assert!(value.is_finite() && lower.is_finite() && upper.is_finite(), "{settings:?}: {row:?}");
            assert!(lower <= value && value <= upper, "{settings:?}: {row:?}");
            figures += 1;
        }
    }
    Ok(figures)
}

#[test]
fn what_init_accepts_can_be_published_whatever_the_data_are() {
    let exponents = [-308, -300, -200, -160, -110, -99, -50, -8, 0, 8, 50, 99, 110, 160, 200, 300, 308];
    let (mut accepted, mut refused) = (0, 0);
    for exponent in exponents {
        let x = 10f64.powi(exponent);
        for query in [
            format!("sum:{:e},{x:e}", -x),
            format!("sum:0,{x:e}"),
            format!("mean:{:e},{x:e}", -x),
            format!("mean:0,{x:e}"),
            format!("quantiles:0.5@{:e},0,{x:e}", -x),
            format!("histogram:{:e},{x:e}", -x),
        ] {
            let Ok(query) = query.parse::<Query>() else {
                refused += 1;
                continue;
            };
            let settings = Settings::new(vec!["a".into()], 3, Unit::User);
            let settings = Settings { queries: vec![(query, 1.0)], max_periods: 2, ..settings };
            for sign in [-1, 0, 1] {
                accepted += published(&settings, 3, sign).unwrap();
            }
        }
    }
    assert!(accepted > 400 && refused > 40, "{accepted} figures, {refused} queries refused");
    for text in ["sum:-1e308,1e308", "mean:0,1e308", "sum:0,1e-300", "cdf:0,1e101"] {
        assert!(text.parse::<Query>().is_err(), "{text}");
    }
}

#[test]
fn windows_decays_many_rows_and_weights_are_published_too() {
    let queries = |text: &str| text.split(' ').map(|query| query.parse().unwrap()).collect::<Vec<Query>>();
    let mut accepted = 0;
    for (rows, weights) in
        [(1, [1.0; 4]), (1 << 24, [1.0; 4]), (3, [1e-3, 1.0, 1e3, 1.0]), (1, [1e-300, 1.0, 1e300, 1.0])]
    {
        for periods in [2, 5] {
            let queries =
                queries("counts window:2 decay:0.9 sum:-1e100,1e100").into_iter().zip(weights).collect();
            let settings =
                Settings { max_rows: rows, queries, ..Settings::new(vec!["a".into()], periods, Unit::User) };
            // Weights that are too far apart are refused.
            match published(&settings, periods, 0) {
                Ok(figures) => accepted += figures,
                Err(error) => assert!(error.is_bad_input(), "{error:?}"),
            }
        }
    }
    let segments = Segments { first: 2, growth: Growth::Doubles };
    let endless = Settings::new(vec!["a".into()], 2, Unit::User).with_segments(segments);
    accepted += published(&endless, 9, 1).unwrap();
    for (rows, query) in [
        (1, "marginals:a=x|y;b=x|y;c=x|y;d=x|y;ways=0,1,2"),
        (1000, "marginals:a@0;b=x|y|z;ways=1"),
        (1, "marginals:a@-1e300,0,1e300;ways=1"),
    ] {
        let queries = queries(query).into_iter().map(|query| (query, 1.0)).collect();
        let settings = Settings { max_rows: rows, queries, ..Settings::new(vec!["a".into()], 3, Unit::User) };
        for sign in [-1, 0, 1] {
            accepted += published(&settings, 3, sign).unwrap();
        }
    }
    assert!(accepted >= 4 * 7 * 2, "{accepted}");
    let beyond = {
        let folder = tempfile::tempdir().unwrap();
        let mut release = Release::create(folder.path(), &endless).unwrap();
        release.freeze_counts(&Period::Number(0), &[1 << 39]).unwrap_err()
    };
    assert!(beyond.to_string().contains("beyond 64 bits"), "{beyond}");
}
