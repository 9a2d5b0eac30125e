//! Privacy statements in Markdown and LaTeX.

use crate::PrivacyStatement;

/// Markup of a privacy statement.
///
/// ```
/// use antinoise_accounting::{Markup, PrivacyStatement};
/// let statement = PrivacyStatement { unit: "example".into(), epsilon: 1.0, delta: 1e-5, ..Default::default() };
/// assert!(statement.marked_up(Markup::Latex, true).contains(r"\item[Privacy unit] example"));
/// assert!(statement.marked_up(Markup::Markdown, true).contains("| Privacy unit | example |"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Markup {
    /// Plain text, in lines of a terminal's width.
    Text,
    /// GitHub's Markdown.
    Markdown,
    /// LaTeX without packages, for the body of a document.
    Latex,
}

impl Markup {
    /// `text` with the special characters of this markup escaped, also for the cells of a table.
    ///
    /// ```
    /// use antinoise_accounting::Markup;
    /// assert_eq!(Markup::Latex.escaped("5% of a_b"), r"5\% of a\_b");
    /// assert_eq!(Markup::Markdown.escaped("a|b"), r"a\|b");
    /// assert_eq!(Markup::Text.escaped("a|b"), "a|b");
    /// ```
    pub fn escaped(self, text: &str) -> String {
        match self {
            Self::Text => text.into(),
            Self::Markdown => marked_down(text),
            Self::Latex => in_latex(text),
        }
    }
}

impl PrivacyStatement {
    /// The statement in `markup`: its summary of three sentences and, if it is `long`, its table,
    /// assumptions, limits and facts.
    pub fn marked_up(&self, markup: Markup, long: bool) -> String {
        match markup {
            Markup::Text if long => self.to_string(),
            Markup::Text => self.short_text(),
            Markup::Markdown => self.markdown(long),
            Markup::Latex => self.latex(long),
        }
    }

    /// The lists that are not empty, each with its title: assumptions, limits and facts.
    pub fn lists(&self) -> Vec<(&'static str, Vec<String>)> {
        let facts = self.facts.iter().map(|fact| format!("{}: {}", fact.about, fact.text)).collect();
        let lists = [
            ("Assumptions", self.assumptions.clone()),
            ("Not covered", self.not_covered.clone()),
            ("This run", facts),
        ];
        lists.into_iter().filter(|(_, items)| !items.is_empty()).collect()
    }

    fn markdown(&self, long: bool) -> String {
        if !long {
            return format!("{}\n", marked_down(&self.sentences().join(" ")));
        }
        let mut text = format!("{}\n", marked_down(&self.summary().join(" ")));
        text += "\n| | |\n|---|---|\n";
        for (title, row) in self.details() {
            text += &format!("| {title} | {} |\n", marked_down(&row));
        }
        for (title, items) in self.lists() {
            let items: String = items.iter().map(|item| format!("- {}.\n", marked_down(item))).collect();
            text += &format!("\n**{title}**\n\n{items}");
        }
        text
    }

    fn latex(&self, long: bool) -> String {
        if !long {
            return format!("\\paragraph{{Privacy.}} {}\n", in_latex(&self.sentences().join(" ")));
        }
        let mut text = format!("\\paragraph{{Privacy.}} {}\n", in_latex(&self.summary().join(" ")));
        let rows: String = self
            .details()
            .iter()
            .map(|(title, row)| format!("\\item[{title}] {}.\n", in_latex(row)))
            .collect();
        text += &format!("\\begin{{description}}\n{rows}\\end{{description}}\n");
        for (title, items) in self.lists() {
            let items: String =
                items.iter().map(|item| format!("\\item{{}} {}.\n", in_latex(item))).collect();
            text += &format!("\\paragraph{{{title}.}}\n\\begin{{itemize}}\n{items}\\end{{itemize}}\n");
        }
        text
    }
}

/// `text` escaped for Markdown, also inside a cell of a table.
fn marked_down(text: &str) -> String {
    let escaped = |c: char| if "\\`*_[]<>|#~$&".contains(c) { format!("\\{c}") } else { c.into() };
    text.chars().map(escaped).collect()
}

/// `text` escaped for LaTeX.
fn in_latex(text: &str) -> String {
    let escaped = |c: char| match c {
        '\\' => "\\textbackslash{}".into(),
        '^' => "\\textasciicircum{}".into(),
        '~' => "\\textasciitilde{}".into(),
        '&' | '%' | '$' | '#' | '_' | '{' | '}' => format!("\\{c}"),
        '<' | '>' | '|' => format!("${c}$"),
        c => c.into(),
    };
    text.chars().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_survives_its_markup() {
        assert_eq!(
            in_latex("2^-12 & a_b 5% {x} <y>"),
            "2\\textasciicircum{}-12 \\& a\\_b 5\\% \\{x\\} $<$y$>$"
        );
        assert_eq!(marked_down("a|b *c* <d> ~e $f &g"), "a\\|b \\*c\\* \\<d\\> \\~e \\$f \\&g");
    }

    #[test]
    fn a_short_form_is_the_summary_and_a_long_one_has_every_row_and_item() {
        let statement = PrivacyStatement {
            unit: "user".into(),
            epsilon: 2.9997,
            delta: 1e-6,
            assumptions: vec!["[1] the key stays secret".into()],
            ..PrivacyStatement::default()
        }
        .with_fact("key", "destroyed");
        for markup in [Markup::Text, Markup::Markdown, Markup::Latex] {
            let (short, long) = (statement.marked_up(markup, false), statement.marked_up(markup, true));
            assert!(short.contains("(3, 1e-6)") && !short.contains("Privacy unit"), "{short}");
            // After \item, LaTeX takes a bracket for the label.
            assert!(markup != Markup::Latex || long.contains("\\item{} [1] the key"), "{long}");
            for part in ["(3, 1e-6)", "Privacy unit", "Assumptions", "This run", "key: destroyed."] {
                assert!(long.contains(part), "{part}\n{long}");
            }
        }
    }
}
