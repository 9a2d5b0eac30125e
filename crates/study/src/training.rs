//! The runs of a study: started, resumed, or read where they were finished before.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use antinoise_federated::{FederatedSetup, Federation, Population};
use antinoise_noise::{Key, KeyedRng, Purpose, RunId};
use antinoise_plan::VerifiedPlan;
use antinoise_train::checkpoint::{self, Checkpoints, Committed, History, Identity};
use antinoise_train::clip::Groups;
use antinoise_train::optimizer::UpdateRule;
use antinoise_train::reference::{Measured, Reference};
use antinoise_train::trainer::{self, CheckpointInterval, Options, Outcome, Run, Setup, Trainer};

use crate::error::{Error, Result};
use crate::event::{Event, OnEvent};
use crate::folder::Folder;
use crate::local::Local;
use crate::metrics::Metrics;
use crate::named::{NamedPlan, WITHOUT_NOISE};
use crate::results::{Finished, Results, Unprotected};
use crate::rounds::Rounds;
use crate::search::Search;
use crate::study::{Study, run_name};
use crate::task::{Labels, Task};

/// Number of tests in a run.
const TESTS: usize = 40;
/// Number of checkpoints in a short run. Longer runs have more, so that a killed process loses little.
const CHECKPOINTS: usize = 20;
const MOST_LOST: Duration = Duration::from_secs(30);
/// Limit on the time of saves: at most a twentieth of the run.
const REST: u32 = 20;

/// Completes all trainings of the study, including those at learning rates that the search adds.
pub fn train(study: &Study, task: &Task, around: Around) -> Result<Results> {
    let groups = task.groups(study.clip_by())?;
    let mut steps: usize = study.plans().iter().map(|named| named.plan.steps).sum();
    steps += if study.without_noise() { study.plans()[0].plan.steps } else { 0 };
    (around.on_event)(Event::Training { steps: (steps * study.models_of_a_mechanism()) as u64 });
    let results = Training { study, task, groups: groups.as_ref(), around }.all()?;
    (around.on_event)(Event::Ended);
    Ok(results)
}

/// The folder, the stop signal, the metrics file and the observer of all runs.
#[derive(Clone, Copy)]
pub struct Around<'a> {
    /// The study's folder.
    pub folder: &'a Folder,
    /// Stops the runs once it is true.
    pub stop: &'a AtomicBool,
    /// The file of metrics; `None`: no metrics.
    pub metrics: Option<&'a Metrics>,
    /// Receives the events of the runs.
    pub on_event: OnEvent<'a>,
}

/// All runs of a study, in its folder.
struct Training<'a> {
    study: &'a Study,
    task: &'a Task,
    groups: Option<&'a Groups>,
    around: Around<'a>,
}

impl Training<'_> {
    /// Runs every mechanism, and training without privacy.
    fn all(&self) -> Result<Results> {
        let Self { study, task, .. } = *self;
        let mut finished = Vec::new();
        for (plan, named) in study.plans().iter().enumerate() {
            self.search(named.plan.steps, |rule, repeat| {
                let name = run_name(&named.mechanism, &rule, repeat);
                let results = self.one(named, rule, repeat)?;
                let run = Finished { plan, rule, results };
                if run.diverged() {
                    let warning =
                        format!("{name} diverged: its parameters are not finite, and no model is saved");
                    (self.around.on_event)(Event::Warning(&warning));
                } else {
                    let saved = task.saved(run.results.parameters.clone())?;
                    self.around.folder.save_model(&name, &saved)?;
                }
                let accuracy = run.rate_and_accuracy().1;
                finished.push(run);
                Ok(accuracy)
            })?;
        }
        Ok(Results { finished, references: self.references()? })
    }

    /// Trains without clipping and noise, if the study includes this.
    fn references(&self) -> Result<Vec<Unprotected>> {
        let Self { study, task, .. } = *self;
        let mut found = Vec::new();
        if !study.without_noise() {
            return Ok(found);
        }
        let Labels { dataset, model, .. } = task.labels("without_noise")?;
        let plan = &study.plans()[0].plan;
        let (batch_size, steps, test_every) = (plan.batch_size, plan.steps, plan.steps.div_ceil(TESTS));
        self.search(steps, |rule, repeat| {
            let optimizer = study.optimizer(rule);
            let reference = Reference { model, dataset, optimizer, batch_size, steps, test_every };
            let run = Unprotected { rule, measured: self.one_reference(&reference, repeat)? };
            let accuracy = run.rate_and_accuracy().1;
            found.push(run);
            Ok(accuracy)
        })?;
        Ok(found)
    }

    /// Calls `run`, which returns the accuracy after `steps` steps, for every learning rate and repeat of the
    /// search.
    fn search(&self, steps: usize, mut run: impl FnMut(UpdateRule, usize) -> Result<f64>) -> Result<()> {
        let Self { study, around: Around { on_event, .. }, .. } = self;
        let rates: Vec<f64> = study.rules().iter().map(UpdateRule::learning_rate).collect();
        let (repeats, tests) = (study.repeats(), self.task.tested().count());
        let search = Search { rates: &rates, repeats, repeats_all: !study.widens(), tests };
        let may_try = |rate, tried| {
            let may = study.may_try(rate, tried);
            if may {
                on_event(Event::Added { steps: (steps * repeats) as u64 });
            }
            may
        };
        let (runs, tried) = search.all(may_try, |rate, repeat| run(study.rule(rate), repeat))?;
        on_event(Event::Skipped { steps: (steps * (tried * repeats - runs.len())) as u64 });
        Ok(())
    }

    /// Measurements of one run without privacy, which is run unless a stored result exists.
    fn one_reference(&self, reference: &Reference, repeat: usize) -> Result<Measured> {
        let Self { study, around: Around { folder, stop, on_event, .. }, .. } = self;
        let name = run_name(WITHOUT_NOISE, &reference.optimizer.rule, repeat);
        if let Some(measured) = folder.reference(&name, &reference.tested())? {
            on_event(Event::Skipped { steps: reference.steps as u64 });
            return Ok(measured);
        }
        on_event(Event::Running { run: &name, accuracy: None });
        let (key, run) = (study.key(repeat)?, study.run_id(&name)?);
        let rng = |purpose| KeyedRng::new(&key, &run, purpose, 0);
        let start = self.task.initial_parameters(&mut rng(Purpose::Initialization));
        let mut order = rng(Purpose::DataOrder);
        let measured = reference.train(start, &mut order, stop, || on_event(Event::Stepped))?;
        let Some(measured) = measured else {
            return Err(Error::Stopped { at: None, run: name, folder: folder.resumed_as().to_owned() });
        };
        folder.save_reference(&name, &measured)?;
        Ok(measured)
    }

    /// The results of one run, which is started, resumed or was finished before.
    fn one(&self, named: &NamedPlan, rule: UpdateRule, repeat: usize) -> Result<checkpoint::Finished> {
        let Self { study, task, groups, .. } = *self;
        let (plan, optimizer) = (&named.plan, study.optimizer(rule));
        let run = OneRun { all: self, plan, name: &run_name(&named.mechanism, &rule, repeat), repeat };
        match (study.local().map(Local::steps), task) {
            (None, _) => {
                let Labels { dataset, model, .. } = task.labels("batches that are no rounds")?;
                run.of_batches(Setup { plan, model, dataset, optimizer, groups })
            }
            (Some(local), Task::Labels(labels)) => {
                run.of_rounds(FederatedSetup { plan, population: &labels.population()?, local, optimizer })
            }
            (Some(local), Task::Texts(texts)) => {
                run.of_rounds(FederatedSetup { plan, population: &texts.training, local, optimizer })
            }
        }
    }
}

/// One run of a study.
struct OneRun<'a> {
    all: &'a Training<'a>,
    plan: &'a VerifiedPlan,
    name: &'a str,
    repeat: usize,
}

impl OneRun<'_> {
    /// The results of a run whose trainer forms the batches.
    fn of_batches(&self, setup: Setup) -> Result<checkpoint::Finished> {
        let run = self.all.study.run_id(self.name)?;
        let checkpoints = self.all.around.folder.checkpoints(self.name, run.clone())?;
        let mut trainer = match checkpoints.committed()? {
            Committed::Empty => {
                let (key, start) = self.key_and_start(&run)?;
                Trainer::new(setup, run, start, key)?
            }
            Committed::Unfinished { .. } => Trainer::resume(setup, &checkpoints)?,
            Committed::Finished => return self.finished(&setup.identity(), &checkpoints),
        };
        let (test_every, interval) = self.intervals();
        let options = Options { test_every, checkpoints: Some((&checkpoints, interval)) };
        self.begins(trainer.step_count())?;
        let mut told = Ok(());
        let outcome = trainer.run(&options, self.all.around.stop, |trainer| {
            self.stepped((trainer.step_count(), trainer.history()), &mut told);
        })?;
        told?;
        self.refuse_stopped(outcome, trainer.step_count())?;
        Ok(checkpoint::Finished::read(&setup.identity(), &checkpoints)?)
    }

    /// The results of a run of federated rounds.
    fn of_rounds<P: Population>(&self, setup: FederatedSetup<P>) -> Result<checkpoint::Finished> {
        let run = self.all.study.run_id(self.name)?;
        let Around { folder, stop, .. } = self.all.around;
        let (path, open) =
            (folder.checkpoints_folder(self.name), || folder.checkpoints(self.name, run.clone()));
        let checkpoints = open()?;
        let committed = checkpoints.committed()?;
        if committed == Committed::Finished {
            return self.finished(&setup.identity(), &checkpoints);
        }
        // The federation takes the lock of the folder.
        drop(checkpoints);
        let federation = if committed == Committed::Empty {
            let (key, start) = self.key_and_start(&run)?;
            Federation::begin(setup, &path, run.clone(), start, key)?
        } else {
            Federation::resume(setup, &path, run.clone())?
        };
        let mut rounds = Rounds { federation, steps: self.plan.steps, task: self.all.task };
        self.begins(rounds.step_count())?;
        let mut told = Ok(());
        let outcome = trainer::run(&mut rounds, self.intervals(), stop, |rounds| {
            self.stepped((rounds.step_count(), rounds.history()), &mut told);
        })?;
        told?;
        self.refuse_stopped(outcome, rounds.step_count())?;
        drop(rounds);
        Ok(checkpoint::Finished::read(&setup.identity(), &open()?)?)
    }

    /// The key of a new run and the parameters that it starts from.
    fn key_and_start(&self, run: &RunId) -> Result<(Key, Vec<f32>)> {
        self.all.around.folder.refuse_trained(self.name)?;
        let key = self.all.study.key(self.repeat)?;
        let mut rng = KeyedRng::new(&key, run, Purpose::Initialization, 0);
        let start = self.all.task.initial_parameters(&mut rng);
        Ok((key, start))
    }

    /// The results of a run that was finished before.
    fn finished(&self, identity: &Identity, checkpoints: &Checkpoints) -> Result<checkpoint::Finished> {
        (self.all.around.on_event)(Event::Skipped { steps: self.plan.steps as u64 });
        Ok(checkpoint::Finished::read(identity, checkpoints)?)
    }

    /// Steps from one test to the next, and the interval of checkpoints.
    fn intervals(&self) -> (usize, CheckpointInterval) {
        let steps = self.plan.steps;
        let (max_steps, max_time, min_rest) = (steps.div_ceil(CHECKPOINTS), MOST_LOST, REST);
        (steps.div_ceil(TESTS), CheckpointInterval { max_steps, max_time, min_rest })
    }

    /// Tells observer and metrics that the run has begun or resumed, with `done` steps done.
    fn begins(&self, done: usize) -> Result<()> {
        let Around { metrics, on_event, .. } = self.all.around;
        on_event(Event::Skipped { steps: done as u64 });
        on_event(Event::Running { run: self.name, accuracy: None });
        metrics.map_or(Ok(()), |metrics| metrics.resume(self.name, done))
    }

    /// Tells observer and metrics of a step; after a failure in `told`, observers alone.
    fn stepped(&self, (step, history): (usize, &History), told: &mut Result<()>) {
        let Around { metrics, on_event, .. } = self.all.around;
        on_event(Event::Stepped);
        if let Some(&(_, accuracy)) = history.accuracies.last() {
            on_event(Event::Running { run: self.name, accuracy: Some(accuracy) });
        }
        if let (Some(metrics), Ok(())) = (metrics, &told) {
            let settings = (self.plan.privacy.epsilon, self.all.study.clip_by());
            *told = metrics.tell(self.name, settings, (step, history));
        }
    }

    /// The error of a run that was asked to stop.
    fn refuse_stopped(&self, outcome: Outcome, step: usize) -> Result<()> {
        if outcome == Outcome::Finished {
            return Ok(());
        }
        let folder = self.all.around.folder.resumed_as().to_owned();
        Err(Error::Stopped { at: Some((step, self.plan.steps)), run: self.name.into(), folder })
    }
}
