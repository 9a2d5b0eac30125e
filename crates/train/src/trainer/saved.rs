//! Saving runs to checkpoints, and resuming them.

use std::time::SystemTime;

use antinoise_input::hex;
use antinoise_noise::{Grid, NoiseStream, Purpose, RunId, StreamBuilder};
use antinoise_plan::Participations;

use super::checkpoint::{
    Checkpoints, Identity, Lineage, Manifest, Training, read_training, refuse, write_training,
};
use super::history::History;
use super::setup::Setup;
use super::steps::{Buffers, Trainer};
use crate::Error;
use crate::date::utc_day;
use crate::optimizer::{Optimizer, Recipe};

/// The parts of a run of `steps` steps that a checkpoint holds.
pub(crate) struct State<'s> {
    pub(crate) lineage: &'s Lineage,
    pub(crate) steps: usize,
    pub(crate) noise: &'s NoiseStream,
    pub(crate) optimizer: &'s Optimizer,
    pub(crate) parameters: &'s [f32],
    pub(crate) history: &'s History,
}

/// The parts of a run restored from a checkpoint.
pub(crate) struct Restored {
    pub(crate) lineage: Lineage,
    pub(crate) noise: NoiseStream,
    pub(crate) optimizer: Optimizer,
    pub(crate) parameters: Vec<f32>,
    pub(crate) history: History,
}

impl State<'_> {
    /// Commits a checkpoint or, after the last step, the results.
    pub(crate) fn save(&self, checkpoints: &Checkpoints) -> Result<(), Error> {
        let Some(mut manifest) = self.next_manifest(checkpoints)? else { return Ok(()) };
        let goes_on = manifest.step < self.steps;
        let moments = if goes_on {
            self.noise.save(checkpoints.noise_file(manifest.save))?;
            self.optimizer.moments()
        } else {
            manifest.finished = Some(utc_day(SystemTime::now()));
            (&[][..], &[][..])
        };
        write_training(
            &self.lineage.identity,
            checkpoints,
            &manifest,
            (self.parameters, moments, self.history),
        )?;
        checkpoints.commit(manifest, goes_on)
    }

    /// The manifest after the committed one, which must belong to the same run; `None` if the run is
    /// finished.
    fn next_manifest(&self, checkpoints: &Checkpoints) -> Result<Option<Manifest>, Error> {
        let step = self.noise.step();
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

impl Restored {
    /// Reads the committed state of the run with this identity. `noise` returns the builder and the grid of
    /// its stream.
    pub(crate) fn read(
        identity: Identity,
        (recipe, steps): (Recipe, usize),
        checkpoints: &Checkpoints,
        noise: impl FnOnce(RunId, [u8; 32]) -> Result<(StreamBuilder, Option<Grid>), antinoise_plan::Error>,
        check: impl FnOnce(&[f32]) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let manifest = checkpoints.manifest()?.filter(|manifest| manifest.noise.is_some());
        let manifest =
            manifest.ok_or_else(|| refuse(&checkpoints.training_file(0), "of no run that can be resumed"))?;
        let Training { parameters, moments, history, .. } = read_training(&identity, checkpoints, &manifest)?;
        check(&parameters)?;
        let path = checkpoints.noise_file(manifest.save);
        let (builder, grid) = noise(checkpoints.run().clone(), identity.digest())?;
        let noise = builder.grid(grid).resume(&path)?;
        if (noise.step(), hex(&noise.commitment())) != (manifest.step, manifest.commitment) {
            return Err(refuse(&path, "of another run or step"));
        }
        let optimizer = Optimizer::of_run(recipe, parameters.len(), steps)?.after(manifest.step, moments)?;
        let lineage = Lineage { identity, origin: manifest.origin };
        Ok(Self { lineage, noise, optimizer, parameters, history })
    }
}

impl<'a> Trainer<'a> {
    /// Commits a checkpoint. If this fails or is killed at any moment, either the previous checkpoint or this
    /// one can be resumed. After the last step, commits the results and wipes the key and everything that
    /// could reproduce the noise.
    ///
    /// # Errors
    /// If a file cannot be written, or `checkpoints` belong to a run with another key or to a later step.
    pub fn save(&self, checkpoints: &Checkpoints) -> Result<(), Error> {
        let Self { lineage, noise, optimizer, parameters, history, setup, .. } = self;
        State { lineage, steps: setup.plan.steps, noise, optimizer, parameters, history }.save(checkpoints)
    }

    /// Resumes the run of the committed checkpoint; it continues as if it had not been interrupted.
    ///
    /// Steps after the checkpoint are repeated, with the same key, batches, noise and bits.
    ///
    /// # Errors
    /// If `checkpoints` hold no unfinished run, its files were not committed together, or it belongs to
    /// another plan, model, data set, optimizer or version of this program.
    pub fn resume(setup: Setup<'a>, checkpoints: &Checkpoints) -> Result<Self, Error> {
        let noise = |run, context| setup.noise(run, context);
        let check = |parameters: &[f32]| setup.check(parameters);
        let Restored { lineage, noise, optimizer, parameters, history } =
            Restored::read(setup.identity(), (setup.recipe, setup.plan.steps), checkpoints, noise, check)?;
        let batches = setup.batches(&noise)?;
        let batch = |step| batches.at(step, &mut noise.rng(Purpose::BatchSampling, step as u64));
        let participations =
            Participations::of_steps(setup.plan, noise.step(), |step| Ok::<_, Error>(batch(step)))?;
        let buffers = Buffers::new(setup.model.parameters());
        Ok(Self { setup, batches, participations, noise, optimizer, parameters, buffers, history, lineage })
    }
}
