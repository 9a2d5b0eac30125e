//! The page of a sweep: accuracy against epsilon, or against the length of training.

use antinoise_accounting::three_digits_up;
use antinoise_chart::page::{WHOLE, escaped, section};
use antinoise_chart::{self as chart, Axis, Chart, Error, LineStyle, Series};
use antinoise_input::short;

use super::parts::{document, seed_warning, with_error};
use crate::point::Point;
use crate::result::{MechanismResult, PrivateResult};
use crate::sweep::{AtPoint, Sweep};

/// Accuracy against the setting that varies as HTML, with its figure as SVG and its style inside.
pub fn sweep_page(sweep: &Sweep) -> Result<String, Error> {
    let (first, of_first) = (&sweep.points[0].result, sweep.points[0].point);
    let private = first.private().next().map(|(_, private)| private);
    let lead = format!(
        "{}<p class=\"lead\">Test accuracy by {}, at {}&delta; = {} of one {}. {}</p>\n",
        seed_warning(sweep.rows().map(|(_, row)| row)),
        of_first.name(),
        at_epsilon(sweep),
        three_digits_up(private.map_or(f64::NAN, |private| private.delta)),
        private.map_or("unit".into(), |private| private.unit.to_string()),
        escaped(&sweep.together())
    );
    let body = figure(sweep)? + &table(sweep) + &links(sweep);
    Ok(document(&first.title, &lead, &body, true))
}

/// "epsilon = E, " where all private results have that epsilon, or the least and the largest.
fn at_epsilon(sweep: &Sweep) -> String {
    if let Point::Epsilon(_) = sweep.points[0].point {
        return String::new();
    }
    let all = || sweep.private().map(|private| private.epsilon);
    let ends = [all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max)].map(three_digits_up);
    match ends {
        [least, largest] if least == largest => format!("&epsilon; = {least}, "),
        [least, largest] => format!("&epsilon; from {least} to {largest}, "),
    }
}

fn figure(sweep: &Sweep) -> Result<String, Error> {
    let mut names: Vec<String> = Vec::new();
    for name in sweep.rows().map(|(_, row)| sweep.series(row)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let point = sweep.points[0].point;
    let chart = Chart {
        title: String::new(),
        x: Axis::logarithmic(point.name()).ticks_at(sweep.points.iter().map(|at| at.point.value())),
        y: Axis::linear("test accuracy (percent)"),
        series: names.iter().map(|name| series(name, sweep)).collect(),
    };
    let title = match point {
        Point::Epsilon(_) => "Accuracy against privacy",
        Point::Epochs(_) | Point::Steps(_) => "Accuracy against the length of training",
    };
    section(
        title,
        "Share of the test data that is predicted. Bands or bars: one standard error of the mean over repeats, to each side.",
        WHOLE,
        chart,
    )
}

/// A line through the accuracies of a mechanism; training without privacy is the same at every epsilon.
fn series(name: &str, sweep: &Sweep) -> Series {
    let rows: Vec<(Point, &MechanismResult)> =
        sweep.rows().filter(|(_, row)| sweep.series(row) == name).collect();
    let at = |x: f64, row: &MechanismResult| chart::Point {
        x,
        y: 100.0 * row.test_accuracy,
        error: row.standard_error.map(|error| [100.0 * error; 2]),
    };
    match &rows[..] {
        [(Point::Epsilon(_), row)] if row.private.is_none() => {
            let ends =
                sweep.points.iter().map(|of| chart::Point { error: None, ..at(of.point.value(), row) });
            Series::new(name, LineStyle::Dashed, ends)
        }
        rows => {
            // The epsilon that is stated may be below the one that was requested.
            let x = |point: Point, row: &MechanismResult| match point {
                Point::Epsilon(requested) => row.epsilon().unwrap_or(requested),
                length => length.value(),
            };
            Series::new(name, LineStyle::Marked, rows.iter().map(|&(point, row)| at(x(point, row), row)))
        }
    }
}

fn table(sweep: &Sweep) -> String {
    let length = |point: Point| match point {
        Point::Epsilon(_) => String::new(),
        Point::Epochs(_) | Point::Steps(_) => format!("<td>{}</td>", point.value()),
    };
    let row = |(point, row): (Point, &MechanismResult)| {
        let private = |cell: fn(&PrivateResult) -> String| row.private.as_ref().map_or("-".into(), cell);
        format!(
            "<tr><th scope=\"row\">{}</th>{}<td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            escaped(&row.label()),
            length(point),
            row.private.as_ref().map_or("not private".into(), |private| three_digits_up(private.epsilon)),
            with_error(row.test_accuracy, row.standard_error),
            private(|private| short(private.rms_loss, 4)),
            row.learning_rate,
        )
    };
    let rows: String = sweep.rows().map(row).collect();
    let of_length = match sweep.points[0].point {
        Point::Epsilon(_) => String::new(),
        length => format!("<th scope=\"col\">{}</th>", length.name()),
    };
    format!(
        "<section class=\"panel\">\n<h2>Results</h2>\n<table>\n<thead><tr><td></td>{of_length}<th scope=\"col\">&epsilon;</th>\
         <th scope=\"col\">test accuracy</th><th scope=\"col\">RMS loss</th><th scope=\"col\">learning rate</th></tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table>\n</section>\n"
    )
}

fn links(sweep: &Sweep) -> String {
    let link = |(at, path): (&AtPoint, &String)| {
        let text = match at.point {
            Point::Epsilon(epsilon) => format!("target &epsilon; = {epsilon}"),
            length => length.to_string(),
        };
        format!("<a href=\"{}\">{text}</a>", escaped(path))
    };
    let links: Vec<String> = sweep.points.iter().zip(&sweep.links).map(link).collect();
    format!(
        "<section class=\"panel\">\n<h2>What is protected</h2>\n<p class=\"caption\">Statements, curves and errors of each: {}</p>\n\
         </section>\n",
        links.join(" &middot; ")
    )
}
