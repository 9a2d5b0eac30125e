//! A study in its folder: begun or resumed, and trained.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use serde::Serialize;

use crate::error::Result;
use crate::event::OnEvent;
use crate::published::Published;
use crate::result::StudyResult;
use crate::session::Session;
use crate::sessions::Sessions;
use crate::settings::Settings;
use crate::sweep::Sweep;

/// A study in its folder, which is locked: planned and saved, to be trained.
pub struct StudyRun(Sizes);

/// One study, or several.
enum Sizes {
    One(Box<Session>),
    Several(Sessions),
}

/// The results of a study.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Outcome {
    /// The results of a single study.
    One(Box<StudyResult>),
    /// The results of a sweep.
    Several(Sweep),
}

impl StudyRun {
    /// Plans a study and saves it in the folder `out`, which must not hold one; nothing is trained yet.
    ///
    /// `metrics` names a new file for one line of JSON per step: losses of private examples, which no privacy
    /// statement covers.
    ///
    /// # Errors
    /// If the settings are invalid, the data cannot be read, or the folder is taken.
    pub fn new(
        settings: &Settings,
        out: &Path,
        metrics: Option<&Path>,
        on_event: OnEvent<'_>,
    ) -> Result<Self> {
        Ok(Self(match Sessions::new(settings, (out, metrics), on_event)? {
            Some(sessions) => Sizes::Several(sessions),
            None => Sizes::One(Box::new(Session::new(settings, (out, metrics), on_event)?)),
        }))
    }

    /// The study in the folder `path`, begun by [`StudyRun::new`]. With `published`, its statements cover
    /// these models from now on. A file of `metrics` is continued.
    ///
    /// # Errors
    /// If the folder holds no study, a file in it was altered, or a model was chosen for fewer published
    /// models.
    pub fn resumed(path: &Path, published: Option<Published>, metrics: Option<&Path>) -> Result<Self> {
        Ok(Self(match Sessions::resumed(path, published, metrics)? {
            Some(sessions) => Sizes::Several(sessions),
            None => {
                let session = Session::resumed(path, published)?.with_metrics(metrics)?;
                Sizes::One(Box::new(if published.is_some() { session.save()? } else { session }))
            }
        }))
    }

    /// Completes all trainings, and writes the models, their statements and the report.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::Error::Stopped) once `stop` is true: the folder then resumes to the
    /// bit. Otherwise if a training fails or a file cannot be written.
    pub fn train(self, stop: &AtomicBool, on_event: OnEvent<'_>) -> Result<Outcome> {
        Ok(match self.0 {
            Sizes::One(mut session) => Outcome::One(Box::new(session.train(stop, on_event)?)),
            Sizes::Several(sessions) => Outcome::Several(sessions.train(stop, on_event)?),
        })
    }
}
