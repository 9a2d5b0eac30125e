//! The runs of a study: started, resumed, or read where they were finished before.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use antinoise_noise::{KeyedRng, Purpose};
use antinoise_train::checkpoint::{self, Committed};
use antinoise_train::clip::Groups;
use antinoise_train::data::Dataset;
use antinoise_train::model::Model;
use antinoise_train::optimizer::UpdateRule;
use antinoise_train::reference::{Measured, Reference};
use antinoise_train::trainer::{CheckpointInterval, Options, Outcome, Setup, Trainer};

use crate::error::{Error, Result};
use crate::event::{Event, OnEvent};
use crate::folder::Folder;
use crate::metrics::Metrics;
use crate::named::WITHOUT_NOISE;
use crate::results::{Finished, Results, Unprotected};
use crate::search::Search;
use crate::study::{Study, run_name};

/// Number of tests in a run.
const TESTS: usize = 40;
/// Number of checkpoints in a short run. Longer runs have more, so that a killed process loses little.
const CHECKPOINTS: usize = 20;
const MOST_LOST: Duration = Duration::from_secs(30);
/// Limit on the time of saves: at most a twentieth of the run.
const REST: u32 = 20;

/// Completes all trainings of the study, including those at learning rates that the search adds.
pub fn train(study: &Study, (dataset, model): (&Dataset, &Model), around: Around) -> Result<Results> {
    let groups = study.clip_by().groups(model)?;
    let mut steps: usize = study.plans().iter().map(|named| named.plan.steps).sum();
    steps += if study.without_noise() { study.plans()[0].plan.steps } else { 0 };
    (around.on_event)(Event::Training { steps: (steps * study.models_of_a_mechanism()) as u64 });
    let results = Training { study, model, dataset, groups: groups.as_ref(), around }.all()?;
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
    model: &'a Model,
    dataset: &'a Dataset,
    groups: Option<&'a Groups>,
    around: Around<'a>,
}

impl Training<'_> {
    /// Runs every mechanism, and training without privacy.
    fn all(&self) -> Result<Results> {
        let Self { study, model, dataset, groups, .. } = *self;
        let mut finished = Vec::new();
        for (plan, named) in study.plans().iter().enumerate() {
            self.search(named.plan.steps, |rule, repeat| {
                let optimizer = study.optimizer(rule);
                let setup = Setup { plan: &named.plan, model, dataset, optimizer, groups };
                let name = run_name(&named.mechanism, &rule, repeat);
                let results = self.one(setup, &name, repeat)?;
                let run = Finished { plan, rule, results };
                if run.diverged() {
                    let warning =
                        format!("{name} diverged: its parameters are not finite, and no model is saved");
                    (self.around.on_event)(Event::Warning(&warning));
                } else {
                    let saved = study.saved_model(model, dataset, run.results.parameters.clone())?;
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
        let Self { study, model, dataset, .. } = *self;
        let mut found = Vec::new();
        if !study.without_noise() {
            return Ok(found);
        }
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
        let (repeats, tests) = (study.repeats(), self.dataset.test.len());
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
        let start = self.model.initial_parameters(&mut rng(Purpose::Initialization));
        let mut order = rng(Purpose::DataOrder);
        let measured = reference.train(start, &mut order, stop, || on_event(Event::Stepped))?;
        let Some(measured) = measured else {
            return Err(Error::Stopped { at: None, run: name, folder: folder.resumed_as().to_owned() });
        };
        folder.save_reference(&name, &measured)?;
        Ok(measured)
    }

    /// The results of one run, which is started, resumed or was finished before.
    fn one(&self, setup: Setup, name: &str, repeat: usize) -> Result<checkpoint::Finished> {
        let Self { study, around: Around { folder, stop, metrics, on_event }, .. } = self;
        let run = study.run_id(name)?;
        let checkpoints = folder.checkpoints(name, run.clone())?;
        let mut trainer = match checkpoints.committed()? {
            Committed::Empty => {
                folder.refuse_trained(name)?;
                let key = study.key(repeat)?;
                let mut rng = KeyedRng::new(&key, &run, Purpose::Initialization, 0);
                Trainer::new(setup, run, self.model.initial_parameters(&mut rng), key)?
            }
            Committed::Unfinished { .. } => Trainer::resume(setup, &checkpoints)?,
            Committed::Finished => {
                on_event(Event::Skipped { steps: setup.plan.steps as u64 });
                return Ok(checkpoint::Finished::read(&setup.identity(), &checkpoints)?);
            }
        };
        let steps = setup.plan.steps;
        let interval = CheckpointInterval {
            max_steps: steps.div_ceil(CHECKPOINTS),
            max_time: MOST_LOST,
            min_rest: REST,
        };
        let options =
            Options { test_every: steps.div_ceil(TESTS), checkpoints: Some((&checkpoints, interval)) };
        on_event(Event::Skipped { steps: trainer.step_count() as u64 });
        on_event(Event::Running { run: name, accuracy: None });
        if let Some(metrics) = metrics {
            metrics.resume(name, trainer.step_count())?;
        }
        let mut told = Ok(());
        let outcome = trainer.run(&options, stop, |trainer| {
            on_event(Event::Stepped);
            if let Some(&(_, accuracy)) = trainer.history().accuracies.last() {
                on_event(Event::Running { run: name, accuracy: Some(accuracy) });
            }
            if let (Some(metrics), Ok(())) = (metrics, &told) {
                told = metrics.tell(name, (setup.plan.privacy.epsilon, study.clip_by()), trainer);
            }
        })?;
        told?;
        if outcome == Outcome::Stopped {
            let (at, folder) = (Some((trainer.step_count(), steps)), folder.resumed_as().to_owned());
            return Err(Error::Stopped { at, run: name.into(), folder });
        }
        Ok(checkpoint::Finished::read(&setup.identity(), &checkpoints)?)
    }
}
