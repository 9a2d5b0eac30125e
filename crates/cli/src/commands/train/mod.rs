//! `antinoise train`: private training of one model, or a comparison of mechanisms at the same privacy.

mod around;
mod audit;
mod card;
mod clip_by;
mod cost;
mod data;
mod epsilons;
mod error;
mod event;
mod folder;
mod metrics;
mod model_folder;
mod named;
mod optimizer;
mod options;
mod page;
mod persons;
mod printed;
mod problem;
mod published;
mod result;
mod results;
mod search;
mod session;
mod settings;
mod shown;
mod statement;
mod study;
mod study_run;
mod summary;
mod sweep;
mod table;
mod table_file;
mod training;
mod users;

pub use audit::trained_with_canaries;
pub use data::{ModelName, build, load};
pub use options::Arguments;
pub use table::{check_delimiter, delimiter};
pub use table_file::{TABLES, TableKind, table_file};

use crate::failure::{Failure, Result};
use crate::signals::Stop;
use error::Error;
use printed::Printed;
use shown::Shown;
use study_run::StudyRun;

/// Trains, or resumes, and writes the report.
pub fn run(arguments: &Arguments) -> Result<Printed> {
    let (shown, metrics) = (Shown::default(), arguments.metrics.as_deref());
    let on_event = |event: event::Event<'_>| shown.show(event);
    let run = match &arguments.resume {
        Some(path) => {
            arguments.refuse_with_resume()?;
            StudyRun::resumed(path, arguments.published_models, metrics)
        }
        None => {
            let settings = arguments.settings()?;
            let out = arguments.out()?;
            let run = StudyRun::new(&settings, &out, metrics, &on_event);
            // Once the run has begun: a refused run has no folder.
            run.inspect(|_| arguments.tell_of_other_name(&out))
        }
    };
    let run = run.map_err(with_options_named)?;
    let stop = Stop::on_signals()?;
    run.train(stop.asked(), &on_event).map(Printed).map_err(|error| match error {
        Error::Stopped { .. } => Failure::stopped(with_options_named(error), stop.status()),
        error => with_options_named(error),
    })
}

/// A failure of a study, in which phrases name options.
fn with_options_named(error: Error) -> Failure {
    let phrases = [
        ("; resume in ", "; resume with --resume "),
        ("Resume it in ", "Resume it with --resume "),
        ("where the study is resumed)", "where --resume is run)"),
        ("with a smaller learning rate;", "with a smaller --learning-rate;"),
        ("left out where users are protected:", "left out with --user and --users:"),
    ];
    phrases.into_iter().fold(error.into(), |failure: Failure, (phrase, by)| failure.replacing(phrase, by))
}
