//! The page of a training at one epsilon.

use std::fmt::Write;

use antinoise_accounting::three_digits_up;
use antinoise_chart::page::{Sizes, WHOLE, details, escaped, section, sentences};
use antinoise_chart::{Axis, Chart, Error, LineStyle, Point, SERIES, Series};
use antinoise_input::{short, short_down};

use super::parts::{document, percent, seed_warning, with_error};
use crate::result::{Accuracy, MechanismFigures, MechanismResult, PrivateResult, StudyResult};

/// Entries of C and C^-1 that are shown: those far from the diagonal say little.
const LAGS: usize = 32;

/// The results as HTML, with their figures as SVG and the style inside.
pub fn study_page(result: &StudyResult) -> Result<String, Error> {
    let body = figures(result)? + &table(result) + &privacy(result);
    let is_chosen = result.runs.iter().any(|run| run.by_learning_rate.len() > 1);
    Ok(document(
        &result.title,
        &(seed_warning(result.runs.iter()) + &lead(result) + &cards(result)),
        &body,
        is_chosen,
    ))
}

/// The comparison of the first mechanism with the best of the other private ones, or the accuracy of the only
/// one.
fn lead(result: &StudyResult) -> String {
    let mut private = result.private();
    let Some((first, _)) = private.next() else { return String::new() };
    let share = percent(result.largest_class_share);
    let largest = format!("Always predicting {} would reach {share}.", result.tested.most_frequent());
    let best = private.max_by(|x, y| x.0.test_accuracy.total_cmp(&y.0.test_accuracy));
    let Some((best, _)) = best else {
        return format!(
            "<p class=\"lead\">At {}, <strong>{}</strong> reaches {} test accuracy ({}). {largest}</p>\n",
            budget(first),
            escaped(&first.label()),
            accuracy(first),
            first.error_is(),
        );
    };
    let difference = best.difference(first);
    let size = difference.size().replace("+-", "&plusmn;");
    let verdict = match difference.is_beyond_error() {
        Some(false) => format!("no difference beyond the error ({size}) to"),
        Some(true) | None => {
            format!("{size} {} than", if difference.points < 0.0 { "less" } else { "more" })
        }
    };
    // Several published models may cost more under one mechanism than under another.
    let against = if best.has_privacy_of(first) { String::new() } else { format!(" at {}", budget(first)) };
    format!(
        "<p class=\"lead\">At {}, <strong>{}</strong> reaches {} test accuracy: {verdict} {} with {}{against} ({}). \
         {largest}</p>\n",
        budget(best),
        escaped(&best.label()),
        percent(best.test_accuracy),
        escaped(&first.label()),
        percent(first.test_accuracy),
        difference.of(),
    )
}

/// The outcome of each run as a large number.
fn cards(result: &StudyResult) -> String {
    let card = |(index, run): (usize, &MechanismResult)| {
        format!(
            "<div class=\"card\"><p class=\"name\">{}{}</p><p class=\"number\">{}</p>\
             <p class=\"note\">test accuracy {}</p></div>\n",
            chip(index),
            escaped(&run.label()),
            accuracy(run),
            if run.private.is_some() { format!("at {}", budget(run)) } else { "without privacy".into() },
        )
    };
    let cards: String = result.runs.iter().enumerate().map(card).collect();
    format!("<div class=\"cards\">\n{cards}</div>\n")
}

const HALF: Sizes = [(400, 200), (340, 200)];

/// The points of a private mechanism; no points for training without privacy.
fn of_private(run: &MechanismResult, points: fn(&MechanismFigures) -> Vec<Point>) -> Vec<Point> {
    run.private.as_ref().map_or_else(Vec::new, |private| points(&private.figures))
}

fn figures(result: &StudyResult) -> Result<String, Error> {
    let steps = || Axis::linear("training step").whole().covering(0.0);
    let lags = || Axis::linear("steps below the diagonal").whole().covering(0.0);
    let entry = |of: &str| Axis::linear(format!("entry of {of} (no unit)")).covering(0.0);
    let error = "standard deviation in a coordinate (units of the gradient)";
    let chart = |x: Axis, y: Axis, look: LineStyle, points: fn(&MechanismResult) -> Vec<Point>| {
        let series = result.runs.iter().map(|run| Series::new(run.label(), look, points(run)));
        Chart { title: String::new(), x, y, series: series.collect() }
    };
    let tested = result.runs.iter().flat_map(|run| &run.accuracy_by_step);
    let has_errors = tested.into_iter().any(|accuracy| accuracy.standard_error.is_some());
    let bands = if has_errors {
        " Bands or bars: one standard error of the mean over repeats, to each side."
    } else {
        ""
    };
    let whole = section(
        "Test accuracy",
        &format!("Share of the test {} that are predicted.{bands}", result.tested.name()),
        WHOLE,
        chart(steps(), Axis::linear("test accuracy (percent)"), LineStyle::Line, accuracies),
    )? + &section(
        "Error of the prefix sums",
        "Standard deviation, in each coordinate, of the noise that has built up in the sum of the mean \
         gradients by each step; plain SGD adds it to the parameters, times the learning rate.",
        WHOLE,
        chart(steps(), Axis::linear(error).covering(0.0), LineStyle::Line, |run| {
            of_private(run, |figures| {
                (1..).map(f64::from).zip(figures.prefix_errors.iter().copied()).map(Point::from).collect()
            })
        }),
    )?;
    let spent = if result.private().all(|(_, private)| private.figures.spent.is_empty()) {
        String::new()
    } else {
        section(
            "Privacy spent",
            "&epsilon; of the first steps alone, at the same &delta;: that of a run which is stopped there for a reason that has nothing to do \
             with the data. Of several published models, that of one; where the claim is shown by simulation, an upper bound.",
            WHOLE,
            chart(steps(), Axis::linear("epsilon (no unit)").covering(0.0), LineStyle::Line, |run| {
                of_private(run, |figures| {
                    figures.spent.iter().map(|&(step, epsilon)| Point::from((step as f64, epsilon))).collect()
                })
            }),
        )?
    };
    // Independent noise has the identity, which is no picture.
    let is_identity = |private: &PrivateResult| {
        let column = &private.figures.noise_correlating;
        column.len() > 1 && column[1..].iter().all(|&entry| entry == 0.0)
    };
    if result.private().all(|(_, private)| is_identity(private)) {
        return Ok(whole + &spent);
    }
    let halves = section(
        "Diagonals of C",
        "The strategy: how much of each gradient is encoded in which later noisy sum.",
        HALF,
        chart(lags(), entry("C"), LineStyle::Points, |run| {
            of_private(run, |figures| by_lag(&figures.strategy))
        }),
    )? + &section(
        "Diagonals of C<sup>-1</sup>",
        "The noise: what each step adds, and what later steps take back.",
        HALF,
        chart(lags(), entry("C\u{207b}\u{b9}"), LineStyle::Points, |run| {
            of_private(run, |figures| by_lag(&figures.noise_correlating))
        }),
    )?;
    Ok(format!("{whole}{spent}<div class=\"pair\">\n{halves}</div>\n"))
}

/// Accuracies in percent, with their error bars.
fn accuracies(run: &MechanismResult) -> Vec<Point> {
    let point = |accuracy: &Accuracy| Point {
        x: accuracy.step as f64,
        y: 100.0 * accuracy.mean,
        error: accuracy.standard_error.map(|error| [100.0 * error; 2]),
    };
    run.accuracy_by_step.iter().map(point).collect()
}

fn by_lag(column: &[f64]) -> Vec<Point> {
    (0..LAGS).map(|lag| lag as f64).zip(column.iter().copied()).map(Point::from).collect()
}

/// The table of results, with one column per run; narrow screens have room for a few.
fn table(result: &StudyResult) -> String {
    type Cell = fn(&MechanismResult) -> String;
    let quantities: [(&str, Cell); 12] = [
        ("test accuracy", accuracy),
        ("&epsilon;", |run| if_private(run, epsilon)),
        ("&epsilon; of a model, by canaries", |run| {
            if_private(run, |private| {
                private.audit.as_ref().map_or(DASH.into(), |audit| {
                    format!("{} or more (95%)", short_down(audit.epsilon_lower, 3))
                })
            })
        }),
        ("&delta;", |run| if_private(run, |private| three_digits_up(private.delta))),
        ("noise multiplier &sigma;", |run| {
            if_private(run, |private| short(private.figures.noise_multiplier, 5))
        }),
        ("sensitivity", |run| if_private(run, |private| short(private.figures.sensitivity, 5))),
        ("error of the last prefix sum", |run| {
            if_private(run, |private| {
                private.figures.prefix_errors.last().map_or(DASH.into(), |&error| short(error, 3))
            })
        }),
        ("steps", |run| run.steps.to_string()),
        ("learning rate", |run| run.learning_rate.to_string()),
        ("models trained", |run| run.models_trained.to_string()),
        ("time of a training", |run| duration(run.seconds)),
        ("of which noise", |run| match run.private {
            Some(_) => duration(run.seconds_in_noise),
            None => DASH.into(),
        }),
    ];
    let head = |(index, run): (usize, &MechanismResult)| {
        format!("<th scope=\"col\">{}{}</th>", chip(index), escaped(&run.label()))
    };
    let heads: String = result.runs.iter().enumerate().map(head).collect();
    let row = |(name, cell): (&str, Cell)| {
        let cells: Vec<String> = result.runs.iter().map(cell).collect();
        // A quantity that no run has is no row.
        if cells.iter().all(|cell| cell == DASH) {
            return String::new();
        }
        let cells: String = cells.iter().map(|cell| format!("<td>{cell}</td>")).collect();
        format!("<tr><th scope=\"row\">{name}</th>{cells}</tr>\n")
    };
    let rows: String = quantities.into_iter().map(row).collect();
    format!(
        "<section class=\"panel\">\n<h2>Results</h2>\n<table>\n<thead><tr><td></td>{heads}</tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table>\n</section>\n"
    )
}

/// The cell of a quantity that a run does not have.
const DASH: &str = "&ndash;";

/// The statements: their three sentences once for all runs that share them, and the table of each, folded.
fn privacy(result: &StudyResult) -> String {
    let runs: Vec<(usize, &MechanismResult)> = result.runs.iter().enumerate().collect();
    let of = |run: &MechanismResult| run.private.as_ref().map(|private| private.statement.summary());
    let mut statements = String::new();
    for (at, (_, first)) in runs.iter().enumerate() {
        if runs[..at].iter().any(|(_, before)| of(before) == of(first)) {
            continue;
        }
        let sharing: Vec<_> = runs.iter().filter(|(_, run)| of(run) == of(first)).collect();
        let name = |(index, run): &(usize, &MechanismResult)| chip(*index) + &escaped(&run.label());
        let names: Vec<String> = sharing.iter().map(|run| name(run)).collect();
        let text = match &first.private {
            Some(PrivateResult { statement, .. }) => {
                let table = |run: &&(usize, &MechanismResult)| {
                    let statement = &run.1.private.as_ref()?.statement;
                    let of = if names.len() > 1 { format!(": {}", name(run)) } else { String::new() };
                    let title = format!("The whole statement{of}");
                    Some(details(&title, &statement.details(), &statement.lists()))
                };
                sentences(&statement.summary()) + &sharing.iter().filter_map(table).collect::<String>()
            }
            None => "<p>Not private: neither clipping nor noise. This run is a baseline for readers who may see the \
                     data; its models were not kept.</p>"
                .into(),
        };
        let names = names.join(" &emsp; ");
        let _ = writeln!(statements, "<div class=\"statement\"><h3>{names}</h3>{text}</div>");
    }
    format!("<section class=\"panel\">\n<h2>What is protected</h2>\n{statements}</section>\n")
}

/// A square in the colour of run number `index`, shown next to its name.
fn chip(index: usize) -> String {
    format!("<span class=\"chip run-{}\"></span>", index % SERIES)
}

/// The last accuracy, with its standard error.
fn accuracy(run: &MechanismResult) -> String {
    with_error(run.test_accuracy, Some(run.error()))
}

/// The cell of a private run, or a dash for training without privacy.
fn if_private(run: &MechanismResult, cell: fn(&PrivateResult) -> String) -> String {
    run.private.as_ref().map_or(DASH.into(), cell)
}

/// "(epsilon, delta) = ..." of a run.
fn budget(run: &MechanismResult) -> String {
    let Some(private) = &run.private else { return "no privacy".into() };
    format!("(&epsilon;,&thinsp;&delta;) = ({},&thinsp;{})", epsilon(private), three_digits_up(private.delta))
}

/// A duration in the unit that fits.
fn duration(seconds: f64) -> String {
    let (value, unit) = match seconds {
        ..1e-3 => (1e6 * seconds, "&micro;s"),
        ..1.0 => (1e3 * seconds, "ms"),
        ..600.0 => (seconds, "s"),
        _ => (seconds / 60.0, "min"),
    };
    format!("{} {unit}", short(value, 3))
}

/// Epsilon rounded up to three digits.
fn epsilon(private: &PrivateResult) -> String {
    three_digits_up(private.epsilon)
}
