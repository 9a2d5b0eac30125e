//! `antinoise train`: private training of one model, or a comparison of mechanisms at the same privacy.

mod audit;
mod card;
mod clip_by;
mod cost;
mod epsilons;
mod folder;
mod metrics;
mod model_folder;
mod named;
mod optimizer;
mod options;
mod page;
mod problem;
mod published;
mod result;
mod results;
mod search;
mod session;
mod statement;
mod study;
mod summary;
mod sweep;
mod table;
mod training;
mod users;

use std::fmt;

pub use audit::trained_with_canaries;
pub use options::{Arguments, ModelName};
pub use problem::{build, load};
use serde::Serialize;
pub use table::{TABLES, TableKind, delimiter, table_file};

use crate::failure::Result;
use crate::signals::Stop;
use epsilons::Sessions;
use result::StudyResult;
use session::Session;
use sweep::EpsilonSweep;

/// Output of `antinoise train`.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Outcome {
    /// Output for one epsilon.
    One(Box<StudyResult>),
    /// Output for several epsilons.
    Several(EpsilonSweep),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(result) => result.fmt(f),
            Self::Several(sweep) => sweep.fmt(f),
        }
    }
}

/// Trains, or resumes, and writes the report.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let Some(path) = &arguments.resume else {
        arguments.refuse_several_without_compare()?;
        let out = arguments.out()?;
        let of_run = Arguments { out: Some(out.clone()), ..arguments.clone() };
        // The folder's other name is reported once the run has begun: a refused run has no folder.
        return match Sessions::new(&of_run)? {
            Some(sessions) => {
                arguments.tell_of_other_name(&out);
                several(sessions)
            }
            None => {
                let session = Session::new(&of_run)?;
                arguments.tell_of_other_name(&out);
                one(session)
            }
        };
    };
    arguments.refuse_with_resume()?;
    match Sessions::resumed(path, arguments)? {
        Some(sessions) => several(sessions),
        None => {
            let session = Session::resumed(path, arguments.published_models)?;
            one(session.with_metrics(arguments.metrics.as_deref())?)
        }
    }
}

fn one(mut session: Session) -> Result<Outcome> {
    Ok(Outcome::One(Box::new(session.train(&Stop::on_signals()?)?)))
}

fn several(sessions: Sessions) -> Result<Outcome> {
    Ok(Outcome::Several(sessions.train(&Stop::on_signals()?)?))
}
