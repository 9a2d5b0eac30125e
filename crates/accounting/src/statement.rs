use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Adjacency;

/// A privacy claim with everything a reader needs to believe it, as text, TOML or JSON.
///
/// ```
/// use antinoise_accounting::{Adjacency, PrivacyStatement};
/// let statement = PrivacyStatement {
///     unit: "example".into(),
///     adjacency: Adjacency::ZeroOut,
///     schema: "at most 4 participations, at least 120 steps apart".into(),
///     sampler: "cyclic, shuffled once".into(),
///     mechanism: "Gaussian noise of standard deviation 3.2, correlated by a BLT of order 4".into(),
///     accountant: "Gaussian differential privacy, exact".into(),
///     epsilon: 4.0,
///     epsilon_lower: 3.9999,
///     delta: 1e-5,
///     confidence: None,
///     assumptions: vec!["each example's gradient is clipped to norm 1".into()],
/// };
/// assert!(statement.to_string().starts_with("(4.0000, 1e-5)-differential privacy"));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrivacyStatement {
    /// What is protected: an example, a user, a group of so many.
    pub unit: String,
    /// How neighbouring data sets differ.
    pub adjacency: Adjacency,
    /// When one unit may take part.
    pub schema: String,
    /// How batches are chosen.
    pub sampler: String,
    /// What is clipped and what noise is added.
    pub mechanism: String,
    /// By which theorem or accountant the figures follow.
    pub accountant: String,
    /// The epsilon that is claimed, never below the truth.
    pub epsilon: f64,
    /// No epsilon below it follows by this accountant: how tight the claim is.
    pub epsilon_lower: f64,
    /// The delta that is claimed; it contains the failure probability of statistical accountants.
    pub delta: f64,
    /// The confidence of a statistical accountant; `None` when the claim is proved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// What has to hold besides.
    pub assumptions: Vec<String>,
}

/// Four decimals, rounded the safe way; all of a small number.
fn digits(x: f64, round: fn(f64) -> f64) -> String {
    if (0.01..1e9).contains(&x) { format!("{:.4}", round(x * 1e4) / 1e4) } else { format!("{x:e}") }
}

impl fmt::Display for PrivacyStatement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { unit, adjacency, schema, sampler, mechanism, accountant, epsilon, delta, .. } = self;
        let (upper, lower) = (digits(*epsilon, f64::ceil), digits(self.epsilon_lower, f64::floor));
        writeln!(f, "({upper}, {delta:e})-differential privacy of one {unit} under {adjacency} adjacency.")?;
        writeln!(f, "This accountant cannot state an epsilon below {lower} at this delta.")?;
        writeln!(f, "Participation: {schema}. Batches: {sampler}.")?;
        writeln!(f, "Mechanism: {mechanism}.")?;
        write!(f, "Accountant: {accountant}")?;
        match self.confidence {
            Some(confidence) => writeln!(
                f,
                "; statistical: it errs with probability {:e} at most, which delta contains.",
                1.0 - confidence
            )?,
            None => writeln!(f, ".")?,
        }
        self.assumptions.iter().try_for_each(|assumption| writeln!(f, "Assumed: {assumption}."))
    }
}
