//! The page around figures.

use antinoise_accounting::PrivacyStatement;
use antinoise_chart::{Chart, Figure, theme};

use crate::failure::{Failure, Result};

const STYLE: &str = include_str!("page.css");

/// Texts in the head and the foot of a page.
pub struct Frame<'a> {
    /// End of the window title.
    pub kind: &'a str,
    /// Line above the page title.
    pub eyebrow: &'a str,
    /// Page title.
    pub title: &'a str,
    /// Text at the end of the page.
    pub footer: &'a str,
}

/// Returns the HTML page: title, `head`, `body` and footer.
pub fn document(frame: &Frame<'_>, head: &str, body: &str) -> String {
    let (title, theme) = (escaped(frame.title), theme());
    let Frame { kind, eyebrow, footer, .. } = frame;
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}: {kind}</title>\n<style>\n{theme}{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <header>\n<p class=\"eyebrow\">{eyebrow}</p>\n\
         <h1>{title}</h1>\n{head}</header>\n{body}\
         <footer><p>{footer}</p></footer>\n</main>\n</body>\n</html>\n",
    )
}

/// Width of a figure and height of its plot area, in pixels of the page: first for wide screens, then for
/// narrow ones, where text that is scaled down with its figure could not be read.
pub type Sizes = [(u32, u32); 2];
/// Sizes of a figure that is as wide as the page.
pub const WHOLE: Sizes = [(720, 240), (340, 220)];

/// A figure under its title.
pub fn section(title: &str, caption: &str, sizes: Sizes, chart: Chart) -> Result<String> {
    let mut pictures = String::new();
    if chart.is_empty() {
        pictures += "<p class=\"note\">Nothing was measured.</p>";
    } else {
        for ((width, plot_height), class) in sizes.into_iter().zip(["wide", "narrow"]) {
            let figure =
                Figure { width, plot_height, background: false, rows: vec![vec![chart.clone().into()]] };
            let label = title.replace("<sup>", "^").replace("</sup>", "");
            let opened = format!("<svg role=\"img\" aria-label=\"{label}\" class=\"chart {class}\" ");
            pictures += &figure.svg().map_err(Failure::other)?.replacen("<svg ", &opened, 1);
        }
    }
    Ok(panel(title, caption, &pictures))
}

/// A part of the page under its title.
pub fn panel(title: &str, caption: &str, content: &str) -> String {
    format!(
        "<section class=\"panel\">\n<h2>{title}</h2>\n<p class=\"caption\">{caption}</p>\n{content}\n</section>\n"
    )
}

/// A privacy statement: its three sentences, and a table that folds out.
pub fn privacy(statement: &PrivacyStatement) -> String {
    sentences(statement) + &details(statement, "The whole statement")
}

/// The three sentences of a privacy statement.
pub fn sentences(statement: &PrivacyStatement) -> String {
    statement.summary().iter().map(|sentence| format!("<p>{}</p>", escaped(sentence))).collect()
}

/// The table of a privacy statement, which folds out under `title`.
pub fn details(statement: &PrivacyStatement, title: &str) -> String {
    let row = |(title, text): (&str, String)| {
        format!("<tr><th scope=\"row\">{title}</th><td>{}</td></tr>\n", escaped(&text))
    };
    let facts = statement.facts.iter().map(|fact| format!("{}: {}", fact.about, fact.text)).collect();
    let lists: [(&str, Vec<String>); 3] = [
        ("Assumptions", statement.assumptions.clone()),
        ("Not covered", statement.not_covered.clone()),
        ("This run", facts),
    ];
    let list = |(title, items): (&str, Vec<String>)| {
        let items: String = items.iter().map(|item| format!("<li>{}.</li>", escaped(item))).collect();
        format!("<tr><th scope=\"row\">{title}</th><td><ul>{items}</ul></td></tr>\n")
    };
    let rows: String = statement.details().into_iter().map(row).collect();
    let lists: String = lists.into_iter().filter(|(_, items)| !items.is_empty()).map(list).collect();
    format!(
        "<details><summary>{title}</summary>\n<table class=\"claim\"><tbody>\n{rows}{lists}</tbody></table>\n\
         </details>"
    )
}

/// `text` escaped for HTML.
pub fn escaped(text: &str) -> String {
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
    fn text_is_escaped() {
        assert_eq!(escaped("a<b> & \"c\""), "a&lt;b&gt; &amp; &quot;c&quot;");
    }
}
