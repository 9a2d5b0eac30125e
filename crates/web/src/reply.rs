//! The answer to a request: a plan with its statement, figures and candidates, the choices at other batch
//! sizes, or what is wrong.

use antinoise_accounting::PrivacyStatement;
use antinoise_plan::{Candidate, Choice, Error, Request, choose};
use serde::Serialize;

use crate::batches::{self, Batches};
use crate::figures;
use crate::query::Query;

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Reply {
    Plan(Box<Planned>),
    Batches(Batches),
    Error(Refusal),
}

/// A plan, in the forms that a page shows.
#[derive(Serialize)]
struct Planned {
    toml: String,
    command: String,
    python: String,
    steps: usize,
    delta: f64,
    noise_std: f64,
    chosen: usize,
    candidates: Vec<Row>,
    /// Independent noise with the other kind of batches.
    baselines: Vec<Row>,
    /// What the plan is measured against.
    reference: Row,
    left_out: Vec<(String, String)>,
    summary: Vec<String>,
    details: Vec<(&'static str, String)>,
    assumptions: Vec<String>,
    not_covered: Vec<String>,
    figures: Vec<String>,
}

/// A mechanism that was tried.
#[derive(Serialize)]
struct Row {
    name: String,
    accountant: &'static str,
    amplified: bool,
    noise_multiplier: f64,
    loss: f64,
    relative_to_independent: f64,
    /// Bytes of noise state; absent if the number of parameters is not known.
    state_bytes: Option<u64>,
}

/// What is wrong with a request; the parameter is empty if it is none.
#[derive(Serialize)]
struct Refusal {
    parameter: String,
    message: String,
}

/// The answer to a request in JSON, in JSON.
pub(crate) fn to(text: &str) -> String {
    let reply = answered(text).unwrap_or_else(Reply::Error);
    serde_json::to_string(&reply).expect("strings and numbers are JSON")
}

fn answered(text: &str) -> Result<Reply, Refusal> {
    let query: Query = serde_json::from_str(text).map_err(Refusal::nameless)?;
    let request = query.request()?;
    if query.across_batch_sizes {
        return Ok(Reply::Batches(batches::around(&request)?));
    }
    Ok(Reply::Plan(Box::new(planned(&query, &request)?)))
}

fn planned(query: &Query, request: &Request) -> Result<Planned, Refusal> {
    let choice = choose(request)?;
    let figures = figures::all(&choice, request).map_err(Refusal::nameless)?;
    let row = |candidate: &Candidate| Row::new(candidate, request);
    let Choice { candidates, baselines, chosen, plan, rejected, .. } = &choice;
    let statement = plan.statement();
    let summary = statement.summary();
    let details = statement.details();
    let PrivacyStatement { assumptions, not_covered, .. } = statement;
    Ok(Planned {
        toml: plan.to_toml(),
        command: query.command(),
        python: query.python(),
        steps: plan.steps,
        delta: plan.privacy.delta,
        noise_std: plan.noise_std(),
        chosen: *chosen,
        candidates: candidates.iter().map(row).collect(),
        baselines: baselines.iter().map(row).collect(),
        reference: row(batches::reference(&choice)),
        left_out: rejected.iter().map(|r| (r.spec.to_string(), r.reason.clone())).collect(),
        summary,
        details,
        assumptions,
        not_covered,
        figures,
    })
}

impl Row {
    fn new(candidate: &Candidate, request: &Request) -> Self {
        Self {
            name: candidate.name(),
            accountant: candidate.schedule.accountant().name(),
            amplified: candidate.is_amplified(),
            noise_multiplier: candidate.noise_multiplier,
            loss: candidate.objective(request.objective),
            relative_to_independent: candidate.relative_to_independent,
            state_bytes: (request.dim > 0).then_some(candidate.state_bytes),
        }
    }
}

impl Refusal {
    fn nameless(error: impl std::fmt::Display) -> Self {
        Self { parameter: String::new(), message: error.to_string() }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match error {
            Error::Invalid(invalid) => Self { message: invalid.to_string(), parameter: invalid.parameter },
            other => Self::nameless(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn value(text: &str) -> Value {
        serde_json::from_str(&to(text)).unwrap()
    }

    #[test]
    fn the_plan_is_that_of_the_planner() {
        let settings = ["poisson", "cyclic", "shuffled", "single", "stream"];
        for setting in settings {
            let text = format!(
                r#"{{"examples": 1000, "batch_size": 50, "steps": 20, "epsilon": 2, "setting": "{setting}", "quick": true}}"#
            );
            let query: Query = serde_json::from_str(&text).unwrap();
            let choice = choose(&query.request().unwrap()).unwrap();
            let plan = &value(&text)["plan"];
            assert_eq!(plan["toml"], choice.plan.to_toml());
            assert_eq!(plan["candidates"].as_array().unwrap().len(), choice.candidates.len());
            assert_eq!(plan["figures"].as_array().unwrap().len(), 4, "{setting}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = [
            (r#""examples": 0, "batch_size": 50, "epochs": 1, "epsilon": 2"#, "examples"),
            (r#""examples": 10, "batch_size": 50, "epochs": 1, "epsilon": 2"#, "batch_size"),
            (r#""examples": 100, "batch_size": 50, "epochs": 0, "epsilon": 2"#, "epochs"),
            (r#""examples": 100, "batch_size": 50, "epochs": 1, "epsilon": 0"#, "epsilon"),
            (r#""examples": 100, "batch_size": 50, "epochs": 1, "epsilon": 2, "delta": 1"#, "delta"),
            (r#""examples": 100, "batch_size": 50, "epochs": 1, "epsilon": 2, "min_sep": 1"#, "min_sep"),
            (r#""examples": 100, "batch_size": 50, "epochs": 1, "epsilon": 2, "memory": 1"#, "dim"),
            (r#""examples": 100, "batch_size": 50, "epochs": 1, "epsilon": 2, "unknown": 1"#, ""),
        ];
        for (fields, parameter) in wrong {
            let answer = value(&format!(r#"{{{fields}, "setting": "cyclic"}}"#));
            assert_eq!(answer["error"]["parameter"], parameter, "{answer}");
            assert!(!answer["error"]["message"].as_str().unwrap().is_empty());
        }
        assert_eq!(value("not JSON")["error"]["parameter"], "");
    }
}
