use std::fmt;

use antinoise_input::rounded_to_4;
use serde::{Deserialize, Serialize};

use crate::Neighbours;

/// A privacy claim, with everything that a reader needs to verify it, as text, TOML or JSON.
///
/// The text opens with three sentences for decision makers: what is protected against whom, how strongly, and
/// on which conditions. A table of the details follows, then assumptions and what is not covered.
///
/// ```
/// use antinoise_accounting::{Neighbours, PrivacyStatement};
/// let statement = PrivacyStatement {
///     unit: "example".into(),
///     adjacency: Neighbours::ZeroOut,
///     schema: "at most 4 participations, at least 120 steps apart".into(),
///     sampler: "cyclic, shuffled once".into(),
///     mechanism: "Gaussian noise of standard deviation 3.2, correlated by a BLT of order 4".into(),
///     accountant: "Gaussian differential privacy, exact".into(),
///     epsilon: 4.0,
///     epsilon_lower: 3.9999,
///     delta: 1e-5,
///     units: Some(60_000),
///     assumptions: vec!["each example's gradient is clipped to norm 1".into()],
///     ..PrivacyStatement::default()
/// };
/// let text = statement.with_fact("key", "made by the operating system, destroyed after the run").to_string();
/// assert!(text.starts_with("The data of every single example are protected"));
/// assert!(text.contains("(4, 1e-5)-differential privacy of one example"));
/// assert!(text.contains("delta x N = 0.60"));
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrivacyStatement {
    /// The privacy unit: "example", "user" or "group of 3 users".
    pub unit: String,
    /// The adjacency: how neighbouring data sets differ.
    pub adjacency: Neighbours,
    /// The schema: the steps in which one unit may take part.
    pub schema: String,
    /// The sampler: how batches are chosen.
    pub sampler: String,
    /// The clipping and the noise.
    pub mechanism: String,
    /// The theorem or accountant by which the figures were computed.
    pub accountant: String,
    /// The epsilon that is claimed, never below the truth.
    pub epsilon: f64,
    /// Lower bound on every epsilon that this accountant can prove, which shows how tight the claim is.
    pub epsilon_lower: f64,
    /// The delta that is claimed; it includes the failure probability of Monte Carlo accountants.
    pub delta: f64,
    /// The probability that the bounds of a Monte Carlo accountant are wrong; `None` for other accountants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<f64>,
    /// N, with which delta is compared; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub units: Option<usize>,
    /// The observer against whom the claim holds, as a noun phrase: "anyone who sees the last model".
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub observer: String,
    /// What floating-point numbers may reveal, and how the claim covers it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arithmetic: String,
    /// Facts that were checked by computation and not proved.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub checked: String,
    /// Further assumptions.
    #[serde(default)]
    pub assumptions: Vec<String>,
    /// The limits of the claim: losses of privacy that the figures do not cover.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_covered: Vec<String>,
    /// Name and version of the program that computed the figures.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub software: String,
    /// Facts about the run itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<Fact>,
}

/// A fact about a run: what happened to its key, which data it used, when it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Fact {
    /// The subject, in a word or two.
    pub about: String,
    /// The fact.
    pub text: String,
}

impl PrivacyStatement {
    /// Adds one more fact about the run to the statement.
    #[must_use]
    pub fn with_fact(mut self, about: impl Into<String>, text: impl Into<String>) -> Self {
        self.facts.push(Fact { about: about.into(), text: text.into() });
        self
    }

    /// Delta in words, compared with the number of units; with a warning if it permits publishing one unit's
    /// data.
    fn delta_in_words(&self) -> String {
        let Self { delta, unit, .. } = self;
        let Some(units) = self.units else { return three_digits_up(*delta) };
        match delta_warning(*delta, units, unit) {
            Some(warning) => format!("{}. WARNING: {warning}", three_digits_up(*delta)),
            None => format!(
                "{}; {} for N = {units} units, and should be far below 1",
                three_digits_up(*delta),
                delta_times(*delta, units)
            ),
        }
    }

    /// Three sentences: what is protected against whom, how strongly, and on which conditions. A statement
    /// without assumptions has only the first two.
    ///
    /// ```
    /// use antinoise_accounting::PrivacyStatement;
    /// let statement = PrivacyStatement { unit: "example".into(), epsilon: 1.0, ..PrivacyStatement::default() };
    /// assert!(statement.summary()[0].starts_with("The data of every single example are protected"));
    /// ```
    pub fn summary(&self) -> Vec<String> {
        let Self { unit, adjacency, delta, observer, .. } = self;
        let against = if observer.is_empty() { String::new() } else { format!(" against {observer}") };
        let changed = match adjacency {
            Neighbours::ZeroOut => format!("whether that {unit} contributes or not"),
            Neighbours::ReplaceOne => format!("whatever the data of that {unit} are"),
            Neighbours::AddOrRemove => format!("whether that {unit} is in the data or not"),
        };
        let factor = self.epsilon.exp();
        let factor = if factor.is_finite() { format!(" = {}", two_digits_up(factor)) } else { String::new() };
        let mut sentences = vec![
            format!("The data of every single {unit} are protected{against}."),
            format!(
                "The guarantee is ({}, {})-differential privacy of one {unit} under {adjacency} adjacency: \
                 {changed}, the probability of any outcome changes by at most a factor of e^epsilon{factor}, plus delta.",
                three_digits_up(self.epsilon),
                three_digits_up(*delta)
            ),
        ];
        if let Some(first) = self.assumptions.first() {
            sentences
                .push(format!("It holds only if all its assumptions are true, above all this one: {first}."));
        }
        sentences
    }

    /// The summary in lines of a terminal's width, with a warning if delta is too large.
    pub(crate) fn short_text(&self) -> String {
        self.sentences().iter().map(|sentence| filled(sentence, "") + "\n").collect()
    }

    /// The summary, with a warning where delta is too large, and the number of assumptions.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let mut sentences = self.summary();
        if !self.assumptions.is_empty() {
            let count = self.assumptions.len();
            sentences.push(format!(
                "The full statement lists all assumptions ({count}), and what is not covered."
            ));
        }
        let warning = self.units.and_then(|units| delta_warning(self.delta, units, &self.unit));
        sentences.extend(warning.map(|warning| format!("WARNING: {warning}.")));
        sentences
    }

    /// The rows of the table of details, each with its title and its text.
    ///
    /// ```
    /// use antinoise_accounting::PrivacyStatement;
    /// let statement = PrivacyStatement { unit: "example".into(), epsilon: 1.0, ..PrivacyStatement::default() };
    /// assert_eq!(statement.details()[0], ("Privacy unit", "example".into()));
    /// ```
    pub fn details(&self) -> Vec<(&'static str, String)> {
        let (upper, lower) = (digits(self.epsilon, f64::ceil), digits(self.epsilon_lower, f64::floor));
        let by_simulation = self.failure.map_or(String::new(), |failure| {
            format!(
                "; a statistical bound, wrong with probability at most {failure:e}, which is included in delta"
            )
        });
        let rows = [
            ("Privacy unit", self.unit.clone()),
            ("Adjacency", self.adjacency.to_string()),
            ("Epsilon", format!("{upper}; this accountant cannot state less than {lower} at this delta")),
            ("Delta", self.delta_in_words()),
            ("Participation", self.schema.clone()),
            ("Batches", self.sampler.clone()),
            ("Mechanism", self.mechanism.clone()),
            ("Accountant", format!("{}{by_simulation}", self.accountant)),
            ("Arithmetic", self.arithmetic.clone()),
            ("Not proved", self.checked.clone()),
            ("Software", self.software.clone()),
        ];
        rows.into_iter().filter(|(_, text)| !text.is_empty()).collect()
    }
}

/// Warning against a delta of 1/N or more, which would permit publishing the data of one of the `units`
/// units; `None` for a smaller delta. `unit` is the word for a unit.
///
/// ```
/// use antinoise_accounting::delta_warning;
/// assert_eq!(delta_warning(1e-5, 60_000, "example"), None);
/// assert!(delta_warning(1e-3, 60_000, "example").unwrap().starts_with("delta x N = 60."));
/// ```
pub fn delta_warning(delta: f64, units: usize, unit: &str) -> Option<String> {
    (delta * units as f64 >= 1.0).then(|| {
        format!(
            "{}. At this delta it would be allowed to publish the data of any {unit} picked at random; take a delta far \
             below 1/N",
            delta_times(delta, units)
        )
    })
}

fn delta_times(delta: f64, units: usize) -> String {
    format!("delta x N = {}", two_digits_up(delta * units as f64))
}

/// `x` rounded to four decimals by `round`, or with all its digits if it is very small or large.
fn digits(x: f64, round: fn(f64) -> f64) -> String {
    if (0.01..1e9).contains(&x) { format!("{:.4}", rounded_to_4(x, round)) } else { format!("{x:e}") }
}

/// `x` rounded up to three significant digits, without zeros at the end. The text is never below `x`.
///
/// ```
/// use antinoise_accounting::three_digits_up;
/// assert_eq!(three_digits_up(2.9997), "3");
/// assert_eq!(three_digits_up(2.1901), "2.2");
/// assert_eq!(three_digits_up(1.0 / 60000.0), "1.67e-5");
/// ```
pub fn three_digits_up(x: f64) -> String {
    if !(0.01..1e9).contains(&x) {
        return three_digits_of_small(x);
    }
    let decimals = 2 - x.log10().floor() as i32;
    let up = if decimals >= 0 {
        (x * 10f64.powi(decimals)).ceil() / 10f64.powi(decimals)
    } else {
        (x / 10f64.powi(-decimals)).ceil() * 10f64.powi(-decimals)
    };
    let text = format!("{up:.*}", decimals.max(0) as usize);
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    match text.parse::<f64>() {
        Ok(stated) if stated >= x => text.into(),
        _ => x.to_string(),
    }
}

/// As [`three_digits_up`], with an exponent.
fn three_digits_of_small(x: f64) -> String {
    let text = format!("{x:.2e}");
    let (Some((digits, exponent)), true) = (text.split_once('e'), x > 0.0) else { return format!("{x:e}") };
    let whole: u32 = digits.replace('.', "").parse().expect("three digits");
    let exponent: i32 = exponent.parse().expect("a whole exponent");
    let value = |whole: u32| format!("{whole}e{}", exponent - 2).parse::<f64>().expect("a number");
    let up = if value(whole) >= x { value(whole) } else { value(whole + 1) };
    format!("{up:e}")
}

/// `x` rounded up to two digits.
fn two_digits_up(x: f64) -> String {
    let magnitude = x.log10().floor();
    let unit = 10f64.powf(magnitude - 1.0);
    let up = (x / unit * (1.0 - 1e-12)).ceil() * unit;
    if (1e-4..1000.0).contains(&x) {
        format!("{up:.0$}", (1.0 - magnitude).max(0.0) as usize)
    } else {
        format!("{up:.1e}")
    }
}

/// The number of columns to which text is filled.
const WIDTH: usize = 100;

/// The column at which a row's text begins, after its title.
const COLUMN: usize = 15;

/// The text of a row; its further lines are indented to the column of its first.
fn row(text: &str) -> String {
    filled_from(COLUMN, text, &" ".repeat(COLUMN))
}

/// `text` in lines of at most [`WIDTH`]; lines after the first are indented.
fn filled(text: &str, indent: &str) -> String {
    filled_from(0, text, indent)
}

/// As [`filled`], where the first line begins at column `start`.
fn filled_from(start: usize, text: &str, indent: &str) -> String {
    let (mut out, mut column) = (String::new(), start);
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > start && column + 1 + length > WIDTH {
            out.push('\n');
            out.push_str(indent);
            column = indent.len();
        } else if column > start {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out
}

/// Lines of a terminal's width; with `{:#}`, one line for each paragraph, row and item.
impl fmt::Display for PrivacyStatement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = f.alternate();
        let filled = |text: &str, indent| if whole { text.to_string() } else { filled(text, indent) };
        self.summary().iter().try_for_each(|sentence| writeln!(f, "{}", filled(sentence, "")))?;
        writeln!(f)?;
        for (title, text) in self.details() {
            match whole {
                true => writeln!(f, "{title}: {text}.")?,
                false => writeln!(f, "{title:<COLUMN$}{}", row(&text))?,
            }
        }
        for (title, items) in [("Assumptions", &self.assumptions), ("Not covered", &self.not_covered)] {
            if !items.is_empty() {
                writeln!(f, "\n{title}:")?;
            }
            items.iter().try_for_each(|item| writeln!(f, "{}", filled(&format!("- {item}."), "  ")))?;
        }
        if !self.facts.is_empty() {
            writeln!(f, "\nThis run:")?;
        }
        for Fact { about, text } in &self.facts {
            writeln!(f, "{}", filled(&format!("- {about}: {text}."), "  "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{three_digits_up, two_digits_up};

    #[test]
    fn a_stated_epsilon_is_short_and_never_below_the_truth() {
        let cases =
            [(2.9997, "3"), (3.0, "3"), (0.5, "0.5"), (3.9912, "4"), (123.4, "124"), (1234.0, "1240")];
        for (epsilon, text) in cases {
            assert_eq!(three_digits_up(epsilon), text);
        }
        assert_eq!((&three_digits_up(4.0f64.next_up())[..], &three_digits_up(1e-3)[..]), ("4.01", "1e-3"));
        for (delta, text) in
            [(1.0 / 60_000.0, "1.67e-5"), (9.991e-7, "1e-6"), (1e-5, "1e-5"), (5.004e-3, "5.01e-3")]
        {
            assert_eq!(three_digits_up(delta), text);
        }
        let mut x = 1.010_123e-12;
        while x < 1e12 {
            let stated: f64 = three_digits_up(x).parse().unwrap();
            assert!(stated >= x && stated <= 1.0101 * x, "{x}");
            x *= 1.037;
        }
        assert_eq!([0.0, f64::INFINITY].map(three_digits_up), ["0e0", "inf"]);
    }

    #[test]
    fn two_digits_are_never_below_the_number() {
        for (x, text) in [(0.6, "0.60"), (2.71, "2.8"), (54.6, "55"), (1e-5, "1.0e-5"), (1234.0, "1.3e3")] {
            assert_eq!(two_digits_up(x), text);
        }
        let mut x = 1.03e-7;
        while x < 1e7 {
            let stated: f64 = two_digits_up(x).parse().unwrap();
            assert!(stated >= x && stated <= 1.100_1 * x, "{x}: {stated}");
            x *= 1.073;
        }
    }
}
