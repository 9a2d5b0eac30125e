//! The options of `antinoise train`.

use std::path::{Path, PathBuf};

use antinoise_input::InvalidParameter;
use antinoise_mechanism::design::{Objective, StrategySpec};
use antinoise_mechanism::{Adjacency, Workload};
use antinoise_plan::{Length, Setting};
use antinoise_study::{ClipBy, ModelName, Persons, Published, Settings, Table};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use super::federated::FederatedOptions;
use super::optimizer::OptimizerOptions;
use super::table::TableOptions;
use super::texts::TextOptions;
use super::users::UserOptions;
use crate::arguments::{ArithmeticOptions, one_of, parsed, settings, workload};
use crate::failure::Result;
use crate::numbers::{count, real};

/// The choice among settings, or among mechanisms, by their loss.
const AUTO: &str = "auto";
/// The setting of federated rounds.
const FEDERATED: &str = "federated";
/// The default name of a run's folder.
const OUT: &str = "antinoise-run";
/// Maximum number of names (antinoise-run, antinoise-run-2 and so on), of which the first free one is taken.
const MOST_RUNS: usize = 1000;

/// Train a model with private gradients: one to give away, or a comparison of mechanisms at the same privacy.
///
/// On your own data, trains once, with the mechanism of smallest loss and the batches that suit it best.
/// DIR/model then holds the model, its plan, its privacy statement and a model card; `antinoise predict` and
/// `antinoise evaluate` use it.
///
/// With --compare, and always on the public digits and fashion-mnist, trains at the same (epsilon, delta)
/// with DP-SGD (independent noise, every step samples its batch) and with the mechanism of smallest loss, and
/// on public data also without privacy. A report compares the models. DIR/model then holds one that was
/// chosen before training; the statements of the others, in DIR/models, do not cover a choice among them.
#[derive(Debug, Clone, Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "Examples:
  antinoise train
  antinoise train --model logistic --mechanism blt:2 --epochs 2 \\
      --out quick
  antinoise train --resume quick
  antinoise train --model logistic --mechanism blt:2 --epsilon 1,4 \\
      --out epsilons
  antinoise train --model logistic --mechanism blt:2 --epochs 2,4,8 \\
      --out epochs
  echo distance,late > flights.csv
  seq 2000 | awk '{ print $1 * 37 % 5000 \",\" ($1 % 3 ? \"no\" : \"yes\") }' \\
      >> flights.csv
  antinoise train --data csv:flights.csv --label late=no,yes \\
      --range distance=0:5000 --epsilon 1 --out flights
  antinoise predict flights/model --data csv:flights.csv --out late.jsonl
  echo person,branch,minutes > visits.csv
  seq 2000 | awk '{ print \"p\" $1 % 700 \",\" ($1 % 3 ? \"east\" : \"west\") \",\" \\
      $1 % 120 }' >> visits.csv
  antinoise train --data csv:visits.csv --user person \\
      --label branch=east,west --range minutes=0:120 --epsilon 2 \\
      --out visits
  antinoise train --data csv:visits.csv --user person \\
      --label branch=east,west --range minutes=0:120 --epsilon 2 \\
      --setting federated --min-sep 6 --batch-size 80 --local-steps 3 \\
      --local-batch-size 1 --local-rate 0.5 --out rounds
  antinoise train --data csv:flights.csv --label late=no,yes \\
      --range distance=0:5000 --test-rows last --epsilon 1 --epochs 1 \\
      --compare --repeats 1 --learning-rate 0.25,0.5 --out comparison

visits.csv has a row for each visit, and several of one person: --user protects persons.
--data idx:DIR reads the four files of a data set in the format of MNIST, --data fashion-mnist
60,000 images (apt install dataset-fashion-mnist); its comparison takes about ten minutes."
)]
pub struct Arguments {
    /// The data: digits (embedded), fashion-mnist, fashion-mnist:DIR, idx:DIR (files in the format of MNIST),
    /// images:DIR (train/CLASS/*.png and test/CLASS/*.png), csv:PATH (a table whose first line names the
    /// columns), jsonl:PATH (one JSON object a line), npz:PATH (arrays of NumPy), parquet:PATH or arrow:PATH
    /// (both if built with the feature parquet; Arrow IPC files, .arrow or .feather, without compression).
    /// MNIST, CSV and JSON files may be gzipped.
    #[arg(long, default_value = "digits", conflicts_with = "resume")]
    pub data: String,
    #[command(flatten)]
    pub table: TableOptions,
    #[command(flatten)]
    pub users: UserOptions,
    #[command(flatten)]
    pub texts: TextOptions,
    /// Compare mechanisms, learning rates and repeats in a report, instead of training one model. Needed for
    /// several values of --mechanism, --learning-rate, --epsilon, --epochs or --steps, and for --repeats and
    /// --published-models [default: only for digits and fashion-mnist without a folder, which are public].
    #[arg(long, conflicts_with = "resume")]
    pub compare: bool,
    /// Model to train [default: mlp for digits, logistic for tables, cnn for images, lstm with --characters].
    #[arg(long, value_parser = one_of(ModelName::ALL))]
    pub model: Option<ModelName>,
    /// Run this plan, made by `antinoise plan --out`, instead of the options that follow.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["epsilon", "delta", "epochs", "steps", "batch_size", "setting", "mechanism", "clip_norm", "workload", "objective", "adjacency", "arithmetic", "max_examples_per_user", "min_sep", "max_participations"])]
    pub plan: Option<PathBuf>,
    /// Target epsilon of one model. With several values, separated by commas, the comparison is repeated for
    /// each, in subfolders, and accuracy is plotted against epsilon. With --published-models, the epsilon of
    /// all published models together is larger, and is reported [default: 4].
    #[arg(long, value_name = "E", value_delimiter = ',', value_parser = real)]
    pub epsilon: Vec<f64>,
    /// Target delta [default: the power of ten at or below 0.1 / N, for N training examples or persons, at
    /// most 1e-5].
    #[arg(long, value_name = "D", value_parser = real)]
    pub delta: Option<f64>,
    /// Passes over the data. With several values, separated by commas, the comparison is repeated for each,
    /// in subfolders, and accuracy is plotted against them: on public data like yours, this chooses epochs
    /// and learning rate together, at no cost in privacy [default: 20 for digits, 4 in federated rounds; for
    /// other data as many as 480 steps need, from 4 to 16].
    #[arg(long, value_name = "K", value_delimiter = ',', value_parser = count, conflicts_with = "steps")]
    pub epochs: Vec<usize>,
    /// Steps, instead of epochs; several as for --epochs.
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = count)]
    pub steps: Vec<usize>,
    /// Expected number of examples in a batch, or of persons with --user [default: 96 for digits; for other
    /// data 500, at most an eighth of them].
    #[arg(long, value_name = "B", value_parser = count)]
    pub batch_size: Option<usize>,
    /// How batches are formed.
    #[arg(long, value_parser = train_settings(), default_value = AUTO, conflicts_with = "resume")]
    pub setting: TrainSettings,
    #[command(flatten)]
    pub federated: FederatedOptions,
    /// Mechanism to train with: identity, blt:4, banded-toeplitz:16, ... auto takes the mechanism of smallest
    /// loss. With --compare it may be repeated, and auto compares three: DP-SGD; independent noise in the
    /// setting's batches; and the mechanism of smallest loss.
    #[arg(long, visible_alias = "strategy", default_value = AUTO, conflicts_with = "resume")]
    pub mechanism: Vec<String>,
    /// The loss that the mechanism is chosen for: max or rms.
    #[arg(long, default_value = "rms", value_parser = parsed::<Objective>, conflicts_with = "resume")]
    pub objective: Objective,
    #[command(flatten)]
    pub arithmetic: ArithmeticOptions,
    /// Workload that the mechanism is designed for, as for `antinoise loss` [default: for SGD up to 16,384
    /// steps last-iterate:MOMENTUM, the noise that the last model remembers; otherwise, and with --objective
    /// max, the map of the optimizer without momentum].
    #[arg(long, value_parser = workload, conflicts_with = "resume")]
    pub workload: Option<Workload>,
    /// How neighbouring data sets differ: zero-out (one unit contributes nothing) or replace-one.
    #[arg(long, default_value = "zero-out", value_parser = parsed::<Adjacency>, conflicts_with = "resume")]
    pub adjacency: Adjacency,
    /// Clip norm: the maximum l2 norm of one example's gradient [default: 1].
    #[arg(long, value_name = "NORM", value_parser = real)]
    pub clip_norm: Option<f64>,
    /// Part of an example's gradient that is clipped as one: the whole, or each layer, to norms whose squares
    /// add up to the square of the clip norm. Privacy is the same.
    #[arg(long, value_parser = one_of(ClipBy::ALL), default_value = "whole", conflicts_with = "resume")]
    pub clip_by: ClipBy,
    /// Learning rate. With --compare, several may be given, separated by commas, and each mechanism keeps the
    /// one that is best for it [default: computed from the plan's noise, the model's size and the public
    /// scale of the data, at no cost in privacy. With --compare also half and twice that rate. If a
    /// mechanism's best rate is the smallest or the largest, further rates are tried, and rates that are far
    /// behind are not repeated; with --published-models all, only the three rates are tried.
    /// With --characters there is no default].
    #[arg(long, value_name = "RATE", value_delimiter = ',', value_parser = real)]
    pub learning_rate: Vec<f64>,
    #[command(flatten)]
    pub optimizer: OptimizerOptions,
    /// Number of runs, each with its own key, over which every result is averaged [default: 1; with --compare
    /// 3].
    #[arg(long, value_name = "R", value_parser = count, conflicts_with = "resume")]
    pub repeats: Option<usize>,
    /// Number of models of each mechanism that will be published: the stated epsilon covers them together.
    /// With all, it covers every trained model, and so the choice of the best. With
    /// several --epsilon, --epochs or --steps, it covers the models of one of these values only [default: 1].
    #[arg(long, value_name = "R|all")]
    pub published_models: Option<Published>,
    /// Also train a baseline without clipping and noise. NOT PRIVATE: do not show its results to anyone who
    /// may not see the data [default: only for digits and fashion-mnist without a folder, which are public].
    #[arg(long)]
    pub without_noise: bool,
    /// Train each mechanism once more with M canaries, half of which take part, and guess which: correct
    /// guesses give a lower bound on epsilon, reported next to the stated one. The bound depends on gradients
    /// without noise, and no privacy statement covers it.
    #[arg(long, value_name = "M", value_parser = count)]
    pub audit: Option<usize>,
    /// Derive all noise from this number, so that a run can be repeated. NOT PRIVATE: anyone who knows the
    /// number can subtract the noise. For experiments on public data only.
    #[arg(long, value_name = "SEED")]
    pub seed: Option<u64>,
    /// Folder for the model, the report, the plans and the checkpoints [default: antinoise-run, or if it is
    /// taken antinoise-run-2 and so on].
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub out: Option<PathBuf>,
    /// Append one line of JSON per step to this file; with --resume, continue it. It contains losses of
    /// private examples, which no privacy statement covers.
    #[arg(long, value_name = "FILE")]
    pub metrics: Option<PathBuf>,
    /// Resume the run in this folder that was stopped or killed; if it is finished, print its results again.
    #[arg(long, value_name = "DIR")]
    pub resume: Option<PathBuf>,
}

/// The name of the setting; `None` for auto.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrainSettings(Option<String>);

/// A parser of the name of a setting, or auto.
fn train_settings() -> impl TypedValueParser<Value = TrainSettings> {
    let auto = PossibleValue::new(AUTO)
        .help("Cyclic or sampled batches, whichever give a mechanism the smaller loss");
    let names = std::iter::once(auto).chain(settings(|_| true));
    PossibleValuesParser::new(names).map(|name| TrainSettings((name != AUTO).then_some(name)))
}

impl Arguments {
    /// The study that the options ask for.
    ///
    /// # Errors
    /// If an option is invalid, or asks for several models where one is trained.
    pub fn settings(&self) -> Result<Settings> {
        let steps = self.steps.iter().copied().map(Length::Steps);
        let lengths = steps.chain(self.epochs.iter().copied().map(Length::Epochs)).collect();
        let texts = self.texts.texts(&self.data, &self.table, || self.users.column())?;
        let (table, persons) = if texts.is_some() { (None, None) } else { self.table_or_persons()? };
        let defaults = Settings::new(&self.data);
        let settings = Settings {
            table,
            persons,
            texts,
            compares: self.compare,
            model: self.model,
            plan: self.plan.clone(),
            epsilons: self.epsilon.clone(),
            delta: self.delta,
            lengths,
            batch_size: self.batch_size,
            settings: self.settings_compared()?,
            local: self.federated.local(),
            mechanisms: self.specs()?,
            objective: self.objective,
            arithmetic: self.arithmetic.kind(),
            workload: self.workload.clone(),
            adjacency: self.adjacency,
            clip_norm: self.clip_norm.unwrap_or(defaults.clip_norm),
            clip_by: self.clip_by,
            learning_rates: self.learning_rate.clone(),
            optimizer: self.optimizer.config()?,
            repeats: self.repeats,
            published: self.published_models.unwrap_or_default(),
            without_noise: self.without_noise,
            audit: self.audit,
            seed: self.seed,
            max_examples_per_user: self.users.max_examples_per_user,
            ..defaults
        };
        self.refuse_several_without_compare(&settings)?;
        Ok(settings)
    }

    /// The table, or the persons of data without columns.
    fn table_or_persons(&self) -> Result<(Option<Table>, Option<Persons>)> {
        Ok(match self.table.table(&self.data)? {
            Some(table) => (Some(Table { user: self.users.column()?, ..table }), None),
            None => (None, self.users.persons(&self.data)?),
        })
    }

    /// The settings whose plans are compared.
    fn settings_compared(&self) -> Result<Vec<Setting>> {
        let FederatedOptions { min_sep, max_participations, .. } = self.federated;
        let name = self.setting.0.as_deref();
        if name != Some(FEDERATED)
            && self.plan.is_none()
            && let Some(given) = self.federated.given()
        {
            let must_be = "left out unless --setting is federated";
            return Err(InvalidParameter::new(given, "given", must_be).into());
        }
        Ok(match name {
            None => vec![Setting::Cyclic, Setting::Poisson],
            Some(name) => vec![Setting::named(name, min_sep, max_participations)?],
        })
    }

    /// Refuses options that ask for several models where one is trained.
    fn refuse_several_without_compare(&self, settings: &Settings) -> Result<()> {
        fn list<T: ToString>(values: &[T]) -> String {
            values.iter().map(T::to_string).collect::<Vec<_>>().join(",")
        }
        let several = [
            ("epsilon", self.epsilon.len() > 1, list(&self.epsilon)),
            ("epochs", self.epochs.len() > 1, list(&self.epochs)),
            ("steps", self.steps.len() > 1, list(&self.steps)),
            ("mechanism", self.mechanism.len() > 1, self.mechanism.join(", ")),
            ("learning_rate", self.learning_rate.len() > 1, list(&self.learning_rate)),
            ("repeats", settings.repeats() > 1, settings.repeats().to_string()),
            ("published_models", self.published_models.is_some(), "given".into()),
        ];
        let several = several.into_iter().find(|(_, several, _)| *several && !settings.compares());
        several.map_or(Ok(()), |(name, _, got)| {
            let must_be = "a single one, or accompanied by --compare, which trains several models";
            Err(InvalidParameter::new(name, got, must_be).into())
        })
    }

    /// The folder of the run: the given one, or the first free one of the default names.
    pub fn out(&self) -> Result<PathBuf> {
        if let Some(out) = &self.out {
            return Ok(out.clone());
        }
        let name = |number: usize| match number {
            1 => PathBuf::from(OUT),
            _ => PathBuf::from(format!("{OUT}-{number}")),
        };
        let free = (1..=MOST_RUNS).map(name).find(|path| path.symlink_metadata().is_err());
        free.ok_or_else(|| {
            let got = format!("absent, and {OUT} to {OUT}-{MOST_RUNS} are taken");
            InvalidParameter::new("out", got, "the name of a new folder").into()
        })
    }

    /// Says on stderr that the default name was taken, if the run's folder `out` has another.
    pub fn tell_of_other_name(&self, out: &Path) {
        if self.out.is_none() && out != Path::new(OUT) {
            eprintln!("{OUT} is taken: this run writes into {}", out.display());
        }
    }

    /// The mechanisms that are named; `None` for auto.
    fn specs(&self) -> Result<Option<Vec<StrategySpec>>> {
        match &self.mechanism[..] {
            [only] if only == AUTO => Ok(None),
            names => Ok(Some(
                names
                    .iter()
                    .map(|name| {
                        name.parse::<StrategySpec>().map_err(|error| {
                            let must_be = format!("auto or a strategy ({error})");
                            InvalidParameter::new("mechanism", format!("{name:?}"), must_be)
                        })
                    })
                    .collect::<std::result::Result<_, _>>()?,
            )),
        }
    }

    /// Refuses options that differ from the settings of the resumed run.
    pub fn refuse_with_resume(&self) -> Result<()> {
        let given = [
            ("epsilon", !self.epsilon.is_empty()),
            ("delta", self.delta.is_some()),
            ("epochs", !self.epochs.is_empty()),
            ("steps", !self.steps.is_empty()),
            ("batch_size", self.batch_size.is_some()),
            ("model", self.model.is_some()),
            ("plan", self.plan.is_some()),
            ("clip_norm", self.clip_norm.is_some()),
            ("release", self.arithmetic.arithmetic.is_some()),
            ("learning_rate", !self.learning_rate.is_empty()),
            ("seed", self.seed.is_some()),
            ("zero_beyond", self.optimizer.zero_beyond.is_some()),
            ("without_noise", self.without_noise),
            ("audit", self.audit.is_some()),
        ];
        let given = given.into_iter().find_map(|(name, given)| given.then_some(name));
        let given = given
            .or_else(|| self.table.given())
            .or_else(|| self.users.given())
            .or_else(|| self.texts.given());
        match given.or_else(|| self.federated.given()) {
            Some(name) => {
                let must_be = "left out with --resume: a resumed run keeps the options it was started with";
                Err(InvalidParameter::new(name, "given", must_be).into())
            }
            None => Ok(()),
        }
    }
}
