use std::fmt;

use antinoise_input::four_decimals;
use serde::{Deserialize, Serialize};

use crate::Neighbours;

/// A privacy claim with everything a reader needs to believe it, as text, TOML or JSON.
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
/// assert!(text.starts_with("(4.0000, 1e-5)-differential privacy"));
/// assert!(text.contains("delta x N = 0.60"));
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrivacyStatement {
    /// The privacy unit: an example, a user, a group of so many.
    pub unit: String,
    /// How neighbouring data sets differ.
    pub adjacency: Neighbours,
    /// When one unit may take part.
    pub schema: String,
    /// How batches are chosen.
    pub sampler: String,
    /// The clipping and the noise.
    pub mechanism: String,
    /// By which theorem or accountant the figures follow.
    pub accountant: String,
    /// The epsilon that is claimed, never below the truth.
    pub epsilon: f64,
    /// No epsilon below it follows by this accountant: how tight the claim is.
    pub epsilon_lower: f64,
    /// The delta that is claimed; it contains the failure probability of statistical accountants.
    pub delta: f64,
    /// The probability that a statistical accountant errs; `None` when the claim is proved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<f64>,
    /// N, with which delta is compared; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub units: Option<usize>,
    /// The observer that the claim holds against.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub observer: String,
    /// What floating-point numbers may reveal, and how the claim covers it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arithmetic: String,
    /// What was checked by computation and not proved.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub checked: String,
    /// Further assumptions.
    #[serde(default)]
    pub assumptions: Vec<String>,
    /// What the figures do not cover.
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
pub struct Fact {
    /// The subject, in a word or two.
    pub about: String,
    /// The fact.
    pub text: String,
}

impl PrivacyStatement {
    /// The same statement with one more fact about the run.
    #[must_use]
    pub fn with_fact(mut self, about: impl Into<String>, text: impl Into<String>) -> Self {
        self.facts.push(Fact { about: about.into(), text: text.into() });
        self
    }

    /// How delta compares with the number of units; a warning where it permits publishing one unit's data.
    fn delta_in_words(&self) -> Option<String> {
        let units = self.units?;
        Some(match delta_warning(self.delta, units, &self.unit) {
            Some(warning) => format!("WARNING: {warning}"),
            None => format!("{}, which should be far below 1", delta_times(self.delta, units)),
        })
    }
}

/// What is wrong with a delta of 1/N or more, for `units` of which one is called `unit`: it permits to publish one's data.
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

/// Four decimals, rounded the safe way; all of a small number.
fn digits(x: f64, round: fn(f64) -> f64) -> String {
    if (0.01..1e9).contains(&x) { format!("{:.4}", four_decimals(x, round)) } else { format!("{x:e}") }
}

/// Two digits, not below the number.
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

/// The width that text is filled to.
const WIDTH: usize = 100;

/// `text` in lines of at most [`WIDTH`], those after the first indented.
fn filled(text: &str, indent: &str) -> String {
    let (mut out, mut column) = (String::new(), 0);
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > WIDTH {
            out.push('\n');
            out.push_str(indent);
            column = indent.len();
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out
}

/// In lines of a terminal's width; with `{:#}`, a paragraph or an item a line.
impl fmt::Display for PrivacyStatement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { unit, adjacency, delta, .. } = self;
        let whole = f.alternate();
        let filled = |text: &str, indent| if whole { text.to_string() } else { filled(text, indent) };
        let (upper, lower) = (digits(self.epsilon, f64::ceil), digits(self.epsilon_lower, f64::floor));
        writeln!(f, "({upper}, {delta:e})-differential privacy of one {unit} under {adjacency} adjacency.")?;
        let tight = format!("This accountant cannot state an epsilon below {lower} at this delta.");
        let delta = self.delta_in_words().map(|text| format!(" {text}.")).unwrap_or_default();
        writeln!(f, "{}\n", filled(&format!("{tight}{delta}"), ""))?;
        let statistical = self.failure.map_or(String::new(), |failure| {
            format!("; statistical: it errs with probability {failure:e} at most, which delta contains")
        });
        let paragraphs = [
            ("Participation", &self.schema),
            ("Batches", &self.sampler),
            ("Observer", &self.observer),
            ("Mechanism", &self.mechanism),
            ("Accountant", &format!("{}{statistical}", self.accountant)),
            ("Arithmetic", &self.arithmetic),
            ("Checked, not proved", &self.checked),
        ];
        for (title, text) in paragraphs.iter().filter(|(_, text)| !text.is_empty()) {
            writeln!(f, "{}", filled(&format!("{title}: {text}."), "  "))?;
        }
        for (title, items) in [("Assumed", &self.assumptions), ("Not covered", &self.not_covered)] {
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
        if self.software.is_empty() { Ok(()) } else { writeln!(f, "\nComputed by {}.", self.software) }
    }
}
