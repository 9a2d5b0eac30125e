//! The page of accuracy against privacy.

use antinoise_accounting::three_digits_up;
use antinoise_chart::page::{WHOLE, escaped, section};
use antinoise_chart::{Axis, Chart, Error, LineStyle, Point, Series};
use antinoise_input::short;

use super::parts::{document, seed_warning, with_error};
use crate::result::{MechanismResult, PrivateResult};
use crate::sweep::{EpsilonSweep, TOGETHER};

/// Accuracy against epsilon as HTML, with its figure as SVG and its style inside.
pub fn epsilon_page(sweep: &EpsilonSweep) -> Result<String, Error> {
    let first = &sweep.epsilons[0].result;
    let delta = first.private().next().map_or(f64::NAN, |(_, private)| private.delta);
    let lead = format!(
        "{}<p class=\"lead\">Test accuracy by epsilon, at &delta; = {}. {}</p>\n",
        seed_warning(sweep.rows()),
        three_digits_up(delta),
        escaped(TOGETHER)
    );
    let body = figure(sweep)? + &table(sweep) + &links(sweep);
    Ok(document(&first.title, &lead, &body, true))
}

fn figure(sweep: &EpsilonSweep) -> Result<String, Error> {
    let mut names: Vec<String> = Vec::new();
    for name in sweep.rows().map(|row| sweep.series(row)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let chart = Chart {
        title: String::new(),
        x: Axis::logarithmic("epsilon").ticks_at(sweep.epsilons.iter().map(|at| at.epsilon)),
        y: Axis::linear("test accuracy (percent)"),
        series: names.iter().map(|name| series(name, sweep)).collect(),
    };
    section(
        "Accuracy against privacy",
        "Share of the test data that is predicted. Bands or bars: one standard error of the mean over repeats, to each side.",
        WHOLE,
        chart,
    )
}

/// A line through the accuracies of a mechanism; training without privacy is the same at every epsilon.
fn series(name: &str, sweep: &EpsilonSweep) -> Series {
    let rows: Vec<&MechanismResult> = sweep.rows().filter(|row| sweep.series(row) == name).collect();
    let point = |epsilon: f64, row: &MechanismResult| Point {
        x: epsilon,
        y: 100.0 * row.test_accuracy,
        error: row.standard_error.map(|error| [100.0 * error; 2]),
    };
    match &rows[..] {
        [row] if row.private.is_none() => {
            let ends = sweep.epsilons.iter().map(|at| Point { error: None, ..point(at.epsilon, row) });
            Series::new(name, LineStyle::Dashed, ends)
        }
        rows => {
            let private = rows.iter().filter_map(|row| Some(point(row.epsilon()?, row)));
            Series::new(name, LineStyle::Marked, private)
        }
    }
}

fn table(sweep: &EpsilonSweep) -> String {
    let row = |row: &MechanismResult| {
        let private = |cell: fn(&PrivateResult) -> String| row.private.as_ref().map_or("none".into(), cell);
        format!(
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            escaped(&row.label()),
            private(|private| three_digits_up(private.epsilon)),
            with_error(row.test_accuracy, row.standard_error),
            private(|private| short(private.rms_loss, 4)),
            row.learning_rate,
        )
    };
    let rows: String = sweep.rows().map(row).collect();
    format!(
        "<section class=\"panel\">\n<h2>Results</h2>\n<table>\n<thead><tr><td></td><th scope=\"col\">&epsilon;</th>\
         <th scope=\"col\">test accuracy</th><th scope=\"col\">RMS loss</th><th scope=\"col\">learning rate</th></tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table>\n</section>\n"
    )
}

fn links(sweep: &EpsilonSweep) -> String {
    let link = |(epsilon, path): (f64, &String)| {
        format!("<a href=\"{}\">target &epsilon; = {epsilon}</a>", escaped(path))
    };
    let epsilons = sweep.epsilons.iter().map(|at| at.epsilon);
    let links: Vec<String> = epsilons.zip(&sweep.links).map(link).collect();
    format!(
        "<section class=\"panel\">\n<h2>What is protected</h2>\n<p class=\"caption\">Statements, curves and errors of each: {}</p>\n\
         </section>\n",
        links.join(" &middot; ")
    )
}
