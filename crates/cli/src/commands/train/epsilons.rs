//! A comparison at several epsilons: a folder for each epsilon, and accuracy against privacy.

use std::fmt;
use std::path::{Path, PathBuf};

use antinoise_input::InvalidParameter;
use antinoise_plan::write_atomically;
use serde::{Deserialize, Serialize};

use super::folder::{REPORT, has_a_run, is_of_a_run};
use super::options::Arguments;
use super::page::epsilon_page;
use super::session::Session;
use super::study::Study;
use super::sweep::{AtEpsilon, EpsilonSweep};
use crate::failure::{Failure, Result};
use crate::signals::Stop;

/// File that lists the folders. It is written once all folders exist, before any training.
const LIST: &str = "epsilons.toml";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    epsilons: Vec<f64>,
}

/// Name of an epsilon's folder, within the folder of all epsilons.
fn folder(epsilon: f64) -> String {
    format!("epsilon-{epsilon}")
}

/// Refuses `--metrics` before any file is written or changed.
fn refuse_metrics(arguments: &Arguments) -> Result<()> {
    let Some(path) = &arguments.metrics else { return Ok(()) };
    let must_be = "left out with several epsilons, whose runs have the same names";
    Err(InvalidParameter::new("metrics", path.display(), must_be).into())
}

/// Refuses folders that a killed process left without the file that lists them.
fn refuse_what_never_began(whole: &Path, epsilons: &[f64]) -> Result<()> {
    let left = epsilons.iter().map(|&epsilon| whole.join(folder(epsilon))).find(|part| is_of_a_run(part));
    match left {
        None => Ok(()),
        Some(part) => Err(Failure::input(format!(
            "out is {} but must be a folder without {}: that is a run of its own, or was left by a comparison that was \
             killed before it trained anything; name another folder",
            whole.display(),
            part.display()
        ))),
    }
}

/// A study for each epsilon, in increasing order.
pub struct Sessions {
    whole: PathBuf,
    epsilons: Vec<f64>,
    sessions: Vec<Session>,
}

impl Sessions {
    /// New studies, all saved before one starts; `None` for a single epsilon.
    pub fn new(arguments: &Arguments) -> Result<Option<Self>> {
        let whole = &arguments.out()?;
        if whole.join(LIST).exists() {
            return Err(has_a_run(whole));
        }
        if arguments.epsilon.len() < 2 {
            return Ok(None);
        }
        refuse_metrics(arguments)?;
        let mut epsilons = arguments.epsilon.clone();
        epsilons.sort_by(f64::total_cmp);
        if let Some(pair) = epsilons.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(InvalidParameter::new("epsilon", pair[0], "given once").into());
        }
        if whole.join(REPORT).symlink_metadata().is_ok() {
            let must_be = format!("a folder without {REPORT}, which the run would write over");
            return Err(InvalidParameter::new("out", whole.display(), must_be).into());
        }
        refuse_what_never_began(whole, &epsilons)?;
        let mut studies = Vec::new();
        for &epsilon in &epsilons {
            let mut study = Study::new(&Arguments { epsilon: vec![epsilon], ..arguments.clone() })?;
            if !studies.is_empty() {
                // It is the same at every epsilon.
                study.leave_out_reference();
            }
            study.trained_beside(epsilons.iter().copied().filter(|&other| other != epsilon).collect());
            studies.push(study);
        }
        // Nothing is written unless all studies can be trained.
        let begun = studies
            .into_iter()
            .zip(&epsilons)
            .map(|(study, &epsilon)| Session::begin(study, &whole.join(folder(epsilon))));
        let sessions = begun.collect::<Result<Vec<_>>>()?;
        let list = toml::to_string(&List { epsilons: epsilons.clone() }).map_err(Failure::other)?;
        write_atomically(&whole.join(LIST), list.as_bytes())?;
        Ok(Some(Self::within(whole, epsilons, sessions)))
    }

    /// The studies of the folder `whole`; `None` if it holds a single study.
    pub fn resumed(whole: &Path, arguments: &Arguments) -> Result<Option<Self>> {
        let path = whole.join(LIST);
        if !path.exists() {
            return Ok(None);
        }
        refuse_metrics(arguments)?;
        let refused =
            |error: &dyn fmt::Display| Failure::input(format!("resume: {}: {error}", path.display()));
        let text = std::fs::read_to_string(&path).map_err(|error| refused(&error))?;
        let List { epsilons } = toml::from_str(&text).map_err(|error| refused(&error))?;
        let resumed =
            |&epsilon: &f64| Session::resumed(&whole.join(folder(epsilon)), arguments.published_models);
        let sessions = epsilons.iter().map(resumed).collect::<Result<Vec<_>>>()?;
        if sessions.is_empty() {
            return Err(refused(&"epsilons must be one or more"));
        }
        Ok(Some(Self::within(whole, epsilons, sessions)))
    }

    fn within(whole: &Path, epsilons: Vec<f64>, sessions: Vec<Session>) -> Self {
        let part = |session: Session| Session { folder: session.folder.part_of(whole), ..session };
        Self { whole: whole.to_path_buf(), epsilons, sessions: sessions.into_iter().map(part).collect() }
    }

    /// Completes all trainings, and writes the reports.
    pub fn train(mut self, stop: &Stop) -> Result<EpsilonSweep> {
        let mut epsilons = Vec::new();
        for (epsilon, session) in self.epsilons.iter().zip(&mut self.sessions) {
            epsilons.push(AtEpsilon { epsilon: *epsilon, result: session.train(stop)? });
        }
        let links = self.epsilons.iter().map(|&epsilon| format!("{}/{REPORT}", folder(epsilon))).collect();
        let found = EpsilonSweep { epsilons, report: self.whole.join(REPORT), links };
        write_atomically(&found.report, epsilon_page(&found)?.as_bytes())?;
        Ok(found)
    }
}
