//! The folder of a training run: the files that resuming needs, and the results.

use std::path::{Path, PathBuf};

use antinoise_audit::OneRunReport;
use antinoise_input::files::{Access, remove_stale, write_whole};
use antinoise_input::{InvalidParameter, hex};
use antinoise_noise::RunId;
use antinoise_plan::write_atomically;
use antinoise_train::checkpoint::{Checkpoints, FolderLock};
use antinoise_train::reference::Measured;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::study::{Study, plain};
use crate::task::Saved;

const STUDY: &str = "run.toml";
pub const REPORT: &str = "report.html";
/// Folder of the model to give away.
const MODEL: &str = "model";
/// Folder of all models.
const MODELS: &str = "models";
const CHECKPOINTS: &str = "checkpoints";
/// Folder of measurements of runs without privacy, readable by the owner only.
const REFERENCES: &str = "without-privacy";
/// Folder of results of audits, readable by the owner only.
const AUDITS: &str = "audits";

/// The files of [`MODEL`].
pub const MODEL_FILES: [&str; 6] =
    ["model.safetensors", "model.toml", "plan.toml", "statement.txt", "statement.json", "README.md"];

/// A folder with `run.toml`, `report.html`, `model/` (the model to give away), and for each run
/// `checkpoints/NAME/` (private) and `models/NAME.safetensors` (covered by the privacy statement). It is
/// locked until this value is dropped.
pub struct Folder {
    path: PathBuf,
    /// Folder that resumes the study: this one, or the one that contains it.
    resumed_as: PathBuf,
    _lock: FolderLock,
}

impl Folder {
    /// Creates a folder for a run. A folder that holds a run, or files with names that a run writes, is
    /// refused.
    pub fn create(path: &Path) -> Result<Self> {
        Self::refuse_taken(path)?;
        let created =
            |path: &Path| std::fs::create_dir_all(path).map_err(|error| Error::of_file("out", path, error));
        created(path)?;
        let folder = Self::lock(path)?;
        // Another process may have been faster.
        Self::refuse_what_stands_in_the_way(path)?;
        created(&path.join(MODELS))?;
        Ok(folder)
    }

    /// Refuses a folder that is in use, that holds a run, or that has files with names that a run writes.
    pub fn refuse_taken(path: &Path) -> Result<()> {
        if path.is_file() {
            return Err(Error::of_file("out", path, "it is a file; name a folder, which may be new"));
        }
        if is_of_a_run(path) {
            // First, so that a folder in use is refused for that reason.
            Self::lock(path)?;
        }
        Self::refuse_what_stands_in_the_way(path)
    }

    /// Refuses a folder with models and checkpoints but without a run: the models may have been published,
    /// and with new models next to them the stated number of models would be wrong.
    fn refuse_what_stands_in_the_way(path: &Path) -> Result<()> {
        if is_of_a_run(path) {
            return Err(Error::Taken(path.to_owned()));
        }
        let holds_anything = |name: &&str| {
            std::fs::read_dir(path.join(name)).is_ok_and(|mut entries| entries.next().is_some())
        };
        let taken = [MODEL, MODELS, CHECKPOINTS, REFERENCES, AUDITS]
            .into_iter()
            .find(holds_anything)
            .or_else(|| path.join(REPORT).symlink_metadata().is_ok().then_some(REPORT));
        match taken {
            None => Ok(()),
            Some(name) => {
                let must_be = format!(
                    "a folder without {name}, which the run would write over or count as its own; name another folder"
                );
                Err(InvalidParameter::new("out", path.display(), must_be).into())
            }
        }
    }

    /// The folder of a run that was started before.
    pub fn open(path: &Path) -> Result<Self> {
        if !path.join(STUDY).is_file() {
            let must_be = format!("the folder of a run, with a file {STUDY} in it");
            return Err(InvalidParameter::new("resume", path.display(), must_be).into());
        }
        Self::lock(path)
    }

    fn lock(path: &Path) -> Result<Self> {
        let lock = FolderLock::take(path)?;
        let folder = Self { path: path.to_path_buf(), resumed_as: path.to_path_buf(), _lock: lock };
        remove_ours(path, |name| [STUDY, REPORT].contains(&name))?;
        remove_ours(&path.join(MODELS), |name| name.ends_with(".safetensors"))?;
        remove_ours(&path.join(MODEL), |name| MODEL_FILES.contains(&name))?;
        for folder in [REFERENCES, AUDITS] {
            remove_ours(&path.join(folder), |name| name.ends_with(".toml"))?;
        }
        Ok(folder)
    }

    /// This folder as a part of the folder `whole`, which resumes all parts.
    pub fn part_of(self, whole: &Path) -> Self {
        Self { resumed_as: whole.to_path_buf(), ..self }
    }

    /// The folder that resumes the study.
    pub fn resumed_as(&self) -> &Path {
        &self.resumed_as
    }

    /// Writes the description of the study.
    pub fn save_study(&self, study: &Study) -> Result<()> {
        let text = toml::to_string(study)?;
        Ok(write_atomically(&self.path.join(STUDY), format!("{}{text}", seal(&text)).as_bytes())?)
    }

    /// Reads the description of the study.
    pub fn study(&self) -> Result<Study> {
        let path = self.path.join(STUDY);
        let refused = |error: &dyn std::fmt::Display| Error::of_file("resume", &path, error);
        let text = std::fs::read_to_string(&path).map_err(|error| refused(&error))?;
        let (first, rest) = text.split_at(text.find('\n').map_or(0, |end| end + 1));
        if first != seal(rest) {
            return Err(refused(
                &"it was modified, since the checksum in its first line does not match: what it states may not \
                                 hold for the trained models",
            ));
        }
        let study: Study = toml::from_str(rest).map_err(|error| refused(&error))?;
        study.check()?;
        Ok(study)
    }

    /// Refuses to repeat a training whose model may have been published: the privacy statement would count
    /// two models of the same data as one.
    pub fn refuse_trained(&self, run: &str) -> Result<()> {
        let model = self.model(run);
        if model.exists() { Err(Error::Trained(model)) } else { Ok(()) }
    }

    fn model(&self, run: &str) -> PathBuf {
        self.path.join(MODELS).join(format!("{run}.safetensors"))
    }

    /// The folder of one run's checkpoints.
    pub fn checkpoints_folder(&self, run: &str) -> PathBuf {
        self.path.join(CHECKPOINTS).join(run)
    }

    /// One run's checkpoints; `id` identifies the run among those of all folders.
    pub fn checkpoints(&self, run: &str, id: RunId) -> Result<Checkpoints> {
        Ok(Checkpoints::open(&self.checkpoints_folder(run), id)?)
    }

    /// Measurements of a run without privacy after these steps, if it was finished.
    pub fn reference(&self, run: &str, tested: &[usize]) -> Result<Option<Measured>> {
        let Some((path, found)) = self.kept::<Measured>(REFERENCES, run)? else { return Ok(None) };
        let steps = found.accuracies.iter().map(|&(step, _)| step);
        if !steps.eq(tested.iter().copied()) || !found.is_plausible() {
            let reason = "accuracies must be shares from 0 to 1 after each step that is tested; remove the file to train this \
                          run anew";
            return Err(Error::of_file("resume", &path, reason));
        }
        Ok(Some(found))
    }

    /// Result of the audit of a mechanism, if it was made.
    pub fn audit(&self, mechanism: &str) -> Result<Option<OneRunReport>> {
        Ok(self.kept(AUDITS, mechanism)?.map(|(_, found)| found))
    }

    /// Writes the result of a mechanism's audit, readable by the owner only.
    pub fn save_audit(&self, mechanism: &str, found: &OneRunReport) -> Result<()> {
        self.keep(AUDITS, mechanism, found)
    }

    /// Writes the measurements of a run without privacy, readable by the owner only.
    pub fn save_reference(&self, run: &str, measured: &Measured) -> Result<()> {
        self.keep(REFERENCES, run, measured)
    }

    /// The value stored under `name` in `folder`, and the path of its file.
    fn kept<T: DeserializeOwned>(&self, folder: &str, name: &str) -> Result<Option<(PathBuf, T)>> {
        let path = self.place(folder, name);
        let text = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(Error::io(&path))?,
        };
        let found = toml::from_str(&text);
        let found = found.map_err(|error| Error::of_file("resume", &path, error))?;
        Ok(Some((path, found)))
    }

    /// Stores `what` under `name` in `folder`, readable by the owner only.
    fn keep<T: Serialize>(&self, folder: &str, name: &str, what: &T) -> Result<()> {
        let path = self.place(folder, name);
        let text = toml::to_string(what)?;
        std::fs::create_dir_all(self.path.join(folder))
            .and_then(|()| write_whole(&path, Access::Owner, text.as_bytes()))
            .map_err(Error::io(&path))
    }

    fn place(&self, folder: &str, name: &str) -> PathBuf {
        self.path.join(folder).join(format!("{}.toml", plain(name)))
    }

    /// Writes one run's final parameters.
    pub fn save_model(&self, run: &str, model: &Saved) -> Result<()> {
        let models = self.path.join(MODELS);
        std::fs::create_dir_all(&models).map_err(Error::io(&models))?;
        Ok(write_atomically(&self.model(run), &model.to_safetensors()?)?)
    }

    /// The folder of the model to give away.
    pub fn model_folder(&self) -> PathBuf {
        self.path.join(MODEL)
    }

    /// Whether the folder of the model to give away exists, complete or not.
    pub fn has_model_folder(&self) -> bool {
        self.model_folder().exists()
    }

    /// Writes the folder of the model to give away, and returns its path: the model, and texts by name.
    pub fn save_model_folder(&self, model: &Saved, texts: &[(&str, String)]) -> Result<PathBuf> {
        let folder = self.model_folder();
        std::fs::create_dir_all(&folder).map_err(Error::io(&folder))?;
        // The model last: no model is ever without its statement.
        for (name, text) in texts {
            write_atomically(&folder.join(name), text.as_bytes())?;
        }
        model.save(&folder)?;
        Ok(folder)
    }

    /// The path of the report.
    pub fn report(&self) -> PathBuf {
        self.path.join(REPORT)
    }

    /// Writes the report and returns its path.
    pub fn save_report(&self, html: &str) -> Result<PathBuf> {
        let path = self.report();
        write_atomically(&path, html.as_bytes())?;
        Ok(path)
    }
}

/// Whether the folder holds a run.
pub fn is_of_a_run(path: &Path) -> bool {
    path.join(STUDY).exists()
}

/// Removes temporary files, left by a killed process, of the files whose names `ours` accepts.
fn remove_ours(folder: &Path, ours: impl Fn(&str) -> bool) -> Result<()> {
    if folder.is_dir() {
        remove_stale(folder, ours).map_err(Error::io(folder))?;
    }
    Ok(())
}

/// First line of a study's file: the SHA-256 of the rest, by which an edit by hand is noticed.
fn seal(text: &str) -> String {
    format!("# {}\n", hex(&Sha256::digest(text.as_bytes())))
}
