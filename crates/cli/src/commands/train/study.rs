//! What is run: every mechanism, at every learning rate, as often as asked.

use std::collections::HashSet;

use antinoise_input::{InvalidParameter, at_least};
use antinoise_noise::{Key, KeyedRng, Purpose, RunId};
use antinoise_plan::Plan;
use antinoise_train::data::Dataset;
use antinoise_train::model::Model;
use antinoise_train::optimizer::Rule;
use antinoise_train::reference::{Measured, Reference};
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
/// Learning rates at which widening ends.
const MOST_RATES: usize = 8;

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
    /// Whether further learning rates are tried while a best one is the least or the largest.
    widens: bool,
    /// Whether the same is trained without clipping and noise.
    without_noise: bool,
    plans: Vec<NamedPlan>,
}

/// A mechanism's name and the plan that runs it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NamedPlan {
    /// As the command line names it.
    pub mechanism: String,
    /// What it stands for in a comparison, if it is there to compare with.
    pub baseline: Option<Baseline>,
    /// What is run and accounted.
    pub plan: Plan,
}

/// What others are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Baseline {
    /// No privacy: neither clipping nor noise.
    None,
    /// Independent noise without amplification.
    Independent,
    /// Independent noise that sampling amplifies: DP-SGD.
    IndependentAmplified,
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

/// One run without privacy.
pub struct Unprotected {
    /// How it learned.
    pub rule: Rule,
    /// What was measured.
    pub measured: Measured,
}

impl Finished {
    /// How it learned, and what came of it.
    pub fn rate_and_accuracy(&self) -> (f64, f64) {
        (learning_rate(&self.rule), last(&self.results.history.accuracies))
    }
}

impl Unprotected {
    /// How it learned, and what came of it.
    pub fn rate_and_accuracy(&self) -> (f64, f64) {
        (learning_rate(&self.rule), last(&self.measured.accuracies))
    }
}

fn last(accuracies: &[(usize, f64)]) -> f64 {
    accuracies.last().map_or(f64::NAN, |&(_, accuracy)| accuracy)
}

/// What training without clipping and noise is called.
pub const WITHOUT_NOISE: &str = "no noise";

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
            // Who releases all models has accounted for so many.
            widens: arguments.learning_rate.is_empty() && arguments.released_models != Some(Released::All),
            without_noise: arguments.without_noise(),
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
            rule.check()?;
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
    ///
    /// Not all of those whose number results have decided: a statement that covers every choice must not depend on one.
    pub fn release(&mut self, released: Released) -> Result<()> {
        if self.widens && released == Released::All {
            let must_be =
                "a number, or given when training begins: results decided how many learning rates were tried";
            return Err(InvalidParameter::new("released_models", released, must_be).into());
        }
        self.released = released;
        self.check()
    }

    /// Trains what has not been trained yet, and summarises all of it.
    pub fn run(mut self, folder: &Folder, stop: &Stop) -> Result<Report> {
        let dataset = load(&self.data)?;
        let model = build(self.model, &dataset)?;
        loop {
            let (finished, references) = self.train(&model, &dataset, folder, stop)?;
            match self.further_rule(&finished, &references) {
                Some(rule) if self.widens && self.rules.len() < MOST_RATES => {
                    self.rules.push(rule);
                    folder.save_study(&self)?;
                }
                _ => {
                    return summary::summarize(
                        &self,
                        model.name(),
                        &dataset,
                        (&finished, &references),
                        folder,
                    );
                }
            }
        }
    }

    /// Twice or half of a best learning rate that is the largest or the least tried.
    fn further_rule(&self, finished: &[Finished], references: &[Unprotected]) -> Option<Rule> {
        let of_plan = |plan: usize| {
            let runs = finished.iter().filter(|run| run.plan == plan);
            summary::edge(&runs.map(Finished::rate_and_accuracy).collect::<Vec<_>>())
        };
        let unprotected: Vec<(f64, f64)> = references.iter().map(Unprotected::rate_and_accuracy).collect();
        let rate = (0..self.plans.len()).find_map(of_plan).or_else(|| summary::edge(&unprotected))?;
        Some(match self.rules[0] {
            Rule::Sgd { momentum, .. } => Rule::Sgd { learning_rate: rate, momentum },
            Rule::Adam { beta1, beta2, epsilon, .. } => {
                Rule::Adam { learning_rate: rate, beta1, beta2, epsilon }
            }
        })
    }

    /// Every mechanism at every learning rate, as often as asked, and the same without privacy.
    fn train(
        &self,
        model: &Model,
        dataset: &Dataset,
        folder: &Folder,
        stop: &Stop,
    ) -> Result<(Vec<Finished>, Vec<Unprotected>)> {
        let mut finished = Vec::new();
        let mut steps: usize = self.plans.iter().map(|named| named.plan.steps).sum();
        steps += if self.without_noise { self.plans[0].plan.steps } else { 0 };
        let progress = Progress::new("train", "steps", (steps * self.rules.len() * self.repeats) as u64);
        for (plan, named) in self.plans.iter().enumerate() {
            for rule in &self.rules {
                let setup = Setup { plan: &named.plan, model, dataset, rule: *rule };
                for repeat in 0..self.repeats {
                    let name = run_name(&named.mechanism, rule, repeat);
                    let results = self.one(setup, &name, repeat, folder, (stop, &progress))?;
                    folder.save_model(&name, model.name(), &results.parameters)?;
                    finished.push(Finished { plan, rule: *rule, results });
                }
            }
        }
        let references = self.references(model, dataset, folder, (stop, &progress))?;
        Ok((finished, references))
    }

    /// The same training without clipping and noise, at each learning rate as often, if that was asked for.
    fn references(
        &self,
        model: &Model,
        dataset: &Dataset,
        folder: &Folder,
        (stop, progress): (&Stop, &Progress),
    ) -> Result<Vec<Unprotected>> {
        let rules = if self.without_noise { &self.rules[..] } else { &[] };
        let mut found = Vec::new();
        for rule in rules {
            let Plan { batch_size, steps, .. } = self.plans[0].plan;
            let test_every = steps.div_ceil(TESTS);
            let reference = Reference { model, dataset, rule: *rule, batch_size, steps, test_every };
            for repeat in 0..self.repeats {
                let measured = self.one_reference(&reference, repeat, folder, (stop, progress))?;
                found.push(Unprotected { rule: *rule, measured });
            }
        }
        Ok(found)
    }

    /// What one run without privacy measured, now or before.
    fn one_reference(
        &self,
        reference: &Reference,
        repeat: usize,
        folder: &Folder,
        (stop, progress): (&Stop, &Progress),
    ) -> Result<Measured> {
        let name = run_name(WITHOUT_NOISE, &reference.rule, repeat);
        if let Some(measured) = folder.reference(&name, &reference.tested())? {
            progress.skip(reference.steps as u64);
            return Ok(measured);
        }
        progress.say(name.clone());
        let (key, run) = (self.key(repeat)?, RunId::new(format!("{}/{name}", self.id))?);
        let rng = |purpose| KeyedRng::new(&key, &run, purpose, 0);
        let start = reference.model.initial_parameters(&mut rng(Purpose::Initialization));
        let mut order = rng(Purpose::DataOrder);
        let measured = reference.train(start, &mut order, stop.asked(), || progress.advance(1))?;
        let Some(measured) = measured else {
            let message = format!("stopped within {name}; go on with --resume {}", folder.path().display());
            return Err(Failure::stopped(message, stop.status()));
        };
        folder.save_reference(&name, &measured)?;
        Ok(measured)
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
