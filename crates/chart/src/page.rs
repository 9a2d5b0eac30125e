//! The page around figures: one HTML file, which fetches nothing.
//!
//! ```
//! use antinoise_chart::page::{Frame, WHOLE, document, section};
//! use antinoise_chart::{Axis, Chart, LineStyle, Series};
//! let chart = Chart {
//!     title: String::new(),
//!     x: Axis::linear("training step").whole(),
//!     y: Axis::linear("test accuracy (percent)"),
//!     series: vec![Series::new("identity", LineStyle::Line, [(10.0, 61.5), (20.0, 74.0)])],
//! };
//! let frame = Frame { kind: "training", eyebrow: "Training", title: "a < b", footer: "The end." };
//! let page = document(&frame, "", &section("Test accuracy", "Of one run.", WHOLE, chart)?);
//! assert!(page.contains("<h1>a &lt; b</h1>") && page.matches("<svg").count() == 2);
//! # Ok::<(), antinoise_chart::Error>(())
//! ```

use crate::chart::Chart;
use crate::color::theme;
use crate::error::Result;
use crate::figure::Figure;

const STYLE: &str = include_str!("page.css");

/// The texts in the head and the foot of a page, as HTML except for the title.
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

/// A figure under its title and a caption, both HTML.
///
/// # Errors
/// If the drawing library refuses to draw.
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
            pictures += &figure.svg()?.replacen("<svg ", &opened, 1);
        }
    }
    Ok(panel(title, caption, &pictures))
}

/// A part of the page under its title and a caption; all are HTML.
pub fn panel(title: &str, caption: &str, content: &str) -> String {
    format!(
        "<section class=\"panel\">\n<h2>{title}</h2>\n<p class=\"caption\">{caption}</p>\n{content}\n</section>\n"
    )
}

/// Sentences as text.
pub fn sentences(sentences: &[String]) -> String {
    sentences.iter().map(|sentence| format!("<p>{}</p>", escaped(sentence))).collect()
}

/// A table that folds out under `title`, an HTML text; each row and each list at its end has a title.
pub fn details(
    title: &str,
    rows: &[(&'static str, String)],
    lists: &[(&'static str, Vec<String>)],
) -> String {
    let row = |title: &str, cell: &str| format!("<tr><th scope=\"row\">{title}</th><td>{cell}</td></tr>\n");
    let list = |items: &[String]| {
        let items: String = items.iter().map(|item| format!("<li>{}.</li>", escaped(item))).collect();
        format!("<ul>{items}</ul>")
    };
    let rows: String = rows.iter().map(|(title, text)| row(title, &escaped(text))).collect();
    let lists: String = lists.iter().map(|(title, items)| row(title, &list(items))).collect();
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
