//! `antinoise train`: private training, each mechanism at the same privacy, and a report.

mod cost;
mod folder;
mod named;
mod options;
mod problem;
mod released;
mod report;
mod results;
mod statement;
mod study;
mod summary;
mod training;

pub use options::Arguments;

use crate::failure::Result;
use crate::output;
use crate::signals::Stop;
use folder::Folder;
use report::Report;
use study::Study;

/// Trains, or resumes, and writes the report.
pub fn run(arguments: &Arguments) -> Result<Report> {
    let (mut study, folder) = match &arguments.resume {
        Some(path) => {
            arguments.refuse_with_resume()?;
            let folder = Folder::open(path)?;
            let mut study = folder.study()?;
            if let Some(released) = arguments.released_models {
                study.release(released)?;
                folder.save_study(&study)?;
            }
            (study, folder)
        }
        None => {
            let study = Study::new(arguments)?;
            let folder = Folder::create(&arguments.out)?;
            folder.save_study(&study)?;
            (study, folder)
        }
    };
    // All mechanisms are held to one delta.
    let plan = &study.plans()[0].plan;
    output::warn_of_delta(plan.privacy.delta, plan.examples, plan.privacy.unit);
    let stop = Stop::on_signals()?;
    let (dataset, model) = study.problem()?;
    let results = training::train(&mut study, (&dataset, &model), &folder, &stop)?;
    summary::summarize(&study, model.name(), &dataset, &results, &folder)
}
