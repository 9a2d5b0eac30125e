//! What is run: every mechanism, at every learning rate, as often as asked.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use antinoise_input::{InvalidParameter, at_least, positive};
use antinoise_noise::{Key, KeyedRng, Purpose, RunId};
use antinoise_plan::{Plan, choose};
use antinoise_train::data::{self, Dataset};
use antinoise_train::model::Model;
use antinoise_train::optimizer::Rule;
use antinoise_train::trainer::{History, Options, Outcome, Setup, Trainer};
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};

use super::folder::Folder;
use super::options::{Arguments, ModelName, OptimizerName};
use super::{Report, summary};
use crate::failure::{Failure, Result};

/// Tests and checkpoints in a run.
const TESTS: usize = 40;
const CHECKPOINTS: usize = 20;

/// Everything that a run is a function of, apart from its keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    data: String,
    model: ModelName,
    repeats: usize,
    seed: Option<u64>,
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
    /// What was measured.
    pub history: History,
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
            data: arguments.data.clone(),
            model: arguments.model_name(),
            repeats: arguments.repeats,
            seed: arguments.seed,
            rules: arguments.learning_rates().into_iter().map(rule).collect(),
            plans: plans(arguments, dataset.train.len(), model.parameters())?,
        };
        study.check()?;
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
        self.plans.iter().try_for_each(|named| named.plan.verify())?;
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

    /// Trains what has not been trained yet, and summarises all of it.
    pub fn run(&self, folder: &Folder, stop: &AtomicBool) -> Result<Report> {
        let dataset = load(&self.data)?;
        let model = build(self.model, &dataset)?;
        let mut finished = Vec::new();
        for (plan, named) in self.plans.iter().enumerate() {
            for rule in &self.rules {
                let setup = Setup { plan: &named.plan, model: &model, dataset: &dataset, rule: *rule };
                for repeat in 0..self.repeats {
                    let name = run_name(&named.mechanism, rule, repeat);
                    let history = self.one(setup, &name, repeat, folder, stop)?;
                    finished.push(Finished { plan, rule: *rule, history });
                }
            }
        }
        summary::summarize(self, &format!("{} on {}", model.name(), dataset.name), finished, folder)
    }

    fn one(
        &self,
        setup: Setup,
        name: &str,
        repeat: usize,
        folder: &Folder,
        stop: &AtomicBool,
    ) -> Result<History> {
        let checkpoints = folder.checkpoints(name);
        let mut trainer = if checkpoints.is_dir() {
            Trainer::resume(setup, &checkpoints)?
        } else {
            let key = self.key(repeat)?;
            let mut rng = KeyedRng::new(&key, &RunId::default(), Purpose::Initialization, 0);
            let start = setup.model.initial_parameters(&mut rng);
            Trainer::new(setup, start, key)?
        };
        let steps = setup.plan.steps;
        let options = Options {
            test_every: steps.div_ceil(TESTS),
            checkpoints: Some((&checkpoints, steps.div_ceil(CHECKPOINTS))),
        };
        let bar = progress_bar(name, steps, trainer.step_count());
        let outcome = trainer.run(&options, stop, |trainer| show(&bar, trainer))?;
        bar.finish_and_clear();
        if outcome == Outcome::Stopped {
            let at = trainer.step_count();
            return Err(Failure::other(format!(
                "stopped at step {at} of {steps} of {name}; go on with --resume"
            )));
        }
        folder.save_model(name, setup.model.name(), trainer.parameters())?;
        Ok(trainer.history().clone())
    }

    fn key(&self, repeat: usize) -> Result<Key> {
        Ok(match self.seed {
            Some(seed) => Key::from_seed_insecure(seed.wrapping_add(repeat as u64)),
            None => Key::from_os()?,
        })
    }
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

/// The plan of a file; or independent noise and the mechanism of least loss; or the mechanisms that are named.
fn plans(arguments: &Arguments, examples: usize, dim: usize) -> Result<Vec<NamedPlan>> {
    if let Some(path) = &arguments.plan {
        let plan = Plan::load(path)?;
        return Ok(vec![NamedPlan { mechanism: plan.strategy.class().name().into(), plan }]);
    }
    let request = arguments.request(examples, dim)?;
    let choice = choose(&request)?;
    let named = request.recipes.is_some();
    let wanted: Vec<usize> = if named {
        // The first candidate is independent noise, whether it was named or not.
        let identity = request.recipes.iter().flatten().any(|recipe| recipe == &choice.candidates[0].recipe);
        (usize::from(!identity)..choice.candidates.len()).collect()
    } else if choice.chosen == 0 {
        vec![0]
    } else {
        vec![0, choice.chosen]
    };
    wanted
        .into_iter()
        .map(|i| {
            let mechanism = choice.candidates[i].recipe.to_string();
            Ok(NamedPlan { mechanism, plan: choice.plan_of(&request, i)? })
        })
        .collect()
}

fn load(data: &str) -> Result<Dataset> {
    match data.split_once(':') {
        None if data == "digits" => Ok(data::digits()),
        None if data == "fashion-mnist" => Ok(data::fashion_mnist(None)?),
        Some(("fashion-mnist", folder)) => Ok(data::fashion_mnist(Some(Path::new(folder)))?),
        Some(("idx", folder)) => Ok(data::idx(Path::new(folder))?),
        _ => {
            let must_be = "digits, fashion-mnist, fashion-mnist:DIR or idx:DIR";
            Err(InvalidParameter::new("data", format!("{data:?}"), must_be).into())
        }
    }
}

fn build(name: ModelName, dataset: &Dataset) -> Result<Model> {
    let (shape, classes) = (dataset.shape, dataset.classes);
    Ok(match name {
        ModelName::Logistic => Model::logistic(shape, classes)?,
        ModelName::Mlp => Model::mlp(shape, classes, 128)?,
        ModelName::Cnn => Model::cnn(shape, classes)?,
    })
}

fn progress_bar(name: &str, steps: usize, done: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix} {wide_bar} {pos}/{len} steps, {eta} left {msg}")
        .expect("the template is valid");
    let bar = ProgressBar::new(steps as u64).with_style(style).with_prefix(name.to_string());
    bar.set_position(done as u64);
    bar.reset_eta();
    bar
}

fn show(bar: &ProgressBar, trainer: &Trainer) {
    bar.set_position(trainer.step_count() as u64);
    if let Some((_, accuracy)) = trainer.history().accuracies.last() {
        bar.set_message(format!("{:.1}%", 100.0 * accuracy));
    }
}
