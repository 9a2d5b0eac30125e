//! A comparison at several epsilons: a folder for each epsilon, and accuracy against privacy.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use antinoise_input::InvalidParameter;
use antinoise_plan::write_atomically;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::event::OnEvent;
use crate::folder::{REPORT, is_of_a_run};
use crate::page::epsilon_page;
use crate::published::Published;
use crate::session::Session;
use crate::settings::Settings;
use crate::study::Study;
use crate::sweep::{AtEpsilon, EpsilonSweep};

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

/// Refuses metrics before any file is written or changed.
fn refuse_metrics(metrics: Option<&Path>) -> Result<()> {
    let Some(path) = metrics else { return Ok(()) };
    let must_be = "left out with several epsilons, whose runs have the same names";
    Err(InvalidParameter::new("metrics", path.display(), must_be).into())
}

/// Refuses folders that a killed process left without the file that lists them.
fn refuse_what_never_began(whole: &Path, epsilons: &[f64]) -> Result<()> {
    let left = epsilons.iter().map(|&epsilon| whole.join(folder(epsilon))).find(|part| is_of_a_run(part));
    match left {
        None => Ok(()),
        Some(part) => {
            let must_be = format!(
                "a folder without {}: that is a run of its own, or was left by a comparison that was killed before it \
                 trained anything; name another folder",
                part.display()
            );
            Err(InvalidParameter::new("out", whole.display(), must_be).into())
        }
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
    pub fn new(
        settings: &Settings,
        (whole, metrics): (&Path, Option<&Path>),
        on_event: OnEvent<'_>,
    ) -> Result<Option<Self>> {
        if whole.join(LIST).exists() {
            return Err(Error::Taken(whole.to_owned()));
        }
        if settings.epsilons.len() < 2 {
            return Ok(None);
        }
        refuse_metrics(metrics)?;
        let mut epsilons = settings.epsilons.clone();
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
            let settings = Settings { epsilons: vec![epsilon], ..settings.clone() };
            let mut study = Study::new(&settings, on_event)?;
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
        let list = toml::to_string(&List { epsilons: epsilons.clone() })?;
        write_atomically(&whole.join(LIST), list.as_bytes())?;
        Ok(Some(Self::within(whole, epsilons, sessions)))
    }

    /// The studies of the folder `whole`; `None` if it holds a single study.
    pub fn resumed(
        whole: &Path,
        published: Option<Published>,
        metrics: Option<&Path>,
    ) -> Result<Option<Self>> {
        let path = whole.join(LIST);
        if !path.exists() {
            return Ok(None);
        }
        refuse_metrics(metrics)?;
        let refused = |error: &dyn fmt::Display| Error::of_file("resume", &path, error);
        let text = std::fs::read_to_string(&path).map_err(|error| refused(&error))?;
        let List { epsilons } = toml::from_str(&text).map_err(|error| refused(&error))?;
        let resumed = |&epsilon: &f64| Session::resumed(&whole.join(folder(epsilon)), published);
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
    pub fn train(mut self, stop: &AtomicBool, on_event: OnEvent<'_>) -> Result<EpsilonSweep> {
        let mut epsilons = Vec::new();
        for (epsilon, session) in self.epsilons.iter().zip(&mut self.sessions) {
            epsilons.push(AtEpsilon { epsilon: *epsilon, result: session.train(stop, on_event)? });
        }
        let links = self.epsilons.iter().map(|&epsilon| format!("{}/{REPORT}", folder(epsilon))).collect();
        let found = EpsilonSweep { epsilons, report: self.whole.join(REPORT), links };
        write_atomically(&found.report, epsilon_page(&found)?.as_bytes())?;
        Ok(found)
    }
}
