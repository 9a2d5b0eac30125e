//! A sweep: a study for each of several epsilons, or numbers of epochs or steps, in a folder of its own.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use antinoise_input::InvalidParameter;
use antinoise_plan::write_atomically;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::event::OnEvent;
use crate::folder::{REPORT, is_of_a_run};
use crate::page::sweep_page;
use crate::point::Point;
use crate::published::Published;
use crate::session::Session;
use crate::settings::Settings;
use crate::study::Study;
use crate::sweep::{AtPoint, Sweep};

/// File that lists the studies. It is written once all folders exist, before any training.
const LIST: &str = "sweep.toml";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    points: Vec<Point>,
}

/// Refuses metrics before any file is written or changed.
fn refuse_metrics(metrics: Option<&Path>) -> Result<()> {
    let Some(path) = metrics else { return Ok(()) };
    let must_be = "left out with several epsilons, epochs or steps, whose runs have the same names";
    Err(InvalidParameter::new("metrics", path.display(), must_be).into())
}

/// Refuses folders that a killed process left without the file that lists them.
fn refuse_what_never_began(whole: &Path, points: &[Point]) -> Result<()> {
    let left = points.iter().map(|point| whole.join(point.folder())).find(|part| is_of_a_run(part));
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

/// A study for each point, in increasing order.
pub struct Sessions {
    whole: PathBuf,
    points: Vec<Point>,
    sessions: Vec<Session>,
}

impl Sessions {
    /// New studies, all saved before one starts; `None` if the settings ask for a single one.
    pub fn new(
        settings: &Settings,
        (whole, metrics): (&Path, Option<&Path>),
        on_event: OnEvent<'_>,
    ) -> Result<Option<Self>> {
        if whole.join(LIST).exists() {
            return Err(Error::Taken(whole.to_owned()));
        }
        let points = Point::of(settings)?;
        if points.is_empty() {
            return Ok(None);
        }
        refuse_metrics(metrics)?;
        if whole.join(REPORT).symlink_metadata().is_ok() {
            let must_be = format!("a folder without {REPORT}, which the run would write over");
            return Err(InvalidParameter::new("out", whole.display(), must_be).into());
        }
        refuse_what_never_began(whole, &points)?;
        let mut studies = Vec::new();
        for &point in &points {
            let mut study = Study::new(&point.settings(settings), on_event)?;
            if matches!(point, Point::Epsilon(_)) && !studies.is_empty() {
                // It is the same at every epsilon.
                study.leave_out_reference();
            }
            study.trained_beside(points.iter().copied().filter(|&other| other != point).collect());
            studies.push(study);
        }
        // Nothing is written unless all studies can be trained.
        let begun = studies
            .into_iter()
            .zip(&points)
            .map(|(study, point)| Session::begin(study, &whole.join(point.folder())));
        let sessions = begun.collect::<Result<Vec<_>>>()?;
        let list = toml::to_string(&List { points: points.clone() })?;
        write_atomically(&whole.join(LIST), list.as_bytes())?;
        Ok(Some(Self::within(whole, points, sessions)))
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
        let List { points } = toml::from_str(&text).map_err(|error| refused(&error))?;
        let resumed = |point: &Point| Session::resumed(&whole.join(point.folder()), published);
        let sessions = points.iter().map(resumed).collect::<Result<Vec<_>>>()?;
        if sessions.is_empty() {
            return Err(refused(&"points must be one or more"));
        }
        Ok(Some(Self::within(whole, points, sessions)))
    }

    fn within(whole: &Path, points: Vec<Point>, sessions: Vec<Session>) -> Self {
        let part = |session: Session| Session { folder: session.folder.part_of(whole), ..session };
        Self { whole: whole.to_path_buf(), points, sessions: sessions.into_iter().map(part).collect() }
    }

    /// Completes all trainings, and writes the reports.
    pub fn train(mut self, stop: &AtomicBool, on_event: OnEvent<'_>) -> Result<Sweep> {
        let mut points = Vec::new();
        for (&point, session) in self.points.iter().zip(&mut self.sessions) {
            points.push(AtPoint { point, result: session.train(stop, on_event)? });
        }
        let links = self.points.iter().map(|point| format!("{}/{REPORT}", point.folder())).collect();
        let found = Sweep { points, report: self.whole.join(REPORT), links };
        write_atomically(&found.report, sweep_page(&found)?.as_bytes())?;
        Ok(found)
    }
}
