//! A run in checkpoints.

use std::time::SystemTime;

use antinoise_input::hex;

use super::checkpoint::{Checkpoints, Lineage, Manifest, Training, read_training, refuse, write_training};
use super::setup::Setup;
use super::steps::Trainer;
use crate::Error;
use crate::date::utc_day;
use crate::optimizer::Optimizer;

impl<'a> Trainer<'a> {
    /// Commits a checkpoint: whatever happens on the way, what was committed before or this one can be resumed. After
    /// the last step it commits the results, and wipes the key and all that could make the noise again.
    ///
    /// # Errors
    /// When a file cannot be written, or `checkpoints` are those of a run with another key or of a later step.
    pub fn save(&self, checkpoints: &Checkpoints) -> Result<(), Error> {
        let Some(mut manifest) = self.next_manifest(checkpoints)? else { return Ok(()) };
        let goes_on = manifest.step < self.setup.plan.steps;
        let moments = if goes_on {
            self.noise.save(checkpoints.noise_file(manifest.save))?;
            self.optimizer.moments()
        } else {
            manifest.finished = Some(utc_day(SystemTime::now()));
            (&[][..], &[][..])
        };
        let state = (&self.parameters[..], moments, &self.history);
        write_training(&self.lineage.identity, checkpoints, &manifest, state)?;
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
        let (builder, grid) = setup.noise(checkpoints.run().clone(), identity.digest())?;
        let noise = builder.resume_any(grid, &path)?;
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
}
