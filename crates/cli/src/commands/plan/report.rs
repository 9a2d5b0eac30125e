//! The candidates, the choice and its gain.

use std::fmt;

use antinoise_accounting::{Markup, PrivacyStatement};
use antinoise_mechanism::Adjacency;
use antinoise_mechanism::design::{Objective, Status};
use antinoise_plan::{
    Accountant, ByExamples, Candidate, Choice, Rejected, Request, VerifiedPlan, by_examples_in_words,
};
use serde::Serialize;

use super::explanation::explanation;
use super::owned::OwnedBatches;
use crate::failure::Result;
use crate::{output, plot};

/// Output of `antinoise plan`.
#[derive(Debug, Serialize)]
pub struct PlanChoice {
    /// Candidates, independent noise first. Baselines may follow at the end: independent noise with another
    /// sampler.
    pub candidates: Vec<Row>,
    pub chosen: usize,
    pub explanation: String,
    /// Mechanisms that were excluded for reasons other than their loss.
    pub left_out: Vec<LeftOut>,
    pub plan: VerifiedPlan,
    pub statement: PrivacyStatement,
    /// The epsilon of users with several examples, if requested.
    #[serde(flatten)]
    pub users: Option<EpsilonOfUser>,
    /// The batches of examples with several owners, if these are given.
    #[serde(flatten)]
    pub owned: Option<OwnedBatches>,
    /// The epsilon of users by their number of examples; empty if the plan protects users.
    pub epsilon_by_examples: Vec<ByExamples>,
    /// Whether every candidate and the whole statement are printed.
    #[serde(skip)]
    pub long: bool,
    #[serde(skip)]
    pub markup: Markup,
    #[serde(skip)]
    pub adjacency: Adjacency,
    /// The loss that is minimised and compared.
    #[serde(skip)]
    pub objective: Objective,
    /// Whether the dimension is known; otherwise memory is not reported.
    #[serde(skip)]
    pub has_dim: bool,
}

#[derive(Debug, Serialize)]
pub struct Row {
    /// The name: `spec`, followed by the sampler unless that is Poisson sampling.
    name: String,
    strategy: &'static str,
    /// Class, size and form, in the syntax of `--strategy`.
    spec: String,
    bands: Option<usize>,
    order: Option<usize>,
    noise_multiplier: f64,
    sensitivity: f64,
    max_loss: f64,
    rms_loss: f64,
    relative_to_independent: f64,
    state_bytes: u64,
    /// Estimated seconds of one core for a step's noise.
    noise_seconds: f64,
    /// Whether the strategy was given, not designed.
    is_given: bool,
    /// Whether no other candidate has both less loss and less state.
    on_front: bool,
    status: Status,
    /// Whether sampling amplifies privacy.
    amplified: bool,
    accountant: Accountant,
}

/// The epsilon of users with several examples, if requested.
#[derive(Debug, Serialize)]
pub struct EpsilonOfUser {
    /// The largest number of examples of a user.
    examples_per_user: usize,
    /// Epsilon of a user with that number of examples; null where no finite bound is known.
    epsilon_of_user: Option<f64>,
}

/// Numbers of examples for which epsilon is printed, up to the largest one of a user.
const EXAMPLES: [usize; 5] = [1, 2, 5, 20, 100];

/// A mechanism that could not be chosen.
#[derive(Debug, Serialize)]
pub struct LeftOut {
    strategy: String,
    why: String,
}

impl PlanChoice {
    /// The report of the choice for `request`; `examples_per_user`: the maximum number of a user's examples,
    /// if given.
    pub fn new(choice: Choice, request: &Request, examples_per_user: Option<usize>) -> Result<Self> {
        let epsilon_by_examples = match examples_per_user {
            None => choice.plan.stated_epsilon_by_examples()?,
            Some(most) => {
                let fewer = EXAMPLES.into_iter().filter(|&examples| examples < most);
                choice.plan.epsilon_by_examples(fewer.chain([most]))?
            }
        };
        let users = examples_per_user.map(|examples_per_user| EpsilonOfUser {
            examples_per_user,
            epsilon_of_user: epsilon_by_examples.last().and_then(|by| by.epsilon),
        });
        let sampled = choice.candidates[0].is_amplified();
        let mut candidates: Vec<Row> = choice.candidates.iter().map(|c| Row::among(c, sampled)).collect();
        // Without a number of parameters, states are not known.
        for i in choice.pareto_front(request).into_iter().filter(|_| request.dim > 0) {
            candidates[i].on_front = true;
        }
        candidates.extend(choice.baselines.iter().map(Row::of_reference));
        let explanation = explanation(&choice, request);
        let left_out = |r: &Rejected| LeftOut { strategy: r.spec.to_string(), why: r.reason.clone() };
        Ok(Self {
            candidates,
            chosen: choice.chosen,
            explanation,
            left_out: choice.rejected.iter().map(left_out).collect(),
            statement: choice.plan.statement(),
            plan: choice.plan,
            users,
            owned: None,
            epsilon_by_examples,
            long: false,
            markup: Markup::Text,
            adjacency: request.adjacency,
            objective: request.objective,
            has_dim: request.dim > 0,
        })
    }
}

/// Name of a candidate, with its batches if these are not sampled although those of other candidates are
/// (`sampled`).
pub fn named(candidate: &Candidate, sampled: bool) -> String {
    let name = candidate.name();
    match candidate.schedule.accountant() {
        Accountant::Gdp if sampled => format!("{name}, cyclic"),
        Accountant::Gdp | Accountant::SampledGaussian => name,
        Accountant::BallsInBins => format!("{name}, in bins"),
        other => format!("{name}, {}", other.name()),
    }
}

impl Row {
    /// Row of a candidate; `sampled` tells whether batches of other candidates are sampled.
    fn among(candidate: &Candidate, sampled: bool) -> Self {
        Self { name: named(candidate, sampled), ..Self::new(candidate) }
    }

    fn new(candidate: &Candidate) -> Self {
        Self {
            strategy: candidate.spec.class.name(),
            spec: candidate.spec.to_string(),
            bands: candidate.spec.bands,
            order: candidate.spec.order,
            noise_multiplier: candidate.noise_multiplier,
            sensitivity: candidate.unit_loss.sensitivity.value,
            max_loss: candidate.max_loss,
            rms_loss: candidate.rms_loss,
            relative_to_independent: candidate.relative_to_independent,
            state_bytes: candidate.state_bytes,
            noise_seconds: candidate.noise_seconds,
            on_front: false,
            status: candidate.status,
            amplified: candidate.is_amplified(),
            accountant: candidate.schedule.accountant(),
            is_given: candidate.is_given,
            name: candidate.name(),
        }
    }
}

impl Row {
    fn loss(&self, objective: Objective) -> f64 {
        match objective {
            Objective::Max => self.max_loss,
            Objective::Rms => self.rms_loss,
        }
    }

    /// Row of a baseline: independent noise in other batches, under its usual name there.
    fn of_reference(candidate: &Candidate) -> Self {
        let how = if candidate.is_amplified() { "Poisson (DP-SGD)" } else { "cyclic" };
        Self { name: format!("{}, {how}", candidate.spec), ..Self::new(candidate) }
    }

    /// Text of the last column: whether the candidate is chosen, whether no other has less loss and less
    /// state, and whether its design may not be the best of its class.
    fn mark(&self, chosen: bool, has_dim: bool) -> String {
        let marks = [
            chosen.then_some("<- chosen"),
            (self.on_front && has_dim && !chosen).then_some("front"),
            (!self.status.is_final()).then_some("not converged"),
        ];
        marks.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

impl PlanChoice {
    /// Warning of a chosen noise state that exceeds the memory of this machine, if that is known.
    pub fn beyond_memory(&self, memory: Option<u64>) -> Option<String> {
        let (state, memory) = (self.candidates[self.chosen].state_bytes, memory?);
        (self.has_dim && state > memory).then(|| {
            format!(
                "the noise state of the chosen mechanism, {}, exceeds the memory of this machine, {}; --memory {memory} \
                 chooses among those that fit, and shards of the model on several machines hold a part each",
                output::bytes(state),
                output::bytes(memory),
            )
        })
    }

    /// Whether the short form has the row: the chosen mechanism, independent noise and baselines, and the
    /// candidates on the Pareto front of loss and state or, if states are unknown, the three of least loss.
    fn is_in_short_form(&self, i: usize) -> bool {
        let row = &self.candidates[i];
        let loss = |row: &Row| row.loss(self.objective);
        let less = self.candidates.iter().filter(|&other| loss(other) < loss(row)).count();
        let is_baseline = row.strategy == "identity";
        i == self.chosen || is_baseline || if self.has_dim { row.on_front } else { less < 3 }
    }

    /// The rows of the table, by candidate.
    fn shown(&self) -> impl Iterator<Item = (usize, &Row)> {
        self.candidates.iter().enumerate().filter(|&(i, _)| self.long || self.is_in_short_form(i))
    }

    /// The table, with the columns that are known; in the short form, only with the loss of the objective.
    fn table(&self) -> String {
        let long = self.long;
        let columns = [
            ("strategy", true),
            ("noise multiplier", true),
            ("sensitivity", long),
            (plot::name(Objective::Max), long || self.objective == Objective::Max),
            (plot::name(Objective::Rms), long || self.objective == Objective::Rms),
            ("vs independent", true),
            ("noise state", self.has_dim),
            ("noise time", self.has_dim),
            ("", true),
        ];
        let kept = |cells: [String; 9]| -> Vec<String> {
            cells.into_iter().zip(columns).filter(|(_, (_, keep))| *keep).map(|(cell, _)| cell).collect()
        };
        let row = |(i, row): (usize, &Row)| {
            kept([
                row.name.clone(),
                format!("{:.4}", row.noise_multiplier),
                format!("{:.4}", row.sensitivity),
                format!("{:.6}", row.max_loss),
                format!("{:.6}", row.rms_loss),
                format!("{:.3}", row.relative_to_independent),
                output::bytes(row.state_bytes),
                output::seconds(row.noise_seconds),
                row.mark(i == self.chosen, self.has_dim),
            ])
        };
        let rows: Vec<Vec<String>> = self.shown().map(row).collect();
        let header = kept(columns.map(|(name, _)| name.to_string()));
        output::marked_table(self.markup, &header.iter().map(String::as_str).collect::<Vec<_>>(), &rows)
    }
}

/// The meaning of a mark of the table.
const NOT_CONVERGED: &str = "Not converged: the design ended at its limit of iterations or where steps no longer helped. The \
                             loss is\nthat of the strategy that it found; the best of the class may be a little better.";

impl fmt::Display for PlanChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prose = |text: &str| self.markup.escaped(text);
        let losses = format!(
            "{} adjacency. Losses are standard deviations of the averaged queries of workload {}.",
            self.adjacency, self.plan.workload
        );
        writeln!(f, "{}\n", prose(&losses))?;
        writeln!(f, "{}", self.table())?;
        let explanation = self.explanation.replace(", and", ",\nand").replace(". ", ".\n");
        writeln!(f, "{}\n", prose(&explanation))?;
        if self.shown().any(|(_, row)| !row.status.is_final()) {
            writeln!(f, "{}\n", prose(NOT_CONVERGED))?;
        }
        for LeftOut { strategy, why } in &self.left_out {
            writeln!(f, "{}", prose(&format!("{strategy} was left out: {why}.")))?;
        }
        if !self.left_out.is_empty() {
            writeln!(f)?;
        }
        if let Some(owned) = &self.owned {
            writeln!(f, "{}\n", prose(&owned.to_string()))?;
        }
        let by = by_examples_in_words(&self.epsilon_by_examples);
        if self.users.is_some() {
            let users = format!("Epsilon of a user, all of whose examples change together: {by}.");
            writeln!(f, "{}\n", prose(&users))?;
        } else if !by.is_empty() {
            let persons = format!(
                "Epsilon is that of one example. For a person with several examples it is\n{by};\n\
                 --max-examples-per-user M plans for persons with any number."
            );
            writeln!(f, "{}\n", prose(&persons))?;
        }
        write!(f, "{}", self.statement.marked_up(self.markup, self.long))?;
        if self.long || self.markup != Markup::Text {
            return Ok(());
        }
        let hidden = (0..self.candidates.len()).filter(|&i| !self.is_in_short_form(i)).count();
        writeln!(f, "\n--long prints {hidden} more candidates and the whole statement.")
    }
}
