//! The report: whole, self-contained, and safe with any text and any number.

use super::{Accuracy, Report, Run};

fn run(mechanism: &str, error: fn(f64) -> f64, tail: f64) -> Run {
    let steps = 480;
    let column = |sign: f64| (0..steps).map(|t| if t == 0 { 1.0 } else { sign * tail / t as f64 }).collect();
    Run {
        mechanism: mechanism.into(),
        learning_rate: 0.1,
        accuracies: (1..=24)
            .map(|i| Accuracy {
                step: 20 * i,
                mean: 0.85 - 0.5 / (i as f64).sqrt() * (1.2 - tail),
                standard_error: Some(0.01),
            })
            .collect(),
        prefix_errors: (1..=steps).map(|t| error(f64::from(t)) / 500.0).collect(),
        strategy: column(1.0),
        noise_correlating: column(-1.0),
        epsilon: 4.0,
        audit: Some(1.25),
        spent: (1..=4).map(|round| (120 * round, round as f64)).collect(),
        delta: 1e-5,
        noise_multiplier: 1.0812,
        sensitivity: 2.0,
        statement: "One example, zero-out adjacency; exact, bands no wider than the separation.".into(),
        steps: 480,
        seconds: 12.3,
        seconds_in_noise: 0.2,
    }
}

fn report() -> Report {
    let runs = vec![
        run("independent", |t| 2.0 * t.sqrt(), 0.0),
        run("banded-toeplitz:120", |t| 3.0 + t / 480.0, 0.4),
    ];
    Report { title: "cnn on fashion-mnist".into(), runs }
}

#[test]
fn it_holds_every_part_and_needs_nothing_else() {
    let html = report().to_html().unwrap();
    // Each of the five figures is there for wide screens and for narrow ones.
    assert_eq!(html.matches("<svg").count(), 10);
    for part in [
        "cnn on fashion-mnist",
        "zero-out adjacency",
        "1.25 or more (95%)",
        "1.0812",
        "no wider than the separation",
        "points more than",
    ] {
        assert!(html.contains(part), "{part}");
    }
    // The SVG namespace is the one address; nothing is fetched.
    let addresses = html.matches("http").count();
    assert_eq!(addresses, html.matches("http://www.w3.org/2000/svg").count());
    assert!(
        ["<script", "<link", "<img", "url(", "@import", "src="].iter().all(|other| !html.contains(other))
    );
    assert!(html.len() < 200_000, "{} bytes", html.len());
}

#[test]
fn any_text_and_any_number_make_a_page() {
    let mut report = report();
    report.title = "<script>alert(1)</script>".into();
    let run = &mut report.runs[1];
    run.mechanism = "a \"quoted\" & <b>bold</b> name".into();
    run.accuracies = vec![Accuracy { step: 0, mean: f64::NAN, standard_error: Some(f64::NAN) }];
    run.prefix_errors = vec![f64::INFINITY, f64::NAN];
    (run.strategy, run.noise_correlating) = (vec![], vec![1e300, -1e300, 1e-300]);
    let html = report.to_html().unwrap();
    assert!(!html.contains("<script") && !html.contains("<b>bold"));
    for run in &mut report.runs {
        (run.accuracies, run.prefix_errors, run.spent) = (vec![], vec![], vec![]);
        (run.strategy, run.noise_correlating) = (vec![], vec![]);
    }
    let html = report.to_html().unwrap();
    assert!(
        html.matches("Nothing was measured").count() == 4
            && !html.contains("spent")
            && html.contains("not tested")
    );
    report.runs.clear();
    assert!(report.to_html().unwrap_err().to_string().starts_with("number of runs"));
}

/// A band for each run, on wide screens and on narrow ones, and none without repeats.
#[test]
fn accuracies_have_bands_of_their_standard_errors() {
    let mut report = report();
    let bands = |report: &Report| report.to_html().unwrap().matches("<polygon").count();
    assert_eq!(bands(&report), 4);
    assert!(report.to_html().unwrap().contains("standard error of the mean"));
    for accuracy in report.runs.iter_mut().flat_map(|run| &mut run.accuracies) {
        accuracy.standard_error = None;
    }
    assert_eq!(bands(&report), 0);
    assert!(!report.to_html().unwrap().contains("standard error of the mean"));
}

/// What figures are drawn in has a colour for dark screens.
#[test]
fn every_colour_is_one_of_the_theme() {
    let html = report().to_html().unwrap();
    for what in ["stroke", "fill"] {
        let opening = format!(" {what}=\"#");
        let used = html.split(&opening).skip(1).map(|rest| &rest[..6]);
        let unknown: Vec<&str> =
            used.filter(|color| !html.contains(&format!(".chart [{what}=\"#{color}\"]"))).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
