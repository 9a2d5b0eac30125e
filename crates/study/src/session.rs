//! One study in its folder.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use antinoise_accounting::delta_warning;
use antinoise_input::InvalidParameter;

use crate::error::Result;
use crate::event::{Event, OnEvent};
use crate::folder::Folder;
use crate::metrics::Metrics;
use crate::published::Published;
use crate::result::StudyResult;
use crate::settings::Settings;
use crate::study::Study;
use crate::training::Around;
use crate::{audit, summary, training};

/// A study and its folder, which is locked.
pub struct Session {
    pub study: Study,
    pub folder: Folder,
    /// The file of metrics; `None`: no metrics.
    pub metrics: Option<Metrics>,
}

impl Session {
    /// Creates and saves a study, without starting it.
    pub fn new(
        settings: &Settings,
        (out, metrics): (&Path, Option<&Path>),
        on_event: OnEvent<'_>,
    ) -> Result<Self> {
        // Before anything is planned, which takes seconds.
        Folder::refuse_taken(out)?;
        let study = Study::new(settings, on_event)?;
        let metrics = metrics.map(|path| Metrics::open(path, false)).transpose()?;
        Ok(Self { metrics, ..Self::begin(study, out)? })
    }

    /// Saves `study` in a new folder.
    pub fn begin(study: Study, out: &Path) -> Result<Self> {
        let folder = Folder::create(out)?;
        folder.save_study(&study)?;
        Ok(Self { study, folder, metrics: None })
    }

    /// The study in the folder `path`. If `published` is given, its statements are to cover that number of
    /// models, from the next [`Session::save`] on.
    pub fn resumed(path: &Path, published: Option<Published>) -> Result<Self> {
        let folder = Folder::open(path)?;
        let mut study = folder.study()?;
        if let Some(published) = published {
            let earlier = study.published();
            if !earlier.is_covered_by(published) && folder.has_model_folder() {
                let must_be = format!(
                    "{earlier} or more: the model in {} was chosen when published_models was {earlier}, and may have been given away",
                    folder.model_folder().display()
                );
                return Err(InvalidParameter::new("published_models", published, must_be).into());
            }
            study.publish(published)?;
        }
        Ok(Self { study, folder, metrics: None })
    }

    /// Writes the description of the study again.
    pub fn save(self) -> Result<Self> {
        self.folder.save_study(&self.study)?;
        Ok(self)
    }

    /// This session, with lines appended to the file `metrics`.
    pub fn with_metrics(self, metrics: Option<&Path>) -> Result<Self> {
        let metrics = metrics.map(|path| Metrics::open(path, true)).transpose()?;
        Ok(Self { metrics, ..self })
    }

    /// Completes all trainings, and writes the report.
    pub fn train(&mut self, stop: &AtomicBool, on_event: OnEvent<'_>) -> Result<StudyResult> {
        let Self { study, folder, metrics } = self;
        // All mechanisms are held to one delta.
        let plan = &study.plans()[0].plan;
        let privacy = &plan.privacy;
        if let Some(warning) = delta_warning(privacy.delta, plan.examples, &privacy.unit.to_string()) {
            on_event(Event::Warning(&warning));
        }
        let task = &study.task()?;
        let around = Around { folder, stop, metrics: metrics.as_ref(), on_event };
        let results = training::train(study, task, around)?;
        let audits = audit::audits(study, task, &results, (folder, on_event))?;
        summary::summarize(study, task, (&results, &audits), folder)
    }
}
