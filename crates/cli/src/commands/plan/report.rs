//! The candidates, the choice and what it is worth.

use std::fmt;

use antinoise_accounting::PrivacyStatement;
use antinoise_mechanism::Adjacency;
use antinoise_mechanism::optimize::{Objective, Status};
use antinoise_plan::{Accountant, Candidate, Choice, VerifiedPlan};
use serde::Serialize;

use crate::output;

/// What the command prints.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The last ones may be independent noise in batches that are formed otherwise, to compare with.
    pub candidates: Vec<Row>,
    pub chosen: usize,
    pub explanation: String,
    pub plan: VerifiedPlan,
    pub statement: PrivacyStatement,
    #[serde(skip)]
    pub adjacency: Adjacency,
    /// Without the dimension nothing is known of memory.
    #[serde(skip)]
    pub has_dim: bool,
}

#[derive(Debug, Serialize)]
pub struct Row {
    strategy: &'static str,
    bands: Option<usize>,
    order: Option<usize>,
    noise_multiplier: f64,
    sensitivity: f64,
    max_loss: f64,
    rms_loss: f64,
    relative_to_independent: f64,
    state_bytes: u64,
    status: Status,
    /// Whether sampling amplifies its privacy.
    amplified: bool,
    accountant: Accountant,
    #[serde(skip)]
    name: String,
}

impl Row {
    /// A candidate, by its strategy's name.
    pub fn new(candidate: &Candidate) -> Self {
        Self {
            strategy: candidate.spec.class.name(),
            bands: candidate.spec.bands,
            order: candidate.spec.order,
            noise_multiplier: candidate.noise_multiplier,
            sensitivity: candidate.loss.sensitivity.value,
            max_loss: candidate.max_loss,
            rms_loss: candidate.rms_loss,
            relative_to_independent: candidate.relative_to_independent,
            state_bytes: candidate.state_bytes,
            status: candidate.status,
            amplified: candidate.is_amplified(),
            accountant: candidate.schedule.scheme.accountant(),
            name: candidate.spec.to_string(),
        }
    }
}

impl Row {
    /// Independent noise in other batches, by the name under which it is known there.
    pub fn of_reference(candidate: &Candidate) -> Self {
        let how = if candidate.is_amplified() { "Poisson (DP-SGD)" } else { "cyclic" };
        Self { name: format!("{}, {how}", candidate.spec), ..Self::new(candidate) }
    }

    /// What the last column says: the choice, and a design that is not the best of its class for sure.
    fn mark(&self, chosen: bool) -> String {
        let open = (!self.status.is_final()).then_some("not converged");
        let chosen = chosen.then_some("<- chosen");
        chosen.into_iter().chain(open).collect::<Vec<_>>().join(", ")
    }
}

/// What the choice is worth, against the same noise in the same batches and against what could be run instead.
pub fn explanation(choice: &Choice, objective: Objective) -> String {
    let chosen = &choice.candidates[choice.chosen];
    let times =
        |other: &Candidate| format!("{:.2}", chosen.objective(objective) / other.objective(objective));
    let name = match objective {
        Objective::Max => "max",
        Objective::Rms => "RMS",
    };
    let independent = match choice.candidates[0].is_amplified() {
        true => "DP-SGD (independent noise, each example sampled anew at every step)",
        false => "independent noise in the same batches",
    };
    let worth = times(&choice.candidates[0]);
    let mut text = format!("{} has {worth} times the {name} loss of {independent}", chosen.spec);
    for reference in &choice.references {
        let instead = if reference.is_amplified() {
            "DP-SGD, where each example can be sampled anew at every step"
        } else {
            "independent noise without sampling, in batches that take turns"
        };
        text += &format!(", and {} times that of {instead}", times(reference));
    }
    let better = choice.references.iter().any(|r| r.objective(objective) < chosen.objective(objective));
    text + if better { ". Where that can be had, it is the better choice." } else { "." }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = [
            "strategy",
            "noise multiplier",
            "sensitivity",
            "max loss",
            "RMS loss",
            "vs independent",
            "noise state",
            "",
        ];
        let rows: Vec<Vec<String>> = self
            .candidates
            .iter()
            .enumerate()
            .map(|(i, row)| {
                vec![
                    row.name.clone(),
                    format!("{:.4}", row.noise_multiplier),
                    format!("{:.4}", row.sensitivity),
                    format!("{:.6}", row.max_loss),
                    format!("{:.6}", row.rms_loss),
                    format!("{:.3}", row.relative_to_independent),
                    if self.has_dim { output::bytes(row.state_bytes) } else { "-".into() },
                    row.mark(i == self.chosen),
                ]
            })
            .collect();
        writeln!(
            f,
            "{} adjacency. Losses are standard deviations of the averaged queries.\n",
            self.adjacency
        )?;
        writeln!(f, "{}", output::table(&header, &rows))?;
        writeln!(f, "{}\n", self.explanation.replace(", and", ",\nand").replace(". Where", ".\nWhere"))?;
        writeln!(f, "{}", self.statement)
    }
}
