//! This project's own trainer as a training under audit.

use antinoise_noise::{Key, RunId};
use antinoise_train::checkpoint::Checkpoints;

use antinoise_train::trainer::{Setup, Trainer};
use tempfile::TempDir;

use super::contract::{StepRecord, Training};
use super::inputs::TrainingInputs;
use crate::Error;

/// This project's own trainer, with one key for all of its runs.
pub struct BuiltinTraining<'a> {
    inputs: &'a TrainingInputs,
    seed: u64,
    run: RunId,
    trainer: Option<Trainer<'a>>,
}

impl<'a> BuiltinTraining<'a> {
    /// The training on `inputs`, with a key that is made from `seed`: the noise of an audit need not be
    /// secret.
    pub fn new(inputs: &'a TrainingInputs, seed: u64) -> Self {
        Self { inputs, seed, run: RunId::default(), trainer: None }
    }

    fn setup(&self) -> Setup<'a> {
        let TrainingInputs { plan, dataset, model } = self.inputs;
        Setup { plan, model, dataset, optimizer: self.inputs.rule().into(), groups: None }
    }
}

impl Training for BuiltinTraining<'_> {
    fn inputs(&self) -> &TrainingInputs {
        self.inputs
    }

    fn begin(&mut self, run: u64, noise_only: bool) -> Result<(), Error> {
        self.inputs.model.watch.set_noise_only(noise_only);
        self.run = RunId::from(run);
        let (start, key) = (vec![0.0; self.inputs.parameters()], Key::from_seed_insecure(self.seed));
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

    fn step(&mut self) -> Result<StepRecord, Error> {
        let trainer = self.trainer.as_mut().expect("a run was begun");
        trainer.step()?;
        Ok(StepRecord {
            batch: self.inputs.model.watch.take_batch(),
            noisy_sum: trainer.noisy_sum().to_vec(),
            parameters: trainer.parameters().to_vec(),
        })
    }
}
