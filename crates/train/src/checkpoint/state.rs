//! The state of a run: begun, saved to a checkpoint, and resumed from one.

use std::time::SystemTime;

use antinoise_input::hex;
use antinoise_noise::{Key, NoiseStream, RunId, StreamBuilder};
use antinoise_plan::Plan;

use super::files::mismatch;
use super::folder::Checkpoints;
use super::identity::Identity;
use super::manifest::Manifest;
use super::training_file::{History, Training, read_training, write_training};
use crate::Error;
use crate::date::utc_day;
use crate::optimizer::{Optimizer, OptimizerConfig};

/// The state of a run under a plan.
///
/// ```
/// use antinoise_noise::{Key, RunId};
/// use antinoise_plan::{Length, Request, Setting, choose};
/// use antinoise_train::checkpoint::{Checkpoints, Identity, RunState};
/// use antinoise_train::optimizer::UpdateRule;
/// let plan = choose(&Request::new(1000, 100, Length::Epochs(1), Setting::Cyclic))?.plan;
/// let (identity, config) = (Identity::new([("model", "two numbers".into())]), UpdateRule::Sgd { learning_rate: 0.1, momentum: 0.0 }.into());
/// let folder = tempfile::tempdir().unwrap();
/// let checkpoints = Checkpoints::open(folder.path(), RunId::default())?;
/// let mut run = RunState::begin(identity.clone(), &plan, config, RunId::default(), vec![0.0; 2], Key::from_os()?)?;
/// let mut noisy_sum = vec![0.0; 2];
/// run.noise.add_to_sum(&[0.5, -0.5], &mut noisy_sum)?;
/// run.optimizer.step(&mut run.parameters, &noisy_sum);
/// run.save(&checkpoints)?;
/// let resumed = RunState::resume(identity, &plan, config, &checkpoints)?;
/// assert_eq!((resumed.noise.step(), resumed.parameters), (1, run.parameters));
/// # Ok::<(), antinoise_train::Error>(())
/// ```
pub struct RunState {
    /// The noise of the steps to come; its step is the number of steps done.
    pub noise: NoiseStream,
    /// The optimizer, with its moments.
    pub optimizer: Optimizer,
    /// The parameters after the steps done.
    pub parameters: Vec<f32>,
    /// The measurements so far.
    pub history: History,
    identity: Identity,
    origin: String,
    /// Steps of the whole run.
    steps: usize,
}

impl RunState {
    /// The state before the first step of a run called `run`, from the parameters `start`.
    ///
    /// # Errors
    /// If the plan's noise cannot be made for `start`, or the optimizer's numbers are out of range.
    pub fn begin(
        identity: Identity,
        plan: &Plan,
        config: OptimizerConfig,
        run: RunId,
        start: Vec<f32>,
        key: Key,
    ) -> Result<Self, Error> {
        let noise = noise_of(plan, start.len(), run, identity.digest())?.build(key)?;
        let optimizer = Optimizer::of_run(config, start.len(), plan.steps)?;
        let (origin, history, steps) = (hex(&noise.commitment()), History::default(), plan.steps);
        Ok(Self { noise, optimizer, parameters: start, history, identity, origin, steps })
    }

    /// The commitment, in hexadecimal, of the noise before the first step: to the key, the name of the run
    /// and its identity.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Commits a checkpoint or, after the last step, the results without the key. If this fails or is killed
    /// at any moment, either the previous checkpoint or this one can be resumed.
    ///
    /// # Errors
    /// If a file cannot be written, or `checkpoints` belong to a run with another key or to a later step.
    pub fn save(&self, checkpoints: &Checkpoints) -> Result<(), Error> {
        let Some(mut manifest) = self.next_manifest(checkpoints)? else { return Ok(()) };
        let is_unfinished = manifest.step < self.steps;
        let moments = if is_unfinished {
            self.noise.save(checkpoints.noise_file(manifest.save))?;
            self.optimizer.moments()
        } else {
            manifest.finished = Some(utc_day(SystemTime::now()));
            (&[][..], &[][..])
        };
        let contents = (&self.parameters[..], moments, &self.history);
        write_training(&self.identity, checkpoints, &manifest, contents)?;
        checkpoints.commit(manifest, is_unfinished)
    }

    /// The manifest after the committed one, which must belong to the same run; `None` if the run is
    /// finished.
    fn next_manifest(&self, checkpoints: &Checkpoints) -> Result<Option<Manifest>, Error> {
        let step = self.noise.step();
        let commitments = || (self.origin.clone(), hex(&self.noise.commitment()));
        let next = |save| Some(Manifest::new(checkpoints.run(), save, step, commitments()));
        let Some(before) = checkpoints.manifest()? else { return Ok(next(0)) };
        let refused = |got| Err(mismatch(&checkpoints.training_file(before.save), got));
        if before.origin != self.origin {
            return refused("of a run with another key".into());
        }
        if before.step > step {
            return refused(format!("of step {}, where this run is at step {step}", before.step));
        }
        Ok(if before.finished.is_some() { None } else { next(before.save + 1) })
    }

    /// Reads the committed state of the unfinished run with this identity.
    ///
    /// # Errors
    /// If `checkpoints` hold no unfinished run, its files were not committed together, or it belongs to a run
    /// with another identity, plan or optimizer.
    pub fn resume(
        identity: Identity,
        plan: &Plan,
        config: OptimizerConfig,
        checkpoints: &Checkpoints,
    ) -> Result<Self, Error> {
        let manifest = checkpoints.manifest()?.filter(|manifest| manifest.noise.is_some());
        let manifest = manifest
            .ok_or_else(|| mismatch(&checkpoints.training_file(0), "of no run that can be resumed"))?;
        let Training { parameters, moments, history, .. } = read_training(&identity, checkpoints, &manifest)?;
        let path = checkpoints.noise_file(manifest.save);
        let run = checkpoints.run().clone();
        let noise = noise_of(plan, parameters.len(), run, identity.digest())?.resume(&path)?;
        if (noise.step(), hex(&noise.commitment())) != (manifest.step, manifest.commitment) {
            return Err(mismatch(&path, "of another run or step"));
        }
        let optimizer = Optimizer::of_run(config, parameters.len(), plan.steps)?;
        let optimizer = optimizer.after(manifest.step, moments)?;
        let (origin, steps) = (manifest.origin, plan.steps);
        Ok(Self { noise, optimizer, parameters, history, identity, origin, steps })
    }
}

/// The builder of the noise of `plan` for `dim` numbers.
pub(crate) fn noise_of(
    plan: &Plan,
    dim: usize,
    run: RunId,
    context: [u8; 32],
) -> Result<StreamBuilder, antinoise_plan::Error> {
    let recursion = plan.strategy.recursion()?;
    let builder =
        NoiseStream::builder(recursion, plan.steps, dim, plan.noise_std()).run(run).context(context);
    Ok(builder.grid(plan.arithmetic.grid()?))
}
