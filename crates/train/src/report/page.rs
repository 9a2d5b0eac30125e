//! The page around the figures.

use std::fmt::Write;

use super::figure::Figure;
use super::{Report, Run};
use crate::Error;

const STYLE: &str = include_str!("page.css");
/// Entries of C and C^-1 that are shown: those far from the diagonal say little.
const LAGS: usize = 32;

pub(super) fn html(report: &Report) -> Result<String, Error> {
    let title = escaped(&report.title);
    Ok(format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}: private training</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <header>\n<p class=\"eyebrow\">Private training with noise that cancels itself</p>\n\
         <h1>{title}</h1>\n{lead}{cards}</header>\n{figures}{results}{privacy}\
         <footer><p>Written by antinoise. Test accuracy is measured on examples that were not trained \
         on; they are not protected by the privacy statement.</p></footer>\n</main>\n</body>\n</html>\n",
        lead = lead(report),
        cards = cards(report),
        figures = figures(report)?,
        results = results(report),
        privacy = privacy(report),
    ))
}

/// What the comparison of the first run with the best of the others says, in one sentence.
fn lead(report: &Report) -> String {
    let tested = |run| Run::test_accuracy(run).map(|accuracy| (run, accuracy));
    let (first, rest) = report.runs.split_first().expect("a report has runs");
    let private = rest.iter().filter(|run| run.is_private());
    let best = private.filter_map(tested).max_by(|x, y| x.1.total_cmp(&y.1));
    let (Some((first, before)), Some((best, after))) = (tested(first), best) else {
        return String::new();
    };
    let points = 100.0 * (after - before);
    format!(
        "<p class=\"lead\">At {}, <strong>{}</strong> reaches {} test accuracy: {:.1} points {} than \
         {} with {}.</p>\n",
        budget(best),
        escaped(&best.mechanism),
        percent(after),
        points.abs(),
        if points < 0.0 { "less" } else { "more" },
        escaped(&first.mechanism),
        percent(before),
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

fn figures(report: &Report) -> Result<String, Error> {
    let curves = |points: fn(&Run) -> Vec<(f64, f64)>| report.runs.iter().map(points).collect();
    let by_step = |size, curves, y_format| Figure {
        size,
        x_label: "step",
        y_format,
        y_covers: (0.0, 0.0),
        marks: false,
        curves,
    };
    let by_lag = |curves| Figure {
        size: (400, 280),
        x_label: "steps below the diagonal",
        y_format: short,
        y_covers: (0.0, 1.0),
        marks: true,
        curves,
    };
    // Text that is scaled down with its figure could not be read on a small screen.
    let by_step = |curves: Vec<Vec<(f64, f64)>>, y_format| {
        [(720, 320), (360, 280)].map(|size| by_step(size, curves.clone(), y_format))
    };
    let accuracy =
        by_step(curves(|run| run.accuracies.iter().map(|&(step, y)| (step as f64, y)).collect()), |y| {
            format!("{:.0}%", 100.0 * y)
        });
    let error =
        by_step(curves(|run| (1..).map(f64::from).zip(run.prefix_errors.iter().copied()).collect()), short);
    let strategy = by_lag(curves(|run| lags(&run.strategy)));
    let inverse = by_lag(curves(|run| lags(&run.noise_correlating)));
    let (all, private) = (legend(report, |_| true), legend(report, Run::is_private));
    let [strategy, inverse] = [strategy, inverse].map(|figure| [figure]);
    let wide = section(&all, "Test accuracy", "Share of the test examples that are recognised.", &accuracy)?
        + &section(
            &private,
            "Error of the prefix sums",
            "Standard deviation, in each coordinate, of the noise that has built up in the sum of the mean \
         gradients by each step; plain SGD adds it to the parameters, times the learning rate.",
            &error,
        )?;
    let narrow = section(
        &private,
        "Diagonals of C",
        "The strategy: how much of each gradient is encoded in which later release.",
        &strategy,
    )? + &section(
        &private,
        "Diagonals of C<sup>-1</sup>",
        "The noise: what each step adds, and what later steps take back.",
        &inverse,
    )?;
    Ok(format!("{wide}<div class=\"pair\">\n{narrow}</div>\n"))
}

fn lags(column: &[f64]) -> Vec<(f64, f64)> {
    (0..LAGS).map(|lag| lag as f64).zip(column.iter().copied()).collect()
}

/// A figure under its title; of two, the first is for wide screens and the second for narrow ones.
fn section(legend: &str, title: &str, caption: &str, figures: &[Figure]) -> Result<String, Error> {
    let names: &[&str] = if figures.len() == 2 { &["chart wide", "chart narrow"] } else { &["chart"] };
    let mut pictures = String::new();
    for (figure, name) in figures.iter().zip(names) {
        // The figure scales with the page: its own size would not.
        let picture = figure.svg()?.map(|svg| {
            let label = format!("<svg role=\"img\" aria-label=\"{title}\" class=\"{name}\" ");
            svg.replacen("<svg ", &label, 1)
        });
        pictures += &picture.unwrap_or_default();
    }
    if pictures.is_empty() {
        pictures = "<p class=\"note\">Nothing was measured.</p>".into();
    }
    Ok(format!(
        "<section class=\"panel\">\n<h2>{title}</h2>\n<p class=\"caption\">{caption}</p>\n{legend}{pictures}\n\
         </section>\n"
    ))
}

/// The runs that a figure shows.
fn legend(report: &Report, shows: fn(&Run) -> bool) -> String {
    let entry = |(index, run): (usize, &Run)| format!("<li>{}{}</li>", chip(index), escaped(&run.mechanism));
    let entries: String = report.runs.iter().enumerate().filter(|(_, run)| shows(run)).map(entry).collect();
    format!("<ul class=\"legend\">{entries}</ul>\n")
}

/// A run a column: a screen that is narrow has room for a few.
fn results(report: &Report) -> String {
    type Cell = fn(&Run) -> String;
    let quantities: [(&str, Cell); 10] = [
        ("test accuracy", accuracy),
        ("&epsilon;", |run| if_private(run, epsilon(run))),
        ("&delta;", |run| if_private(run, format!("{:e}", run.delta))),
        ("noise multiplier &sigma;", |run| if_private(run, format!("{:.4}", run.noise_multiplier))),
        ("sensitivity", |run| if_private(run, format!("{:.4}", run.sensitivity))),
        ("error of the last prefix sum", |run| {
            run.prefix_errors.last().map_or_else(|| "&ndash;".into(), |&error| short(error))
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

/// The square in a run's colour beside its name.
fn chip(index: usize) -> String {
    format!("<span class=\"chip run-{}\"></span>", index % super::figure::SERIES.len())
}

/// The last accuracy, with its standard error where there are repeats.
fn accuracy(run: &Run) -> String {
    let error = run
        .standard_error
        .map_or_else(String::new, |error| format!(" <small>&plusmn;&thinsp;{:.1}</small>", 100.0 * error));
    run.test_accuracy().map_or_else(|| "not tested".into(), |accuracy| percent(accuracy) + &error)
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
    format!("{}", (run.epsilon * 1e4).ceil() / 1e4)
}

fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

/// Three digits, without the zeros that say nothing.
fn short(number: f64) -> String {
    if number == 0.0 {
        return "0".into();
    }
    let digits = (2 - number.abs().log10().floor() as i32).max(0) as usize;
    if digits > 6 {
        return format!("{number:.1e}");
    }
    let text = format!("{number:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            other => html.push(other),
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_text_is_escaped() {
        let cases = [(0.0, "0"), (1.0, "1"), (0.25, "0.25"), (-0.375, "-0.375"), (1234.5, "1234")];
        assert!(cases.iter().all(|&(number, text)| short(number) == text));
        assert_eq!((short(31.0), short(1e-9)), ("31".into(), "1.0e-9".into()));
        assert_eq!(escaped("a<b> & \"c\""), "a&lt;b&gt; &amp; &quot;c&quot;");
    }
}
