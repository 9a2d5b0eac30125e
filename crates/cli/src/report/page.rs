//! The page of several runs.

use std::fmt::Write;

use antinoise_chart::{Axis, Chart, LineStyle, Point, SERIES, Series};
use antinoise_input::rounded_to_4;

use super::content::{Accuracy, Report, Run};
use super::frame::{self, Frame, Sizes, WHOLE, escaped, section};
use crate::failure::Result;
use crate::numbers::{same_privacy, short, short_down};

/// Entries of C and C^-1 that are shown: those far from the diagonal say little.
const LAGS: usize = 32;

pub(super) fn html(report: &Report) -> Result<String> {
    let body = figures(report)? + &results(report) + &privacy(report);
    Ok(document(&report.title, &(lead(report) + &cards(report)), &body))
}

/// Returns the HTML page of a training: title, `head`, `body` and footer.
pub(super) fn document(title: &str, head: &str, body: &str) -> String {
    frame::document(
        &Frame {
            kind: "private training",
            eyebrow: "Private training with correlated noise",
            title,
            footer: "Written by antinoise. Test accuracy is measured on examples that were not trained \
                     on; they are not protected by the privacy statement. Each run is the best of its learning rates by that \
                     accuracy; no error has that choice in it.",
        },
        head,
        body,
    )
}

/// One sentence that compares the first run with the best of the others.
fn lead(report: &Report) -> String {
    let tested = |run| Run::last(run).map(|accuracy| (run, accuracy.mean));
    let (first, rest) = report.runs.split_first().expect("a report has runs");
    let private = rest.iter().filter(|run| run.is_private());
    let best = private.filter_map(tested).max_by(|x, y| x.1.total_cmp(&y.1));
    let (Some((first, before)), Some((best, after))) = (tested(first), best) else {
        return String::new();
    };
    let points = 100.0 * (after - before);
    format!(
        "<p class=\"lead\">At {}, <strong>{}</strong> reaches {} test accuracy: {:.1} points {} than \
         {} with {}{}.</p>\n",
        budget(best),
        escaped(&best.mechanism),
        percent(after),
        points.abs(),
        if points < 0.0 { "less" } else { "more" },
        escaped(&first.mechanism),
        percent(before),
        // Several released models may cost more under one mechanism than under another.
        if same_privacy(first.epsilon, best.epsilon) {
            String::new()
        } else {
            format!(" at {}", budget(first))
        },
    )
}

/// The outcome of each run as a large number.
fn cards(report: &Report) -> String {
    let card = |(index, run): (usize, &Run)| {
        let accuracy = accuracy(run);
        format!(
            "<div class=\"card\"><p class=\"name\">{}{}</p><p class=\"number\">{accuracy}</p>\
             <p class=\"note\">test accuracy at {}</p></div>\n",
            chip(index),
            escaped(&run.mechanism),
            budget(run),
        )
    };
    let cards: String = report.runs.iter().enumerate().map(card).collect();
    format!("<div class=\"cards\">\n{cards}</div>\n")
}

const HALF: Sizes = [(400, 200), (340, 200)];

fn figures(report: &Report) -> Result<String> {
    let steps = || Axis::linear("training step").whole().covering(0.0);
    let lags = || Axis::linear("steps below the diagonal").whole().covering(0.0);
    let entry = |of: &str| Axis::linear(format!("entry of {of} (no unit)")).covering(0.0);
    let error = "standard deviation in a coordinate (units of the gradient)";
    let chart = |x: Axis, y: Axis, look: LineStyle, points: fn(&Run) -> Vec<Point>| {
        let series = report.runs.iter().map(|run| Series::new(run.mechanism.clone(), look, points(run)));
        Chart { title: String::new(), x, y, series: series.collect() }
    };
    let has_errors =
        report.runs.iter().flat_map(|run| &run.accuracies).any(|accuracy| accuracy.standard_error.is_some());
    let bands =
        if has_errors { " Bands: one standard error of the mean over repeats, to each side." } else { "" };
    let whole = section(
        "Test accuracy",
        &format!("Share of the test examples that are recognised.{bands}"),
        WHOLE,
        chart(steps(), Axis::linear("test accuracy (percent)").covering(0.0), LineStyle::Line, accuracies),
    )? + &section(
        "Error of the prefix sums",
        "Standard deviation, in each coordinate, of the noise that has built up in the sum of the mean \
         gradients by each step; plain SGD adds it to the parameters, times the learning rate.",
        WHOLE,
        chart(steps(), Axis::linear(error).covering(0.0), LineStyle::Line, |run| {
            (1..).map(f64::from).zip(run.prefix_errors.iter().copied()).map(Point::from).collect()
        }),
    )?;
    let spent = if report.runs.iter().all(|run| run.spent.is_empty()) {
        String::new()
    } else {
        section(
            "Privacy spent",
            "&epsilon; of the first steps alone, at the same &delta;: that of a run which is stopped there for a reason that has nothing to do \
             with the data. Of several released models, that of one; where the claim is shown by simulation, an upper bound.",
            WHOLE,
            chart(steps(), Axis::linear("epsilon (no unit)").covering(0.0), LineStyle::Line, |run| {
                run.spent.iter().map(|&(step, epsilon)| Point::from((step as f64, epsilon))).collect()
            }),
        )?
    };
    let halves = section(
        "Diagonals of C",
        "The strategy: how much of each gradient is encoded in which later release.",
        HALF,
        chart(lags(), entry("C"), LineStyle::Points, |run| by_lag(&run.strategy)),
    )? + &section(
        "Diagonals of C<sup>-1</sup>",
        "The noise: what each step adds, and what later steps take back.",
        HALF,
        chart(lags(), entry("C\u{207b}\u{b9}"), LineStyle::Points, |run| by_lag(&run.noise_correlating)),
    )?;
    Ok(format!("{whole}{spent}<div class=\"pair\">\n{halves}</div>\n"))
}

/// Accuracies in percent, with their standard errors.
fn accuracies(run: &Run) -> Vec<Point> {
    let point = |accuracy: &Accuracy| Point {
        x: accuracy.step as f64,
        y: 100.0 * accuracy.mean,
        error: accuracy.standard_error.map(|error| [100.0 * error; 2]),
    };
    run.accuracies.iter().map(point).collect()
}

fn by_lag(column: &[f64]) -> Vec<Point> {
    (0..LAGS).map(|lag| lag as f64).zip(column.iter().copied()).map(Point::from).collect()
}

/// Table of results with one column for each run: narrow screens have space for a few.
fn results(report: &Report) -> String {
    type Cell = fn(&Run) -> String;
    let quantities: [(&str, Cell); 11] = [
        ("test accuracy", accuracy),
        ("&epsilon;", |run| if_private(run, epsilon(run))),
        ("&epsilon; of a model, by canaries", |run| {
            run.audit.map_or("&ndash;".into(), |audit| format!("{} or more (95%)", short_down(audit, 3)))
        }),
        ("&delta;", |run| if_private(run, format!("{:e}", run.delta))),
        ("noise multiplier &sigma;", |run| if_private(run, format!("{:.4}", run.noise_multiplier))),
        ("sensitivity", |run| if_private(run, format!("{:.4}", run.sensitivity))),
        ("error of the last prefix sum", |run| {
            run.prefix_errors.last().map_or_else(|| "&ndash;".into(), |&error| short(error, 3))
        }),
        ("steps", |run| run.steps.to_string()),
        ("learning rate", |run| run.learning_rate.to_string()),
        ("seconds", |run| format!("{:.1}", run.seconds)),
        ("seconds in noise", |run| format!("{:.2}", run.seconds_in_noise)),
    ];
    let head = |(index, run): (usize, &Run)| {
        format!("<th scope=\"col\">{}{}</th>", chip(index), escaped(&run.mechanism))
    };
    let heads: String = report.runs.iter().enumerate().map(head).collect();
    let row = |(name, cell): (&str, Cell)| {
        let cells: String = report.runs.iter().map(|run| format!("<td>{}</td>", cell(run))).collect();
        format!("<tr><th scope=\"row\">{name}</th>{cells}</tr>\n")
    };
    let rows: String = quantities.into_iter().map(row).collect();
    format!(
        "<section class=\"panel\">\n<h2>Results</h2>\n<table>\n<thead><tr><td></td>{heads}</tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table>\n</section>\n"
    )
}

fn privacy(report: &Report) -> String {
    let mut statements = String::new();
    for (index, run) in report.runs.iter().enumerate() {
        let _ = writeln!(
            statements,
            "<div class=\"statement\"><h3>{}{}</h3><p>{}</p></div>",
            chip(index),
            escaped(&run.mechanism),
            escaped(&run.statement),
        );
    }
    format!("<section class=\"panel\">\n<h2>What is protected</h2>\n{statements}</section>\n")
}

/// The square in a run's colour next to its name.
fn chip(index: usize) -> String {
    format!("<span class=\"chip run-{}\"></span>", index % SERIES)
}

/// The last accuracy, with its standard error where there are repeats.
fn accuracy(run: &Run) -> String {
    run.last().map_or("not tested".into(), |last| with_error(last.mean, last.standard_error))
}

/// A share in percent, with its standard error where there is one.
pub(super) fn with_error(share: f64, error: Option<f64>) -> String {
    let error = error
        .map_or_else(String::new, |error| format!(" <small>&plusmn;&thinsp;{:.1}</small>", 100.0 * error));
    percent(share) + &error
}

/// `text`, or a dash where there is no privacy.
fn if_private(run: &Run, text: String) -> String {
    if run.is_private() { text } else { "&ndash;".into() }
}

/// "(epsilon, delta) = ..." of a run.
fn budget(run: &Run) -> String {
    if !run.is_private() {
        return "no privacy".into();
    }
    format!("(&epsilon;,&thinsp;&delta;) = ({},&thinsp;{:e})", epsilon(run), run.delta)
}

/// Four digits, never below the truth.
fn epsilon(run: &Run) -> String {
    format!("{}", rounded_to_4(run.epsilon, f64::ceil))
}

fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}
