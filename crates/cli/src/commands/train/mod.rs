//! `antinoise train`: private training of one model, or a comparison of mechanisms at the same privacy.

mod optimizer;
mod options;
mod printed;
mod shown;
mod table;
mod users;

use antinoise_study::{Error, Event, StudyRun};

use crate::failure::{Failure, Result};
use crate::signals::Stop;
pub use options::Arguments;
use printed::Printed;
use shown::Shown;
pub use table::{check_delimiter, delimiter};

/// Trains, or resumes, and writes the report.
pub fn run(arguments: &Arguments) -> Result<Printed> {
    let (shown, metrics) = (Shown::default(), arguments.metrics.as_deref());
    let on_event = |event: Event<'_>| shown.show(event);
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
