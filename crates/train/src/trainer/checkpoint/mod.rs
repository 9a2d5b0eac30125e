//! Checkpoints: a run that is stopped or killed goes on to the same bits, or starts anew with a fresh key; a run that
//! is finished leaves its results and no key.

mod files;
mod folder;
mod format;
mod identity;
mod lock;
mod manifest;

use std::path::Path;
use std::time::SystemTime;

use antinoise_input::{InvalidParameter, hex};

pub use folder::{Checkpoints, Committed};
pub use lock::FolderLock;

use self::format::Training;
use self::identity::PROGRAM;
use self::manifest::Manifest;
use super::{History, Setup, Trainer};
use crate::Error;
use crate::date::utc_day;
use crate::optimizer::Optimizer;
pub(super) use identity::{Identity, Lineage};

/// What a finished run left behind.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// The parameters after the last step: what the privacy statement covers.
    pub parameters: Vec<f32>,
    /// What was measured on the way.
    pub history: History,
    /// The day of the last step, in UTC, as 2026-01-31.
    pub day: String,
}

impl Finished {
    /// Reads the results of the finished run in `checkpoints`, without its key.
    ///
    /// # Errors
    /// When no finished run is there, its files are not whole, or it is of another plan, model, data set or optimiser.
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

impl<'a> Trainer<'a> {
    /// Commits a checkpoint: whatever happens on the way, what was committed before or this one can be resumed. After
    /// the last step it commits the results, and wipes the key and all that could make the noise again.
    ///
    /// # Errors
    /// When a file cannot be written, or `checkpoints` are those of a run with another key or of a later step.
    pub fn save(&self, checkpoints: &Checkpoints) -> Result<(), Error> {
        let Some(mut manifest) = self.next_manifest(checkpoints)? else { return Ok(()) };
        let goes_on = manifest.step < self.setup.plan.steps;
        if goes_on {
            self.noise.save(checkpoints.noise_file(manifest.save))?;
            self.write_training(checkpoints, &manifest, self.optimizer.moments())?;
        } else {
            manifest.finished = Some(utc_day(SystemTime::now()));
            self.write_training(checkpoints, &manifest, (&[], &[]))?;
        }
        checkpoints.commit(manifest, goes_on)
    }

    /// The run whose checkpoint is committed; it goes on as if it had not been interrupted.
    ///
    /// Steps after the checkpoint are done again: with the same key, batches and noise they give the same bits.
    ///
    /// # Errors
    /// When there is no unfinished run in `checkpoints`, its files are not those that were committed together, or it
    /// is of another plan, model, data set, optimiser or version of this program.
    pub fn resume(setup: Setup<'a>, checkpoints: &Checkpoints) -> Result<Self, Error> {
        let manifest = checkpoints.manifest()?.filter(|manifest| manifest.noise.is_some());
        let manifest =
            manifest.ok_or_else(|| refuse(&checkpoints.training_file(0), "of no run that goes on"))?;
        let identity = setup.identity();
        let Training { parameters, moments, history, .. } = read_training(&identity, checkpoints, &manifest)?;
        setup.check(&parameters)?;
        let path = checkpoints.noise_file(manifest.save);
        let noise = setup.noise(checkpoints.run().clone(), &identity)?.resume(&path)?;
        if (noise.step(), hex(&noise.commitment())) != (manifest.step, manifest.commitment) {
            return Err(refuse(&path, "of another run or step"));
        }
        let optimizer = Optimizer::resume(setup.rule, parameters.len(), manifest.step as u64, moments)?;
        let batches = setup.batches(&noise)?;
        let lineage = Lineage { identity, origin: manifest.origin };
        Ok(Self { setup, batches, noise, optimizer, parameters, history, lineage })
    }

    /// The manifest that follows the committed one, which must be of this very run; `None` when that is finished.
    fn next_manifest(&self, checkpoints: &Checkpoints) -> Result<Option<Manifest>, Error> {
        let step = self.step_count();
        let commitments = || (self.lineage.origin.clone(), hex(&self.noise.commitment()));
        let next = |save| Some(Manifest::new(checkpoints.run(), save, step, commitments()));
        let Some(before) = checkpoints.manifest()? else { return Ok(next(0)) };
        let refuse = |got| Err(refuse(&checkpoints.training_file(before.save), got));
        if before.origin != self.lineage.origin {
            return refuse("of a run with another key".into());
        }
        if before.step > step {
            return refuse(format!("of step {}, where this run is at step {step}", before.step));
        }
        Ok(if before.finished.is_some() { None } else { next(before.save + 1) })
    }

    fn write_training(
        &self,
        checkpoints: &Checkpoints,
        manifest: &Manifest,
        moments: (&[f32], &[f32]),
    ) -> Result<(), Error> {
        let path = checkpoints.training_file(manifest.save);
        let identity = self.lineage.identity.parts().chain(marks(manifest));
        let metadata = identity.map(|(what, mark)| (what.to_owned(), mark)).collect();
        let bytes = format::to_bytes(metadata, &self.parameters, moments, &self.history)
            .map_err(|error| Error::io(&path)(std::io::Error::other(error)))?;
        files::write(&path, &bytes)
    }
}

/// What the training file repeats of its manifest.
fn marks(manifest: &Manifest) -> [(&'static str, String); 2] {
    [("step", manifest.step.to_string()), ("commitment", manifest.commitment.clone())]
}

fn read_training(
    identity: &Identity,
    checkpoints: &Checkpoints,
    manifest: &Manifest,
) -> Result<Training, Error> {
    checkpoints.check_files(manifest)?;
    let path = checkpoints.training_file(manifest.save);
    let bytes = std::fs::read(&path).map_err(Error::io(&path))?;
    let training = format::from_bytes(&bytes).map_err(|reason| refuse(&path, reason))?;
    for (what, mark) in identity.parts().chain(marks(manifest)) {
        // A finished run makes no noise any more.
        let matters = what != PROGRAM || manifest.noise.is_some();
        if matters && training.metadata.get(what) != Some(&mark) {
            return Err(refuse(&path, format!("of another {what}")));
        }
    }
    Ok(training)
}

fn refuse(path: &Path, got: impl std::fmt::Display) -> Error {
    let folder = path.parent().unwrap_or(path).display();
    let must_be = format!(
        "what this run committed: put back the files of {folder} as they were, all from one copy; where they are lost, \
         train in another folder, and count the models that this run may have released"
    );
    InvalidParameter::new(format!("checkpoint {}", path.display()), got, must_be).into()
}
