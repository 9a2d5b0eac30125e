//! The training file of a checkpoint, bound to its manifest and its run.

use std::path::Path;

use antinoise_input::InvalidParameter;

use super::files::{self, refuse};
use super::folder::Checkpoints;
use super::format::{self, Training};
use super::identity::{Identity, PROGRAM};
use super::manifest::Manifest;
use crate::Error;
use crate::trainer::history::History;
use crate::trainer::setup::Setup;

/// The results of a finished run.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// The parameters after the last step: what the privacy statement covers.
    pub parameters: Vec<f32>,
    /// The measurements of the run.
    pub history: History,
    /// The date of the last step, in UTC, such as 2026-01-31.
    pub day: String,
}

impl Finished {
    /// Reads the results of the finished run in `checkpoints`; the key is gone.
    ///
    /// # Errors
    /// If there is no finished run, its files are damaged, or it belongs to another plan, model, data set or
    /// optimizer.
    pub fn read(setup: Setup, checkpoints: &Checkpoints) -> Result<Self, Error> {
        let manifest = checkpoints.manifest()?;
        let finished = manifest.and_then(|manifest| Some((manifest.finished.clone()?, manifest)));
        let Some((day, manifest)) = finished else {
            return Err(refuse(&checkpoints.training_file(0), "of no finished run"));
        };
        let Training { parameters, history, .. } = read_training(&setup.identity(), checkpoints, &manifest)?;
        Ok(Self { parameters, history, day })
    }
}

/// The entries of the manifest that the training file repeats.
fn marks(manifest: &Manifest) -> [(&'static str, String); 2] {
    [("step", manifest.step.to_string()), ("commitment", manifest.commitment.clone())]
}

/// The contents of the training file of `manifest`, if it belongs to this run.
pub(crate) fn read_training(
    identity: &Identity,
    checkpoints: &Checkpoints,
    manifest: &Manifest,
) -> Result<Training, Error> {
    checkpoints.check_files(manifest)?;
    let path = checkpoints.training_file(manifest.save);
    let bytes = std::fs::read(&path).map_err(Error::io(&path))?;
    let training = format::from_bytes(&bytes).map_err(|reason| refuse(&path, reason))?;
    for (what, mark) in identity.parts().chain(marks(manifest)) {
        // The version does not matter to a finished run, which makes no more noise.
        let matters = what != PROGRAM || manifest.noise.is_some();
        if matters && training.metadata.get(what) != Some(&mark) {
            return Err(refuse_other(&path, what));
        }
    }
    let is_known = |what: &str| identity.parts().chain(marks(manifest)).any(|(known, _)| known == what);
    match training.metadata.keys().find(|what| !is_known(what)) {
        Some(what) => Err(refuse_other(&path, what)),
        None => Ok(training),
    }
}

/// The error of resuming a run with another plan, model, optimizer, data set or program.
fn refuse_other(path: &Path, what: &str) -> Error {
    let must_be = format!(
        "of the {what} that is given now: put that back as it was when the run began, or train in another folder, and count \
         the models that this run may have released"
    );
    InvalidParameter::new(format!("checkpoint {}", path.display()), format!("of another {what}"), must_be)
        .into()
}

/// Writes the training file of `manifest`: parameters, moments and history.
pub(crate) fn write_training(
    identity: &Identity,
    checkpoints: &Checkpoints,
    manifest: &Manifest,
    (parameters, moments, history): (&[f32], (&[f32], &[f32]), &History),
) -> Result<(), Error> {
    let path = checkpoints.training_file(manifest.save);
    let metadata =
        identity.parts().chain(marks(manifest)).map(|(what, mark)| (what.to_owned(), mark)).collect();
    let bytes = format::to_bytes(metadata, parameters, moments, history)
        .map_err(|error| Error::io(&path)(std::io::Error::other(error)))?;
    files::write(&path, &bytes)
}
