//! A sweep: a study for each of several epsilons, or numbers of epochs or steps, in a folder of its own.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use antinoise_input::InvalidParameter;
use antinoise_plan::write_atomically;
use antinoise_train::checkpoint::FolderLock;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::event::OnEvent;
use crate::folder::{Folder, REPORT, is_of_a_run};
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

/// Refuses a folder with the list of a sweep.
fn refuse_listed(whole: &Path) -> Result<()> {
    if whole.join(LIST).exists() { Err(Error::Taken(whole.to_owned())) } else { Ok(()) }
}

/// The points besides `point`.
fn others(points: &[Point], point: Point) -> Vec<Point> {
    points.iter().copied().filter(|&other| other != point).collect()
}

/// A study for each point, in increasing order.
pub struct Sessions {
    whole: PathBuf,
    /// The lock of `whole`, against a second sweep that begins there.
    _lock: FolderLock,
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
        refuse_listed(whole)?;
        let points = Point::of(settings)?;
        if points.is_empty() {
            return Ok(None);
        }
        refuse_metrics(metrics)?;
        Folder::refuse_taken(whole)?;
        refuse_what_never_began(whole, &points)?;
        let mut studies = Vec::new();
        for &point in &points {
            let mut study = Study::new(&point.settings(settings), on_event)?;
            if matches!(point, Point::Epsilon(_)) && !studies.is_empty() {
                // It is the same at every epsilon.
                study.leave_out_reference();
            }
            study.trained_beside(others(&points, point));
            studies.push(study);
        }
        // Nothing is written unless all studies can be trained.
        std::fs::create_dir_all(whole).map_err(|error| Error::of_file("out", whole, error))?;
        let lock = FolderLock::take(whole)?;
        // Another process may have been faster.
        refuse_listed(whole)?;
        let begun = studies
            .into_iter()
            .zip(&points)
            .map(|(study, point)| Session::begin(study, &whole.join(point.folder())));
        let sessions = begun.collect::<Result<Vec<_>>>()?;
        let list = toml::to_string(&List { points: points.clone() })?;
        write_atomically(&whole.join(LIST), list.as_bytes())?;
        Ok(Some(Self::within((whole, lock), points, sessions)))
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
        if points.is_empty() || !points.is_sorted_by(|x, y| x.value() < y.value()) {
            return Err(refused(&"points must be one or more, in increasing order"));
        }
        let lock = FolderLock::take(whole)?;
        let resumed = |&point: &Point| {
            let session = Session::resumed(&whole.join(point.folder()), published)?;
            if session.study.is_beside(&others(&points, point)) {
                return Ok(session);
            }
            let place = whole.join(point.folder());
            let must_be =
                format!("the folder of {point} of this comparison, whose {LIST} lists other studies");
            Err(InvalidParameter::new("resume", place.display(), must_be).into())
        };
        let sessions = points.iter().map(resumed).collect::<Result<Vec<_>>>()?;
        // Nothing is changed unless all can be resumed.
        let sessions = match published {
            Some(_) => sessions.into_iter().map(Session::save).collect::<Result<_>>()?,
            None => sessions,
        };
        Ok(Some(Self::within((whole, lock), points, sessions)))
    }

    fn within((whole, lock): (&Path, FolderLock), points: Vec<Point>, sessions: Vec<Session>) -> Self {
        let part = |session: Session| Session { folder: session.folder.part_of(whole), ..session };
        let sessions = sessions.into_iter().map(part).collect();
        Self { whole: whole.to_path_buf(), _lock: lock, points, sessions }
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
