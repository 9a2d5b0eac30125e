//! A study: every mechanism, at every learning rate, with all repeats.

use std::collections::HashSet;

use antinoise_audit::has_likelihood_ratio;
use antinoise_federated::FederatedSetup;
use antinoise_input::{InvalidParameter, at_least, between, printable};
use antinoise_noise::{Key, KeyedRng, Purpose, RunId};
use antinoise_plan::{Sampler, VerifiedPlan};
use antinoise_train::data::Schema;
use antinoise_train::optimizer::{OptimizerConfig, UpdateRule};
use antinoise_train::trainer::{Setup, default_rate};
use rand_core::Rng;
use serde::{Deserialize, Serialize};

use crate::around::Around;
use crate::clip_by::ClipBy;
use crate::data::ModelName;
use crate::error::{Error, Result};
use crate::event::{Event, OnEvent, during};
use crate::local::Local;
use crate::named::NamedPlan;
use crate::persons::Persons;
use crate::point::Point;
use crate::problem::plans;
use crate::published::Published;
use crate::settings::Settings;
use crate::table_file::Table;
use crate::task::{Labels, Source, Task};
use crate::texts::Texts;

/// Maximum number of learning rates to which the search may widen.
const MOST_RATES: usize = 8;

/// Settings that, with the keys, determine all runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// Identifier that distinguishes the study's runs from those of other folders.
    id: String,
    data: String,
    /// Schema and test rows, if the data are a table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    table: Option<Table>,
    /// The source of the users of data that are no table, if users are protected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    persons: Option<Persons>,
    /// The columns and the model, if characters of users' texts are predicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    texts: Option<Texts>,
    model: ModelName,
    repeats: usize,
    seed: Option<u64>,
    published: Published,
    /// Rules, one for each learning rate; every mechanism is trained with each.
    rules: Vec<UpdateRule>,
    /// Whether the middle learning rate is the default; absent in folders of earlier versions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    has_default_rate: bool,
    /// The options that the optimizers of all rules share; absent in folders of earlier versions.
    #[serde(default, skip_serializing_if = "Around::is_none")]
    around: Around,
    /// Part of a gradient that is clipped as one; older folders clip the whole gradient.
    #[serde(default, skip_serializing_if = "ClipBy::is_whole")]
    clip_by: ClipBy,
    /// The local training of users; absent unless batches are federated rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    local: Option<Local>,
    /// Whether further learning rates are tried while the best is the smallest or the largest.
    widens: bool,
    /// Whether a model is trained without clipping and noise, too.
    without_noise: bool,
    /// The number of canaries of an audit of each mechanism; absent in folders of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    audit: Option<usize>,
    /// The other points of the sweep, at which models of the same data are trained in folders next to this
    /// one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    beside: Vec<Point>,
    /// SHA-256 of the test data, which the checkpoints of federated rounds do not know; absent in folders of
    /// earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    test_sha256: Option<String>,
    /// The index of the plan whose model is given away.
    chosen: usize,
    plans: Vec<NamedPlan>,
}

impl Study {
    /// The study by these settings; nothing is written yet.
    pub fn new(settings: &Settings, on_event: OnEvent<'_>) -> Result<Self> {
        settings.check()?;
        let task = during("reading the data", on_event, || settings.source().read(settings.model_name()))?;
        for remark in task.remarks() {
            let warning = format!("{remark} (seen in the private rows: do not publish this line)");
            on_event(Event::Warning(&warning));
        }
        let planned = during("planning", on_event, || plans(settings, task.units(), task.parameters()));
        let (plans, chosen) = planned?;
        let rules = settings.rules(|rule| {
            let Labels { dataset, model, schema } = task.labels("default learning_rate")?;
            let norm = schema.as_ref().map_or_else(|| dataset.shape.input_norm(), Schema::input_norm);
            Ok(default_rate(rule, &plans[chosen].plan, model, norm)?)
        })?;
        let study = Self {
            id: fresh_id(settings.seed)?,
            data: settings.data.clone(),
            table: settings.table.clone(),
            persons: settings.persons.clone(),
            texts: settings.texts.clone(),
            model: settings.model_name(),
            repeats: settings.repeats(),
            seed: settings.seed,
            published: settings.published,
            rules,
            has_default_rate: settings.learning_rates.is_empty(),
            around: Around::of(settings.optimizer),
            clip_by: settings.clip_by,
            local: local(settings, &plans)?,
            // If all models are published, their number was accounted for and must not grow.
            widens: settings.compares()
                && settings.learning_rates.is_empty()
                && settings.published != Published::All,
            without_noise: settings.without_noise(),
            audit: settings.audit,
            beside: Vec::new(),
            test_sha256: Some(task.test_sha256()),
            chosen,
            plans,
        };
        study.check()?;
        if let Some(canaries) = study.audit {
            check_audit(canaries, &study.plans, &task)?;
        }
        study.check_runs(&task)?;
        if study.local.is_some()
            && let Some(warning) = unfilled_rounds(&study.plans[chosen].plan)?
        {
            on_event(Event::Warning(&warning));
        }
        Ok(study)
    }

    /// Refuses plans, models, data and optimizers that do not fit each other.
    fn check_runs(&self, task: &Task) -> Result<()> {
        let (start, groups) = (vec![0.0; task.parameters()], task.groups(self.clip_by)?);
        for (named, rule) in
            self.plans.iter().flat_map(|named| self.rules.iter().map(move |rule| (named, rule)))
        {
            let (plan, optimizer) = (&named.plan, self.optimizer(*rule));
            match (self.local.map(Local::steps), task) {
                (None, Task::Texts(_)) => return Err(for_rounds(plan)),
                (None, Task::Labels(labels)) => {
                    let Labels { dataset, model, .. } = &**labels;
                    Setup { plan, model, dataset, optimizer, groups: groups.as_ref() }.check(&start)?;
                }
                (Some(local), Task::Labels(labels)) => {
                    let population = &labels.population()?;
                    FederatedSetup { plan, population, local, optimizer }.check(&start)?;
                }
                (Some(local), Task::Texts(texts)) => {
                    let population = &texts.training;
                    FederatedSetup { plan, population, local, optimizer }.check(&start)?;
                }
            }
        }
        Ok(())
    }

    /// Refuses numbers out of range before anything is trained.
    pub fn check(&self) -> Result<()> {
        at_least("repeats", self.repeats, 1)?;
        at_least("number of mechanisms", self.plans.len(), 1)?;
        if self.chosen >= self.plans.len() {
            let must_be = "the index of a plan";
            return Err(InvalidParameter::new("chosen", self.chosen, must_be).into());
        }
        for (named, rule) in
            self.plans.iter().flat_map(|named| self.rules.iter().map(move |rule| (named, rule)))
        {
            self.optimizer(*rule).check(named.plan.steps)?;
        }
        self.published.check(self.models_of_a_mechanism())?;
        let mut rates: Vec<f64> = self.rules.iter().map(UpdateRule::learning_rate).collect();
        rates.sort_by(f64::total_cmp);
        if let Some(pair) = rates.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(InvalidParameter::new("learning_rate", pair[0], "given once").into());
        }
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

    /// The index of the plan whose model is given away.
    pub fn chosen(&self) -> usize {
        self.chosen
    }

    /// Which training examples are one user's, and whose the test examples are, in words; `None` if examples
    /// are protected.
    pub fn users_in_words(&self) -> Option<(String, &'static str)> {
        let of_others = "The test examples are those of other users";
        let of_table = self.table.as_ref().and_then(|table| table.user.as_ref());
        match (&self.persons, of_table.or(self.texts.as_ref().map(|texts| &texts.user))) {
            (_, Some(column)) => {
                let column = printable(&format!("{column:?}"));
                let used = self.texts.as_ref().map_or_else(String::new, Texts::in_words);
                Some((format!("rows with one name in the column {column}{used}"), of_others))
            }
            (Some(Persons::Folders), _) => Some(("images in folders of one name".into(), of_others)),
            (Some(Persons::Lines(_)), _) => Some((
                "examples with one name in the file of users".into(),
                "Whether the test examples are those of other users was not checked",
            )),
            (None, None) => None,
        }
    }

    /// Whether the data are a table.
    pub fn is_of_table(&self) -> bool {
        self.table.is_some()
    }

    /// The data, as [`load`] names them.
    pub fn data(&self) -> &str {
        &self.data
    }

    /// Update rules, one for each learning rate.
    pub fn rules(&self) -> &[UpdateRule] {
        &self.rules
    }

    /// The middle learning rate, if it is the default.
    pub fn default_rate(&self) -> Option<f64> {
        self.has_default_rate.then(|| self.rules[self.rules.len() / 2].learning_rate())
    }

    /// The optimizer of a rule, with the options that all optimizers share.
    pub fn optimizer(&self, rule: UpdateRule) -> OptimizerConfig {
        self.around.optimizer(rule)
    }

    /// Part of a gradient that is clipped as one.
    pub fn clip_by(&self) -> ClipBy {
        self.clip_by
    }

    /// The local training of users, if batches are federated rounds.
    pub fn local(&self) -> Option<Local> {
        self.local
    }

    /// Number of models of each mechanism and learning rate.
    pub fn repeats(&self) -> usize {
        self.repeats
    }

    /// Number of models of each mechanism, without those at learning rates that the search adds.
    pub fn models_of_a_mechanism(&self) -> usize {
        self.rules.len() * self.repeats
    }

    /// The models that the statements cover.
    pub fn published(&self) -> Published {
        self.published
    }

    /// Changes the number of models that statements cover.
    ///
    /// [`Published::All`] is refused if the number of models depended on results: a statement that covers
    /// every choice must not depend on one.
    pub fn publish(&mut self, published: Published) -> Result<()> {
        if self.widens && published == Published::All {
            let must_be = "a number: results decided how many learning rates were tried, so that all models together can be \
                 covered only if published_models is all when training begins";
            return Err(InvalidParameter::new("published_models", published, must_be).into());
        }
        self.published = published;
        self.check()
    }

    /// The data and the model.
    pub fn task(&self) -> Result<Task> {
        let Self { data, table, persons, texts, .. } = self;
        let source = Source { data, table: table.as_ref(), persons: persons.as_ref(), texts: texts.as_ref() };
        let task = source.read(self.model).map_err(|error| Error::Data(Box::new(error)))?;
        if self.test_sha256.as_ref().is_some_and(|known| *known != task.test_sha256()) {
            let must_be =
                "those with which the study began: accuracies before and after would be of different data";
            return Err(InvalidParameter::new("test data", "altered", must_be).into());
        }
        Ok(task)
    }

    /// Whether the search for the best learning rate may add rates to the given ones.
    pub fn widens(&self) -> bool {
        self.widens
    }

    /// Whether a model is trained without clipping and noise, too.
    pub fn without_noise(&self) -> bool {
        self.without_noise
    }

    /// Number of canaries in the audit of each mechanism; `None` without audit.
    pub fn audit(&self) -> Option<usize> {
        self.audit
    }

    /// Leaves out training without clipping and noise: another study of the same model and data has it.
    pub fn leave_out_reference(&mut self) {
        self.without_noise = false;
    }

    /// Notes that other studies train models at these points on the same data.
    pub fn trained_beside(&mut self, others: Vec<Point>) {
        self.beside = others;
    }

    /// Whether the study was begun together with those at `others`. Studies of several epsilons by earlier
    /// versions do not say.
    pub fn is_beside(&self, others: &[Point]) -> bool {
        let says_nothing = self.beside.is_empty() && matches!(others, [Point::Epsilon(_), ..]);
        self.beside == others || says_nothing
    }

    /// A sentence, without its full stop, that lists trainings on the same data that this study's statements
    /// do not cover.
    pub fn uncovered(&self) -> Option<String> {
        let beside = self.beside.first().map(|first| {
            let others: Vec<String> = self.beside.iter().map(Point::to_string).collect();
            let place = if matches!(first, Point::Epsilon(_)) { "at" } else { "of" };
            format!("the models {place} {}, and a choice between {}", others.join(", "), first.plural())
        });
        let found: Vec<String> = [
            self.without_noise.then(|| "training without noise".into()),
            self.audit.map(|_| "trainings with canaries".into()),
            beside,
        ]
        .into_iter()
        .flatten()
        .collect();
        (!found.is_empty()).then(|| format!("Not covered, though from the same data: {}", found.join("; ")))
    }

    /// The rule of a learning rate.
    pub fn rule(&self, learning_rate: f64) -> UpdateRule {
        self.rules[0].with_learning_rate(learning_rate)
    }

    /// Whether the search may try this learning rate after `tried` others.
    pub fn may_try(&self, learning_rate: f64, tried: usize) -> bool {
        let rule = self.rule(learning_rate);
        // A rate that the optimizer refuses, such as one too large for its weight decay, is not tried.
        let is_fit = |named: &NamedPlan| self.optimizer(rule).check(named.plan.steps).is_ok();
        self.widens && tried < MOST_RATES && self.plans.iter().all(is_fit)
    }

    /// Identifier of a run in all folders.
    pub fn run_id(&self, name: &str) -> Result<RunId> {
        Ok(RunId::new(format!("{}/{name}", self.id))?)
    }

    /// The key of a repeat's runs: fresh, unless a seed was given.
    pub fn key(&self, repeat: usize) -> Result<Key> {
        Ok(match self.seed {
            Some(seed) => Key::from_seed_insecure(seed.wrapping_add(repeat as u64)),
            None => Key::from_os()?,
        })
    }
}

/// The local training of users, if the plans' batches are federated rounds; refused settings are those that
/// would be ignored.
fn local(settings: &Settings, plans: &[NamedPlan]) -> Result<Option<Local>> {
    let is_federated = plans.iter().any(|named| named.plan.sampler == Sampler::External);
    match (is_federated, settings.local) {
        (true, _) if settings.clip_by != ClipBy::Whole => {
            let must_be = "whole in federated rounds: a user's update is clipped as one";
            Err(InvalidParameter::new("clip_by", "layer", must_be).into())
        }
        (true, given) => Ok(Some(given.unwrap_or_default())),
        (false, None) => Ok(None),
        (false, Some(_)) => {
            let must_be = "left out unless batches are federated rounds (setting federated)";
            Err(InvalidParameter::new("local training", "given", must_be).into())
        }
    }
}

/// The error of a plan whose batches are no rounds, where characters are predicted.
fn for_rounds(plan: &VerifiedPlan) -> Error {
    let got = format!("one with {} batches", plan.sampler.name());
    let must_be = "one of federated rounds (setting federated), in which characters are predicted";
    InvalidParameter::new("plan", got, must_be).into()
}

/// A warning where the users of a federated plan are too few to fill its rounds.
fn unfilled_rounds(plan: &VerifiedPlan) -> Result<Option<String>> {
    let (min_sep, most) = plan.participation_limits()?;
    let users = plan.examples as f64;
    let most_in_round = (users / min_sep as f64).min(users * most as f64 / plan.steps as f64);
    Ok((most_in_round < plan.batch_size as f64).then(|| {
        format!(
            "{users} users, each in at most {most} of {} rounds and at least {min_sep} rounds apart, are {most_in_round:.1} a \
             round on average, not the {} of the plan: later rounds may have nobody, and have the noise of full \
             ones. Take smaller batches, fewer steps or a smaller separation",
            plan.steps, plan.batch_size
        )
    }))
}

/// Refuses an audit that could not be made, before anything is trained.
fn check_audit(canaries: usize, plans: &[NamedPlan], task: &Task) -> Result<()> {
    let Labels { dataset, model, .. } = task.labels("audit")?;
    between("audit", canaries, 1, dataset.train.len(), "training examples")?;
    between("audit", canaries, 1, model.parameters(), "parameters, of which each canary needs its own")?;
    if dataset.users.is_some() {
        let must_be = "left out where users are protected: canaries are single examples";
        return Err(InvalidParameter::new("audit", canaries, must_be).into());
    }
    if let Some(named) = plans.iter().find(|named| !has_likelihood_ratio(&named.plan)) {
        let sampler = named.plan.sampler.name();
        let must_be =
            format!("left out with {sampler} sampling, for which no likelihood ratio is known here");
        return Err(InvalidParameter::new("audit", canaries, must_be).into());
    }
    Ok(())
}

/// A unique identifier of a study or, with a seed, one that follows from the seed, so that runs can be
/// repeated.
fn fresh_id(seed: Option<u64>) -> Result<String> {
    Ok(match seed {
        Some(seed) => format!("seed {seed}"),
        None => {
            let mut rng = KeyedRng::new(&Key::from_os()?, &RunId::default(), Purpose::DataOrder, 0);
            format!("{:016x}", rng.next_u64())
        }
    })
}

/// The name of a run, of its checkpoints and of its model.
pub fn run_name(mechanism: &str, rule: &UpdateRule, repeat: usize) -> String {
    format!("{}-lr{}-{repeat}", plain(mechanism), rule.learning_rate())
}

/// `name` as a file name, without special characters.
pub fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}
