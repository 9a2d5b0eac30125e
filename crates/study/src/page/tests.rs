//! The page: whole, self-contained, and safe with any text and any number.

use antinoise_accounting::PrivacyStatement;
use antinoise_mechanism::PrivacyUnit;

use super::study_page as page;
use crate::audit::Audited;
use crate::clip_by::ClipBy;
use crate::named::Baseline;
use crate::result::{Accuracy, MechanismFigures, MechanismResult, PrivateResult, StudyResult};
use crate::tested::Tested;

fn run(mechanism: &str, error: fn(f64) -> f64, tail: f64) -> MechanismResult {
    let steps = 480;
    let column = |sign: f64| (0..steps).map(|t| if t == 0 { 1.0 } else { sign * tail / t as f64 }).collect();
    let accuracy = |i: i32| Accuracy {
        step: 20 * i as usize,
        mean: 0.85 - 0.5 / f64::from(i).sqrt() * (1.2 - tail),
        standard_error: Some(0.01),
    };
    let last = accuracy(24).mean;
    let audited = Audited { canaries: 100, epsilon_lower: 1.25, epsilon_stated: 4.0, alpha: 0.05 };
    let statement = PrivacyStatement { unit: "example".into(), ..PrivacyStatement::default() };
    MechanismResult {
        mechanism: mechanism.into(),
        baseline: None,
        test_accuracy: last,
        standard_error: Some(0.01),
        tested: Tested::Examples(357),
        private: Some(PrivateResult {
            epsilon: 4.0,
            delta: 1e-5,
            workload: "prefix".into(),
            rms_loss: 0.1,
            unit: PrivacyUnit::Example,
            epsilon_by_examples: Vec::new(),
            models_published: 1,
            release: "grid",
            clip_by: ClipBy::Whole,
            clip_norms: vec![1.0],
            audit: Some(audited),
            insecure_seed: false,
            figures: MechanismFigures {
                prefix_errors: (1..=steps).map(|t| error(f64::from(t)) / 500.0).collect(),
                strategy: column(1.0),
                noise_correlating: column(-1.0),
                spent: (1..=4).map(|round| (120 * round, round as f64)).collect(),
                noise_multiplier: 1.0812,
                sensitivity: 2.0,
            },
            statement: PrivacyStatement {
                schema: "exact, bands no wider than the separation".into(),
                ..statement
            },
        }),
        steps: 480,
        seconds: 12.3,
        seconds_in_noise: 0.2,
        learning_rate: 0.1,
        test_accuracies: vec![last - 0.01, last + 0.01],
        accuracy_by_step: (1..=24).map(accuracy).collect(),
        by_learning_rate: vec![(0.1, last)],
        models_trained: 2,
    }
}

fn result() -> StudyResult {
    let independent = run("identity", |t| 2.0 * t.sqrt(), 0.0);
    let runs = vec![
        MechanismResult { baseline: Some(Baseline::Independent), ..independent },
        run("banded-toeplitz:120", |t| 3.0 + t / 480.0, 0.4),
    ];
    StudyResult {
        runs,
        report: "report.html".into(),
        model: "model".into(),
        largest_class_share: 0.1,
        default_learning_rate: None,
        model_is: "the first".into(),
        title: "cnn on fashion-mnist".into(),
        uncovered: None,
        tested: Tested::Examples(357),
        is_of_table: false,
    }
}

fn figures(run: &mut MechanismResult) -> &mut MechanismFigures {
    &mut run.private.as_mut().unwrap().figures
}

#[test]
fn it_holds_every_part_and_needs_nothing_else() {
    let html = page(&result()).unwrap();
    // Each of the five figures is there for wide screens and for narrow ones.
    assert_eq!(html.matches("<svg").count(), 10);
    for part in [
        "cnn on fashion-mnist",
        "under zero-out adjacency",
        "1.25 or more (95%)",
        "1.0812",
        "no wider than the separation",
        "points more than independent noise",
        "correlated noise (banded-toeplitz:120)",
        "<details>",
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
fn noise_from_a_seed_is_said_before_any_claim() {
    let (mut seeded, warning) = (result(), crate::result::NOT_PRIVATE);
    assert!(!page(&seeded).unwrap().contains(warning));
    seeded.runs[1].private.as_mut().unwrap().insecure_seed = true;
    let html = page(&seeded).unwrap();
    let place = |text: &str| html.find(text).unwrap();
    assert!(place(warning) < place("reaches") && place(warning) < place("<details>"));
}

#[test]
fn any_text_and_any_number_make_a_page() {
    let mut result = result();
    result.title = "<script>alert(1)</script>".into();
    let run = &mut result.runs[1];
    run.mechanism = "a \"quoted\" & <b>bold</b> name".into();
    run.accuracy_by_step = vec![Accuracy { step: 0, mean: f64::NAN, standard_error: Some(f64::NAN) }];
    figures(run).prefix_errors = vec![f64::INFINITY, f64::NAN];
    (figures(run).strategy, figures(run).noise_correlating) = (vec![], vec![1e300, -1e300, 1e-300]);
    let html = page(&result).unwrap();
    assert!(!html.contains("<script") && !html.contains("<b>bold"));
    for run in &mut result.runs {
        run.accuracy_by_step.clear();
        let figures = figures(run);
        (figures.prefix_errors, figures.spent) = (vec![], vec![]);
        (figures.strategy, figures.noise_correlating) = (vec![], vec![]);
    }
    let html = page(&result).unwrap();
    assert!(html.matches("Nothing was measured").count() == 4 && !html.contains("spent"));
    // Training without privacy has neither a figure of a mechanism nor a statement.
    for run in &mut result.runs {
        run.private = None;
    }
    let html = page(&result).unwrap();
    assert!(html.contains("Not private") && !html.contains("sensitivity"));
}

/// A band for each run, on wide screens and on narrow ones, and none without repeats.
#[test]
fn accuracies_have_bands_of_their_standard_errors() {
    let mut result = result();
    let bands = |result: &StudyResult| page(result).unwrap().matches("<polygon").count();
    assert_eq!(bands(&result), 4);
    assert!(page(&result).unwrap().contains("standard error of the mean"));
    for accuracy in result.runs.iter_mut().flat_map(|run| &mut run.accuracy_by_step) {
        accuracy.standard_error = None;
    }
    assert_eq!(bands(&result), 0);
    assert!(!page(&result).unwrap().contains("standard error of the mean"));
}

/// Every colour of the figures has a replacement for dark screens.
#[test]
fn every_colour_is_one_of_the_theme() {
    let html = page(&result()).unwrap();
    for what in ["stroke", "fill"] {
        let opening = format!(" {what}=\"#");
        let used = html.split(&opening).skip(1).map(|rest| &rest[..6]);
        let unknown: Vec<&str> =
            used.filter(|color| !html.contains(&format!(".chart [{what}=\"#{color}\"]"))).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}

/// A difference within two standard errors is no headline.
#[test]
fn the_headline_has_the_error_of_the_difference() {
    let mut result = result();
    let html = page(&result).unwrap();
    assert!(html.contains("points more than independent noise"), "{html}");
    for (shift, run) in [0.0, 0.004].into_iter().zip(&mut result.runs) {
        run.test_accuracies = vec![0.5, 0.52 + shift, 0.54 - shift];
    }
    let html = page(&result).unwrap();
    assert!(html.contains("no difference beyond the error (0.0 &plusmn; "), "{html}");
    result.runs.iter_mut().for_each(|run| run.test_accuracies.truncate(1));
    assert!(page(&result).unwrap().contains("the error is unknown"));
    result.runs.truncate(1);
    assert!(page(&result).unwrap().contains("Always predicting the largest class would reach 10.0%"));
}
