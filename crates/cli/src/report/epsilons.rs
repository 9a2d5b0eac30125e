//! The page of accuracy against privacy.

use antinoise_chart::{Axis, Chart, LineStyle, Point, Series};

use super::content::{AtEpsilon, Epsilons};
use super::frame::{WHOLE, escaped, section};
use super::page::{document, with_error};
use crate::failure::Result;
use crate::numbers::{short, short_up};

/// The warning for readers who see models of several epsilons.
pub const TOGETHER: &str = "Each epsilon covers only its own models. Publishing models of several epsilons costs more than any one \
                            of them (in Rust, antinoise_plan::compose gives the total).";

pub(super) fn html(report: &Epsilons) -> Result<String> {
    let lead = format!(
        "<p class=\"lead\">Test accuracy by epsilon, at &delta; = {:e}. {}</p>\n",
        report.delta,
        escaped(TOGETHER)
    );
    let body = figure(report)? + &table(report) + &links(report);
    Ok(document(&report.title, &lead, &body))
}

fn figure(report: &Epsilons) -> Result<String> {
    let mut names: Vec<&str> = Vec::new();
    for row in &report.rows {
        if !names.contains(&row.series.as_str()) {
            names.push(&row.series);
        }
    }
    let chart = Chart {
        title: String::new(),
        x: Axis::logarithmic("epsilon").ticks_at(report.links.iter().map(|link| link.0)),
        y: Axis::linear("test accuracy (percent)"),
        series: names.into_iter().map(|name| series(name, report)).collect(),
    };
    section(
        "Accuracy against privacy",
        "Share of the test examples that are recognised. Bands: one standard error of the mean over repeats, to each side.",
        WHOLE,
        chart,
    )
}

/// A line through the accuracies of a mechanism; accuracy without privacy is the same at every epsilon.
fn series(name: &str, report: &Epsilons) -> Series {
    let rows: Vec<&AtEpsilon> = report.rows.iter().filter(|row| row.series == name).collect();
    let point = |epsilon: f64, row: &AtEpsilon| Point {
        x: epsilon,
        y: 100.0 * row.accuracy,
        error: row.standard_error.map(|error| [100.0 * error; 2]),
    };
    match &rows[..] {
        [row] if row.epsilon.is_infinite() => {
            let at_ends = |link: &(f64, String)| Point { error: None, ..point(link.0, row) };
            Series::new(name, LineStyle::Dashed, report.links.iter().map(at_ends))
        }
        rows => Series::new(name, LineStyle::Marked, rows.iter().map(|row| point(row.epsilon, row))),
    }
}

fn table(report: &Epsilons) -> String {
    let row = |row: &AtEpsilon| {
        let private = |text: String| if row.epsilon.is_finite() { text } else { "&ndash;".into() };
        format!(
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            escaped(&row.mechanism),
            private(short_up(row.epsilon, 5)),
            with_error(row.accuracy, row.standard_error),
            private(short(row.rms_loss, 4)),
            row.learning_rate,
        )
    };
    let rows: String = report.rows.iter().map(row).collect();
    format!(
        "<section class=\"panel\">\n<h2>Results</h2>\n<table>\n<thead><tr><td></td><th scope=\"col\">&epsilon;</th>\
         <th scope=\"col\">test accuracy</th><th scope=\"col\">RMS loss</th><th scope=\"col\">learning rate</th></tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table>\n</section>\n"
    )
}

fn links(report: &Epsilons) -> String {
    let link = |(epsilon, path): &(f64, String)| {
        format!("<a href=\"{}\">target &epsilon; = {epsilon}</a>", escaped(path))
    };
    let links: Vec<String> = report.links.iter().map(link).collect();
    format!(
        "<section class=\"panel\">\n<h2>What is protected</h2>\n<p class=\"caption\">Statements, curves and errors of each: {}</p>\n\
         </section>\n",
        links.join(" &middot; ")
    )
}
