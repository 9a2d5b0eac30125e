//! `antinoise train`: private training, each mechanism at the same privacy, and a report.

mod audit;
mod clip_by;
mod cost;
mod epsilons;
mod folder;
mod metrics;
mod named;
mod optimizer;
mod options;
mod problem;
mod released;
mod report;
mod results;
mod search;
mod session;
mod statement;
mod study;
mod summary;
mod table;
mod training;

use std::fmt;

pub use audit::trained_with_canaries;
pub use options::{Arguments, ModelName};
pub use problem::{build, load};
use serde::Serialize;

use crate::failure::Result;
use crate::signals::Stop;
use epsilons::{Epsilons, Sessions};
use report::Report;
use session::Session;

/// Output of `antinoise train`.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Outcome {
    /// Output for one epsilon.
    One(Report),
    /// Output for several epsilons.
    Several(Epsilons),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(report) => report.fmt(f),
            Self::Several(epsilons) => epsilons.fmt(f),
        }
    }
}

/// Trains, or resumes, and writes the report.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let several = match &arguments.resume {
        Some(path) => {
            arguments.refuse_with_resume()?;
            Sessions::resumed(path, arguments)?
        }
        None => Sessions::new(arguments)?,
    };
    if let Some(sessions) = several {
        return Ok(Outcome::Several(sessions.train(&Stop::on_signals()?)?));
    }
    let mut session = match &arguments.resume {
        Some(path) => {
            Session::resumed(path, arguments.released_models)?.with_metrics(arguments.metrics.as_deref())?
        }
        None => Session::new(arguments)?,
    };
    Ok(Outcome::One(session.train(&Stop::on_signals()?)?))
}
