//! The real trainer of this project under audit.

use antinoise_noise::{Key, RunId};
use antinoise_train::trainer::{Checkpoints, Setup, Trainer};
use tempfile::TempDir;

use super::contract::{Seen, TrainingUnderAudit};
use super::ground::Ground;
use crate::Error;

/// The real trainer, with one key for all of its runs.
pub struct RealTraining<'a> {
    ground: &'a Ground,
    seed: u64,
    run: RunId,
    trainer: Option<Trainer<'a>>,
}

impl<'a> RealTraining<'a> {
    /// The training on `ground`, with a key made from `seed`: the noise of an audit protects nothing.
    pub fn new(ground: &'a Ground, seed: u64) -> Self {
        Self { ground, seed, run: RunId::default(), trainer: None }
    }

    fn setup(&self) -> Setup<'a> {
        let Ground { plan, dataset, model } = self.ground;
        Setup { plan, model, dataset, recipe: self.ground.rule().into(), groups: None }
    }
}

impl TrainingUnderAudit for RealTraining<'_> {
    fn ground(&self) -> &Ground {
        self.ground
    }

    fn begin(&mut self, run: u64, noise_only: bool) -> Result<(), Error> {
        self.ground.model.watch.set_noise_only(noise_only);
        self.run = RunId::from(run);
        let (start, key) = (vec![0.0; self.ground.parameters()], Key::from_seed_insecure(self.seed));
        self.trainer = Some(Trainer::new(self.setup(), self.run.clone(), start, key)?);
        Ok(())
    }

    fn interrupt(&mut self) -> Result<(), Error> {
        let folder = TempDir::new()?;
        let checkpoints = Checkpoints::open(folder.path(), self.run.clone())?;
        let trainer = self.trainer.take().expect("a run was begun");
        trainer.save(&checkpoints)?;
        drop(trainer);
        self.trainer = Some(Trainer::resume(self.setup(), &checkpoints)?);
        Ok(())
    }

    fn step(&mut self) -> Result<Seen, Error> {
        let trainer = self.trainer.as_mut().expect("a run was begun");
        trainer.step()?;
        Ok(Seen {
            batch: self.ground.model.watch.take_batch(),
            release: trainer.release().to_vec(),
            parameters: trainer.parameters().to_vec(),
        })
    }
}
