//! The candidates, the choice and its gain.

use std::fmt;

use antinoise_accounting::PrivacyStatement;
use antinoise_mechanism::Adjacency;
use antinoise_mechanism::design::Status;
use antinoise_plan::{Accountant, Candidate, Choice, Rejected, Request, VerifiedPlan};
use serde::Serialize;

use super::super::persons::{ByExamples, by_examples, in_words, stated};
use super::explanation::explanation;
use crate::failure::Result;
use crate::output;

/// Output of `antinoise plan`.
#[derive(Debug, Serialize)]
pub struct PlanChoice {
    /// Candidates, independent noise first. Baselines may follow at the end: independent noise with another
    /// sampler.
    pub candidates: Vec<Row>,
    pub chosen: usize,
    pub explanation: String,
    /// Mechanisms that were excluded for another reason than their loss.
    pub left_out: Vec<LeftOut>,
    pub plan: VerifiedPlan,
    pub statement: PrivacyStatement,
    /// The epsilon of users with several examples, if it was asked for.
    #[serde(flatten)]
    pub users: Option<EpsilonOfUser>,
    /// The epsilon of users by their number of examples; empty of a plan for users.
    pub epsilon_by_examples: Vec<ByExamples>,
    #[serde(skip)]
    pub adjacency: Adjacency,
    /// Whether the dimension is known; otherwise memory is not reported.
    #[serde(skip)]
    pub has_dim: bool,
}

#[derive(Debug, Serialize)]
pub struct Row {
    /// `spec`, and the sampler unless it is Poisson sampling.
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
    /// Whether no other candidate has both less loss and less state.
    on_front: bool,
    status: Status,
    /// Whether sampling amplifies privacy.
    amplified: bool,
    accountant: Accountant,
}

/// The epsilon of users with several examples, if it was asked for.
#[derive(Debug, Serialize)]
pub struct EpsilonOfUser {
    /// The largest number of examples of a user.
    examples_per_user: usize,
    /// Of a user with that number; null where no finite bound is known.
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
    /// The report of a choice for the request, where users have at most `examples_per_user` examples, if that
    /// was given.
    pub fn new(choice: Choice, request: &Request, examples_per_user: Option<usize>) -> Result<Self> {
        let epsilon_by_examples = match examples_per_user {
            None => stated(&choice.plan)?,
            Some(most) => {
                let fewer = EXAMPLES.into_iter().filter(|&examples| examples < most);
                by_examples(&choice.plan, fewer.chain([most]))?
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
            epsilon_by_examples,
            adjacency: request.adjacency,
            has_dim: request.dim > 0,
        })
    }
}

/// Name of a candidate, with its batches if these are not sampled although those of other candidates are
/// (`sampled`).
pub fn named(candidate: &Candidate, sampled: bool) -> String {
    let how = match candidate.schedule.accountant() {
        Accountant::Gdp if sampled => ", cyclic",
        Accountant::Gdp | Accountant::SampledGaussian => "",
        Accountant::BallsInBins => ", in bins",
        Accountant::BMinSep => ", b-min-sep",
    };
    format!("{}{how}", candidate.spec)
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
            name: candidate.spec.to_string(),
        }
    }
}

impl Row {
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

impl fmt::Display for PlanChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = [
            "strategy",
            "noise multiplier",
            "sensitivity",
            "max loss",
            "RMS loss",
            "vs independent",
            "noise state",
            "noise time",
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
                    if self.has_dim { output::seconds(row.noise_seconds) } else { "-".into() },
                    row.mark(i == self.chosen, self.has_dim),
                ]
            })
            .collect();
        writeln!(
            f,
            "{} adjacency. Losses are standard deviations of the averaged queries.\n",
            self.adjacency
        )?;
        writeln!(f, "{}", output::table(&header, &rows))?;
        writeln!(f, "{}\n", self.explanation.replace(", and", ",\nand").replace(". ", ".\n"))?;
        for LeftOut { strategy, why } in &self.left_out {
            writeln!(f, "{strategy} was left out: {why}.")?;
        }
        if !self.left_out.is_empty() {
            writeln!(f)?;
        }
        let by = in_words(&self.epsilon_by_examples);
        if self.users.is_some() {
            writeln!(f, "Epsilon of a user, all of whose examples change together: {by}.\n")?;
        } else if !by.is_empty() {
            writeln!(f, "Epsilon is that of one example. Of a person with several it is {by};")?;
            writeln!(f, "--max-examples-per-user M plans for persons with any number.\n")?;
        }
        writeln!(f, "{}", self.statement)
    }
}
