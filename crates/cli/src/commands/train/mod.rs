//! `antinoise train`: private training of one model, or a comparison of mechanisms at the same privacy.

mod federated;
mod optimizer;
mod options;
mod printed;
mod shown;
mod table;
mod texts;
mod users;

use antinoise_study::{Error, Event, StudyRun};

use crate::failure::{Failure, Result};
use crate::signals::Stop;
pub use options::Arguments;
use printed::Printed;
use shown::Shown;
pub use table::{TableOptions, check_delimiter, delimiter};

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
            // The folder's other name is reported once the run has begun: a refused run has no folder.
            run.inspect(|_| arguments.tell_of_other_name(&out))
        }
    };
    let run = run.map_err(|error| match &error {
        Error::Taken(out) => {
            let out = out.display();
            Failure::input(format!("{error}. Resume it with --resume {out}, or name another folder"))
        }
        _ => error.into(),
    })?;
    let stop = Stop::on_signals()?;
    run.train(stop.asked(), &on_event).map(Printed).map_err(|error| match &error {
        Error::Stopped { folder, .. } => {
            let message = format!("{error}; resume with --resume {}", folder.display());
            Failure::stopped(message, stop.status())
        }
        _ => error.into(),
    })
}
