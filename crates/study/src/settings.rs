//! Settings of a study.

use std::path::PathBuf;

use antinoise_input::InvalidParameter;
use antinoise_mechanism::design::{Objective, StrategySpec};
use antinoise_mechanism::{Adjacency, PrivacyUnit, Workload};
use antinoise_plan::{ArithmeticKind, Length, Request, Setting, default_delta};
use antinoise_train::optimizer::{OptimizerConfig, UpdateRule};

use crate::clip_by::ClipBy;
use crate::data::ModelName;
use crate::error::Result;
use crate::local::Local;
use crate::persons::Persons;
use crate::published::Published;
use crate::table_file::{Table, table_file};
use crate::task::{Source, for_labels};
use crate::texts::Texts;

/// Default maximum number of a user's examples in a step: enough for an accurate mean, without long steps
/// because of a few users with many examples.
const EXAMPLES_PER_USER: usize = 100;

/// Number of steps that default epochs are for. Twice as many gain less than a point in the mean over
/// several data sets (docs/results/default-epochs.md), and take twice the time.
const ENOUGH_STEPS: usize = 480;

/// Default epochs: as many as [`ENOUGH_STEPS`] need, from 4 to 16.
fn default_epochs(units: usize, batch_size: usize) -> usize {
    let of_epoch = units.div_ceil(batch_size.max(1)).max(1);
    ENOUGH_STEPS.div_ceil(of_epoch).clamp(4, 16)
}

/// Data, models, privacy and mechanisms of a study; [`Settings::new`] has a default for everything but the
/// data.
///
/// Where `compares` is set, or the data are public ([`Settings::compares`]), defaults are those of a
/// comparison: three mechanisms, three learning rates and three repeats.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The data, as [`load`](crate::load) names them.
    pub data: String,
    /// How the data are read, if they are a table.
    pub table: Option<Table>,
    /// The persons of data without columns, if persons are protected.
    pub persons: Option<Persons>,
    /// The columns of users' texts and the model of their characters, if these are predicted.
    pub texts: Option<Texts>,
    /// Whether mechanisms are compared, rather than one model trained.
    pub compares: bool,
    /// The model; `None`: the default of the data.
    pub model: Option<ModelName>,
    /// The file of the plan to run, instead of one that the following settings ask for.
    pub plan: Option<PathBuf>,
    /// Target epsilons of one model; several repeat the study in subfolders, none is 4.
    pub epsilons: Vec<f64>,
    /// Target delta; `None`: [`default_delta`] of the training examples or persons.
    pub delta: Option<f64>,
    /// Passes over the data or steps; several repeat the study in subfolders, none is the default of the
    /// data.
    pub lengths: Vec<Length>,
    /// Expected number of examples, or users, in a batch; `None`: the default of the data.
    pub batch_size: Option<usize>,
    /// How batches may be formed; of several settings the one of least loss is taken.
    pub settings: Vec<Setting>,
    /// The mechanisms to train with; `None`: the one of least loss, in a comparison with its baselines.
    pub mechanisms: Option<Vec<StrategySpec>>,
    /// The loss that mechanisms are chosen for.
    pub objective: Objective,
    /// The arithmetic of noisy sums.
    pub arithmetic: ArithmeticKind,
    /// The workload that mechanisms are designed for; `None`: that of the optimizer.
    pub workload: Option<Workload>,
    /// How neighbouring data sets differ.
    pub adjacency: Adjacency,
    /// The maximum l2 norm of an example's gradient.
    pub clip_norm: f64,
    /// The part of a gradient that is clipped as one.
    pub clip_by: ClipBy,
    /// Learning rates, of which each mechanism keeps the best of its own; none is the default rate, in a
    /// comparison with its half and its double, and a search beyond them.
    pub learning_rates: Vec<f64>,
    /// The optimizer at any learning rate.
    pub optimizer: OptimizerConfig,
    /// Number of runs over which every result is averaged; `None`: 1, in a comparison 3.
    pub repeats: Option<usize>,
    /// The models that the stated epsilon covers.
    pub published: Published,
    /// Whether a model is trained without clipping and noise, too, though the data are not public.
    pub without_noise: bool,
    /// The number of canaries in one more training of each mechanism, which bounds epsilon from below.
    pub audit: Option<usize>,
    /// A seed of all noise. NOT PRIVATE: anyone who knows the number can subtract the noise.
    pub seed: Option<u64>,
    /// Maximum number of a user's examples that a step uses, if users are protected; `None`: 100.
    pub max_examples_per_user: Option<usize>,
    /// The local training of users in federated rounds; `None`: one step on all of a user's examples.
    pub local: Option<Local>,
}

impl Settings {
    /// The defaults for these data.
    pub fn new(data: impl Into<String>) -> Self {
        Self {
            data: data.into(),
            table: None,
            persons: None,
            texts: None,
            compares: false,
            model: None,
            plan: None,
            epsilons: Vec::new(),
            delta: None,
            lengths: Vec::new(),
            batch_size: None,
            settings: vec![Setting::Cyclic, Setting::Poisson],
            mechanisms: None,
            objective: Objective::Rms,
            arithmetic: ArithmeticKind::Grid,
            workload: None,
            adjacency: Adjacency::ZeroOut,
            clip_norm: 1.0,
            clip_by: ClipBy::Whole,
            learning_rates: Vec::new(),
            optimizer: UpdateRule::Sgd { learning_rate: 1.0, momentum: 0.9 }.into(),
            repeats: None,
            published: Published::default(),
            without_noise: false,
            audit: None,
            seed: None,
            max_examples_per_user: None,
            local: None,
        }
    }

    fn is_digits(&self) -> bool {
        self.data == "digits"
    }

    /// Whether the data are known to be public; data in a folder that the caller names are not.
    fn is_public(&self) -> bool {
        self.is_digits() || self.data == "fashion-mnist"
    }

    /// Whether users are protected, rather than examples.
    fn has_users(&self) -> bool {
        self.persons.is_some()
            || self.texts.is_some()
            || self.table.as_ref().is_some_and(|table| table.user.is_some())
    }

    /// Refuses empty lists, and settings that would be ignored.
    pub(crate) fn check(&self) -> Result<()> {
        let no_mechanism = self.mechanisms.as_ref().is_some_and(Vec::is_empty);
        let (has_plan, has_maximum) = (self.plan.is_some(), self.max_examples_per_user.is_some());
        let is_federated = self.settings.iter().any(|setting| matches!(setting, Setting::Federated { .. }));
        let refused = [
            ("settings", self.settings.is_empty(), "empty", "one or more"),
            ("mechanisms", no_mechanism, "empty", "one or more"),
            (
                "epsilon",
                has_plan && !self.epsilons.is_empty(),
                "given",
                "left out with a plan, which has its own",
            ),
            (
                "length",
                has_plan && !self.lengths.is_empty(),
                "given",
                "left out with a plan, which has its own",
            ),
            (
                "max_examples_per_user",
                has_maximum && (has_plan || !self.has_users() || is_federated),
                "given",
                "left out unless users are protected; with a plan, which has its own; and in federated rounds, where \
                 local steps decide",
            ),
        ];
        self.check_texts(is_federated)?;
        let found = refused.into_iter().find(|&(_, is_refused, ..)| is_refused);
        found.map_or(Ok(()), |(name, _, got, must_be)| Err(InvalidParameter::new(name, got, must_be).into()))
    }

    /// Refuses settings that do not go with the prediction of characters.
    fn check_texts(&self, is_federated: bool) -> Result<()> {
        if self.texts.is_none() {
            return Ok(());
        }
        let is_other = self.model.is_some_and(|model| model != ModelName::Lstm);
        let for_labels_alone = [
            ("table", self.table.is_some()),
            ("persons", self.persons.is_some()),
            ("model", is_other),
            ("without_noise", self.without_noise),
            ("audit", self.audit.is_some()),
        ];
        if let Some((name, _)) = for_labels_alone.into_iter().find(|&(_, given)| given) {
            return Err(for_labels(name).into());
        }
        if !is_federated && self.plan.is_none() {
            let got: Vec<&str> = self.settings.iter().map(|setting| setting.name()).collect();
            let must_be = "federated where characters are predicted";
            return Err(InvalidParameter::new("setting", got.join(" or "), must_be).into());
        }
        if self.learning_rates.is_empty() {
            let must_be = "given where characters are predicted: the default rate is for models of classes";
            return Err(InvalidParameter::new("learning_rate", "absent", must_be).into());
        }
        Ok(())
    }

    /// The source of the data.
    pub(crate) fn source(&self) -> Source<'_> {
        let Self { data, table, persons, texts, .. } = self;
        Source { data, table: table.as_ref(), persons: persons.as_ref(), texts: texts.as_ref() }
    }

    /// The model's name, or the data's default.
    pub fn model_name(&self) -> ModelName {
        let default = match &self.data[..] {
            "digits" => ModelName::Mlp,
            _ if self.texts.is_some() => ModelName::Lstm,
            table if table_file(table).is_some() => ModelName::Logistic,
            _ => ModelName::Cnn,
        };
        self.model.unwrap_or(default)
    }

    /// Whether mechanisms are compared, rather than one model trained.
    pub fn compares(&self) -> bool {
        self.compares || self.is_public()
    }

    /// Number of runs that every result is averaged over.
    pub fn repeats(&self) -> usize {
        self.repeats.unwrap_or(if self.compares() { 3 } else { 1 })
    }

    /// Whether a training without privacy is compared, too.
    pub(crate) fn without_noise(&self) -> bool {
        self.without_noise || self.is_public()
    }

    /// Update rules, one for each learning rate: those that are given, or `default(rule)` and in a comparison
    /// its half and its double.
    pub(crate) fn rules(&self, default: impl FnOnce(UpdateRule) -> Result<f64>) -> Result<Vec<UpdateRule>> {
        let at = |rate| self.optimizer.rule.with_learning_rate(rate);
        let rates = if !self.learning_rates.is_empty() {
            self.learning_rates.clone()
        } else {
            let rate = default(at(1.0))?;
            // The best rate depends on the noise, so that each mechanism chooses among several.
            if self.compares() { vec![rate / 2.0, rate, 2.0 * rate] } else { vec![rate] }
        };
        Ok(rates.into_iter().map(at).collect())
    }

    /// Requests for plans, one for each setting, given the numbers of training examples, or users, and model
    /// parameters.
    pub(crate) fn requests(&self, units: usize, dim: usize) -> Result<Vec<Request>> {
        self.settings.iter().map(|&setting| self.request(setting, units, dim)).collect()
    }

    fn request(&self, setting: Setting, units: usize, dim: usize) -> Result<Request> {
        let (has_users, is_federated) = (self.has_users(), matches!(setting, Setting::Federated { .. }));
        if is_federated && !has_users {
            let must_be =
                "one for examples: rounds are of users, and the data have none (user or users names them)";
            return Err(InvalidParameter::new("setting", setting.name(), must_be).into());
        }
        let is_of_digits = self.is_digits() && !has_users;
        let default = if is_of_digits { 96 } else { units.div_ceil(8).min(500) };
        let batch_size = self.batch_size.unwrap_or(default);
        let epochs = match (is_federated, is_of_digits) {
            (true, _) => 4,
            (false, true) => 20,
            (false, false) => default_epochs(units, batch_size),
        };
        let request = Request {
            epsilon: self.epsilons.first().copied().unwrap_or(4.0),
            delta: self.delta.unwrap_or_else(|| default_delta(units)),
            unit: if has_users { PrivacyUnit::User } else { PrivacyUnit::Example },
            // In a federated round, a user's local steps decide how many examples are used.
            max_examples_per_user: (has_users && !is_federated)
                .then(|| self.max_examples_per_user.unwrap_or(EXAMPLES_PER_USER)),
            adjacency: self.adjacency,
            objective: self.objective,
            clip_norm: self.clip_norm,
            dim,
            arithmetic: self.arithmetic,
            specs: self.mechanisms.clone(),
            ..Request::new(
                units,
                batch_size,
                self.lengths.first().copied().unwrap_or(Length::Epochs(epochs)),
                setting,
            )
        };
        let workload = self.applied_workload(request.schedule()?.steps)?;
        Ok(Request { workload, ..request })
    }

    /// The workload that is given, or the optimizer's: for the RMS loss [`OptimizerConfig::design_workload`].
    /// The rows of the last iterate differ in kind, so that the maximum over rows is of the linear map
    /// without momentum. With weight decay that map depends on the learning rate; the middle one of the
    /// learning rates is used. The map has no decay if the rate is the default, which is computed from the
    /// plan later.
    fn applied_workload(&self, steps: usize) -> Result<Workload> {
        if let Some(given) = &self.workload {
            return Ok(given.clone());
        }
        let rule = |rate| self.optimizer.rule.with_learning_rate(rate);
        let optimizer = match self.learning_rates.get(self.learning_rates.len() / 2) {
            Some(&rate) => OptimizerConfig { rule: rule(rate), ..self.optimizer },
            None => OptimizerConfig { rule: rule(1.0), weight_decay: 0.0, ..self.optimizer },
        };
        optimizer.check(steps)?;
        Ok(match self.objective {
            Objective::Rms => optimizer.design_workload(steps),
            Objective::Max => optimizer.workload_without_momentum(steps),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Batches of persons are an eighth of them, whatever their data: 50 persons are no 96.
    #[test]
    fn persons_of_digits_have_the_defaults_of_persons() {
        let examples = Settings::new("digits");
        let persons = Settings { persons: Some(Persons::Lines("names".into())), ..examples.clone() };
        let defaults = |of: &Settings, setting, units| {
            let request = of.request(setting, units, 650).unwrap();
            (request.batch_size, request.length)
        };
        assert_eq!(defaults(&examples, Setting::Cyclic, 1440), (96, Length::Epochs(20)));
        assert_eq!(defaults(&persons, Setting::Cyclic, 50), (7, Length::Epochs(16)));
        let rounds = Setting::Federated { min_sep: 2, max_participations: None };
        assert_eq!(defaults(&persons, rounds, 50), (7, Length::Epochs(4)));
    }

    #[test]
    fn default_epochs_are_the_fewest_with_enough_steps_within_their_range() {
        for units in (1..3000).chain([10_000, 60_000, 1_000_000, usize::MAX]) {
            for batch_size in [0, 1, 7, 96, 500, units] {
                let (epochs, of_epoch) =
                    (default_epochs(units, batch_size), units.div_ceil(batch_size.max(1)));
                let is_enough = |epochs: usize| of_epoch.saturating_mul(epochs) >= ENOUGH_STEPS;
                assert!((4..=16).contains(&epochs), "{units} {batch_size}: {epochs}");
                assert!(epochs == 16 || is_enough(epochs), "{units} {batch_size}: {epochs}");
                assert!(epochs == 4 || !is_enough(epochs - 1), "{units} {batch_size}: {epochs}");
            }
        }
    }
}
