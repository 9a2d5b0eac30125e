//! The page of a release.

use antinoise_accounting::three_digits_up;
use antinoise_chart::page::{Frame, WHOLE, details, document, escaped, panel, section, sentences};
use antinoise_release::{Published, Status, quantity};

use super::figure;
use super::publish::written;
use crate::failure::{Failure, Result};

/// The page of all published figures.
pub fn html(name: &str, status: &Status, published: &[Published]) -> Result<String> {
    let of = match status.settings.segments {
        None => format!("{} of {}", status.published, quantity(status.settings.periods as u64, "period")),
        Some(_) => format!("{}, of a release without an end,", quantity(status.published as u64, "period")),
    };
    let are = if status.published == 1 { "is" } else { "are" };
    let lead = format!(
        "<p class=\"lead\">{of} {are} published. All periods together have (&epsilon;,&thinsp;&delta;) = \
         ({},&thinsp;{}) for one {}.</p>\n",
        three_digits_up(status.epsilon()),
        three_digits_up(status.settings.delta),
        status.settings.unit,
    );
    let (mut body, settings) = (String::new(), &status.settings);
    let set_in = figure::set_in(published).map_or(String::new(), |period| {
        let shown = " From the dotted line on, there are users at their bound beyond doubt: later rows of such users are \
                     in no figure";
        format!("{shown} ({period}).")
    });
    for (query, _) in &settings.queries {
        let (name, about) = (query.published_name(), settings.about(query));
        let rows: Vec<&Published> = published.iter().filter(|row| row.query == name).collect();
        let (shown, all) = (figure::shown(&rows).len(), settings.keys.len());
        let is_part = (1..all).contains(&shown) && !query.is_of_users();
        let of = if is_part { format!(" The {shown} largest of {all} keys.") } else { String::new() };
        let cells = figure::ends(&rows).len() / all;
        let of_cells = match query.attributes() {
            [_, ..] if cells > figure::SHOWN_CELLS => {
                format!(" The {} largest of {cells} cells.", figure::SHOWN_CELLS)
            }
            _ => String::new(),
        };
        let set_in = if query.is_of_users() { "" } else { &set_in };
        let hidden = if query.is_of_users() && rows.iter().any(|row| row.lower.value() <= 0.0) {
            " An interval that contains 0 shows no such user beyond the noise; its upper end bounds their number."
        } else {
            ""
        };
        let caption =
            format!("Published figures with their 95% intervals, {about}.{of}{of_cells}{set_in}{hidden}");
        let (title, caption) = (escaped(figure::title(&name)), escaped(&caption));
        body += &if published.is_empty() {
            panel(&title, &caption, "<p class=\"note\">No period is published yet.</p>")
        } else {
            section(&title, &caption, WHOLE, figure::chart(&name, published)).map_err(Failure::other)?
        };
    }
    body += &table(published);
    let statement = status.statement();
    body += &format!(
        "<section class=\"panel\">\n<h2>What is protected</h2>\n<div class=\"statement\">{}{}</div>\n</section>\n",
        sentences(&statement.summary()),
        details("The whole statement", &statement.details(), &statement.lists())
    );
    let frame = Frame {
        kind: "continual release",
        eyebrow: "Continual release with correlated noise",
        title: name,
        footer: &format!(
            "Written by antinoise. Each interval by itself holds the true figure {}{} in 95% of releases or more; all of \
             them together hold less often.",
            settings.rows_counted(),
            if settings.queries.iter().any(|(query, _)| query.is_of_users()) {
                ", or of all users where users are counted,"
            } else {
                ""
            }
        ),
    };
    Ok(document(&frame, &lead, &body))
}

/// The table of the figures after the last period; queries are named if there are several, or if one has
/// buckets.
fn table(published: &[Published]) -> String {
    let Some(last) = published.last() else { return String::new() };
    let ends: Vec<&Published> = published.iter().filter(|row| row.period == last.period).collect();
    let has_query = ends.iter().any(|row| row.query != last.query || !row.bucket.is_empty());
    let named = |text: &str| if has_query { format!("<td>{}</td>", escaped(text)) } else { String::new() };
    let row = |row: &&Published| {
        format!(
            "<tr><th scope=\"row\">{}</th>{}<td>{}</td><td>{} to {}</td></tr>\n",
            escaped(if row.key.is_empty() { "all keys" } else { &row.key }),
            named(format!("{} {}", figure::title(&row.query), row.bucket).trim()),
            written(row.value),
            written(row.lower),
            written(row.upper),
        )
    };
    let rows: String = ends.iter().map(row).collect();
    let query = if has_query { "<th scope=\"col\">query</th>" } else { "" };
    format!(
        "<section class=\"panel\">\n<h2>After period {}</h2>\n<table>\n<thead><tr><th scope=\"col\">key</th>{query}\
         <th scope=\"col\">value</th><th scope=\"col\">95% interval</th></tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table>\n</section>\n",
        escaped(&last.period.to_string())
    )
}
