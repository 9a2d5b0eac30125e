//! What is run: every mechanism, at every learning rate, as often as asked.

use std::collections::HashSet;

use antinoise_input::{InvalidParameter, at_least, positive};
use antinoise_noise::{Key, KeyedRng, Purpose, RunId};
use antinoise_plan::Plan;
use antinoise_train::optimizer::Rule;
use antinoise_train::trainer::{self, Committed, Options, Outcome, Setup, Trainer};
use rand_core::Rng;
use serde::{Deserialize, Serialize};

use super::folder::Folder;
use super::options::{Arguments, ModelName, OptimizerName};
use super::problem::{build, load, plans};
use super::released::Released;
use super::{Report, summary};
use crate::failure::{Failure, Result};
use crate::progress::Progress;
use crate::signals::Stop;

/// Tests and checkpoints in a run.
const TESTS: usize = 40;
const CHECKPOINTS: usize = 20;

/// Everything that a run is a function of, apart from its keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// Tells its runs from those of other folders.
    id: String,
    data: String,
    model: ModelName,
    repeats: usize,
    seed: Option<u64>,
    released: Released,
    /// One a learning rate.
    rules: Vec<Rule>,
    plans: Vec<NamedPlan>,
}

/// A mechanism's name and the plan that runs it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NamedPlan {
    /// As the command line names it.
    pub mechanism: String,
    /// What is run and accounted.
    pub plan: Plan,
}

/// One finished run.
pub struct Finished {
    /// Index of its plan.
    pub plan: usize,
    /// How it learned.
    pub rule: Rule,
    /// What was measured, and when.
    pub results: trainer::Finished,
}

impl Study {
    /// The study that the options ask for; nothing is written yet.
    pub fn new(arguments: &Arguments) -> Result<Self> {
        let dataset = load(&arguments.data)?;
        let model = build(arguments.model_name(), &dataset)?;
        let rule = |learning_rate: f64| match arguments.optimizer {
            OptimizerName::Sgd => Rule::Sgd { learning_rate, momentum: arguments.momentum },
            OptimizerName::Adam => Rule::Adam { learning_rate, beta1: 0.9, beta2: 0.999, epsilon: 1e-8 },
        };
        let study = Self {
            id: fresh_id(arguments.seed)?,
            data: arguments.data.clone(),
            model: arguments.model_name(),
            repeats: arguments.repeats,
            seed: arguments.seed,
            released: arguments.released_models.unwrap_or_default(),
            rules: arguments.learning_rates().into_iter().map(rule).collect(),
            plans: plans(arguments, dataset.train.len(), model.parameters())?,
        };
        study.check()?;
        let start = vec![0.0; model.parameters()];
        for (named, rule) in
            study.plans.iter().flat_map(|named| study.rules.iter().map(move |rule| (named, rule)))
        {
            Setup { plan: &named.plan, model: &model, dataset: &dataset, rule: *rule }.check(&start)?;
        }
        Ok(study)
    }

    /// Refuses numbers out of range before anything is trained.
    pub fn check(&self) -> Result<()> {
        at_least("repeats", self.repeats, 1)?;
        at_least("number of mechanisms", self.plans.len(), 1)?;
        for rule in &self.rules {
            positive("learning_rate", learning_rate(rule))?;
            if let Rule::Sgd { momentum, .. } = rule {
                antinoise_input::below_one("momentum", *momentum)?;
            }
        }
        self.released.check(self.models_of_a_mechanism())?;
        self.plans.iter().try_for_each(|named| named.plan.verify())?;
        let mut names = HashSet::new();
        for name in self
            .plans
            .iter()
            .flat_map(|named| self.rules.iter().map(|rule| run_name(&named.mechanism, rule, 0)))
        {
            if !names.insert(name.clone()) {
                let must_be = "given once: two runs would share one folder";
                return Err(InvalidParameter::new("mechanism with its learning rate", name, must_be).into());
            }
        }
        Ok(())
    }

    /// Whether the noise is predictable.
    pub fn insecure_seed(&self) -> bool {
        self.seed.is_some()
    }

    /// The plans, in the order in which they are compared.
    pub fn plans(&self) -> &[NamedPlan] {
        &self.plans
    }

    /// How each model learned.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Models of one mechanism and learning rate.
    pub fn repeats(&self) -> usize {
        self.repeats
    }

    /// Models of one mechanism.
    pub fn models_of_a_mechanism(&self) -> usize {
        self.rules.len() * self.repeats
    }

    /// The models that the statements cover.
    pub fn released(&self) -> Released {
        self.released
    }

    /// Lets the statements cover other models.
    pub fn release(&mut self, released: Released) -> Result<()> {
        self.released = released;
        self.check()
    }

    /// Trains what has not been trained yet, and summarises all of it.
    pub fn run(&self, folder: &Folder, stop: &Stop) -> Result<Report> {
        let dataset = load(&self.data)?;
        let model = build(self.model, &dataset)?;
        let mut finished = Vec::new();
        let steps: usize = self.plans.iter().map(|named| named.plan.steps).sum();
        let progress = Progress::new("train", "steps", (steps * self.rules.len() * self.repeats) as u64);
        for (plan, named) in self.plans.iter().enumerate() {
            for rule in &self.rules {
                let setup = Setup { plan: &named.plan, model: &model, dataset: &dataset, rule: *rule };
                for repeat in 0..self.repeats {
                    let name = run_name(&named.mechanism, rule, repeat);
                    let results = self.one(setup, &name, repeat, folder, (stop, &progress))?;
                    folder.save_model(&name, model.name(), &results.parameters)?;
                    finished.push(Finished { plan, rule: *rule, results });
                }
            }
        }
        summary::summarize(self, model.name(), &dataset, &finished, folder)
    }

    /// The results of one run, which is started, resumed or was finished before.
    fn one(
        &self,
        setup: Setup,
        name: &str,
        repeat: usize,
        folder: &Folder,
        (stop, progress): (&Stop, &Progress),
    ) -> Result<trainer::Finished> {
        let run = RunId::new(format!("{}/{name}", self.id))?;
        let checkpoints = folder.checkpoints(name, run.clone())?;
        let mut trainer = match checkpoints.committed()? {
            Committed::Nothing => {
                folder.refuse_trained(name)?;
                let key = self.key(repeat)?;
                let mut rng = KeyedRng::new(&key, &run, Purpose::Initialization, 0);
                Trainer::new(setup, run, setup.model.initial_parameters(&mut rng), key)?
            }
            Committed::Unfinished { .. } => Trainer::resume(setup, &checkpoints)?,
            Committed::Finished => {
                progress.skip(setup.plan.steps as u64);
                return Ok(trainer::Finished::read(setup, &checkpoints)?);
            }
        };
        let steps = setup.plan.steps;
        let options = Options {
            test_every: steps.div_ceil(TESTS),
            checkpoints: Some((&checkpoints, steps.div_ceil(CHECKPOINTS))),
        };
        progress.skip(trainer.step_count() as u64);
        progress.say(name.to_string());
        let outcome = trainer.run(&options, stop.asked(), |trainer| show(progress, name, trainer))?;
        if outcome == Outcome::Stopped {
            let (at, folder) = (trainer.step_count(), folder.path().display());
            let message = format!("stopped at step {at} of {steps} of {name}; go on with --resume {folder}");
            return Err(Failure::stopped(message, stop.status()));
        }
        Ok(trainer::Finished::read(setup, &checkpoints)?)
    }

    fn key(&self, repeat: usize) -> Result<Key> {
        Ok(match self.seed {
            Some(seed) => Key::from_seed_insecure(seed.wrapping_add(repeat as u64)),
            None => Key::from_os()?,
        })
    }
}

/// A name that no other study has; that of the seed, if there is one, whose runs can be repeated.
fn fresh_id(seed: Option<u64>) -> Result<String> {
    Ok(match seed {
        Some(seed) => format!("seed {seed}"),
        None => {
            let mut rng = KeyedRng::new(&Key::from_os()?, &RunId::default(), Purpose::DataOrder, 0);
            format!("{:016x}", rng.next_u64())
        }
    })
}

/// The rate of either rule.
pub fn learning_rate(rule: &Rule) -> f64 {
    match *rule {
        Rule::Sgd { learning_rate, .. } | Rule::Adam { learning_rate, .. } => learning_rate,
    }
}

fn run_name(mechanism: &str, rule: &Rule, repeat: usize) -> String {
    let plain: String = mechanism.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    format!("{plain}-lr{}-{repeat}", learning_rate(rule))
}

fn show(progress: &Progress, name: &str, trainer: &Trainer) {
    progress.advance(1);
    if let Some((_, accuracy)) = trainer.history().accuracies.last() {
        progress.say(format!("{name} {:.1}%", 100.0 * accuracy));
    }
}
