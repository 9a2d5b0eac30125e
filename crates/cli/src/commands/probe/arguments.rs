use std::path::PathBuf;

use antinoise_input::{InvalidParameter, printable};
use antinoise_mechanism::Workload;
use antinoise_study::ModelName;
use antinoise_train::data::Dataset;
use antinoise_train::model::Model;
use antinoise_train::optimizer::{Decay, OptimizerConfig, Schedule, UpdateRule};
use antinoise_train::probe::Probe;
use clap::{Args, ValueEnum};

use crate::arguments::one_of;
use crate::commands::train::TableOptions;
use crate::destination::Overwriting;
use crate::failure::{Failure, Result};
use crate::numbers::{count, real};

/// What weights are computed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// Growths of the final loss with noise at single steps, by repeated trainings.
    Trainings,
    /// The number of directions of each curvature, by products with the curvature matrix.
    Spectrum,
}

impl By {
    fn name(self) -> &'static str {
        match self {
            Self::Trainings => "trainings",
            Self::Spectrum => "spectrum",
        }
    }
}

/// Measure on public data what a training remembers of the noise of each step, as a workload.
///
/// Near an optimum the final loss grows with the noise of a step by a sum of the squared responses of the
/// last iterate, over the curvatures of the loss. Weights say which curvatures matter for this model,
/// learning rate and schedule. `--workload learned:FILE` designs for them, where `--workload last-iterate`
/// gives all curvatures the same weight.
///
/// `--by trainings` trains with independent noise, adds the noise of one step once more, with both signs,
/// measures how much the final loss grows, and fits the weights. `--by spectrum` takes them from the number
/// of directions of each curvature at the end of one training a repeat, which gradients at a few dozen pairs
/// of points show.
///
/// NOT PRIVATE: use data that are public, and like the private ones.
#[derive(Debug, Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "Examples:
  antinoise probe --learning-rate 0.1 --batch-size 96 --steps 150 \\
      --noise-multiplier 8 --repeats 8 --probes 8 --out learned.toml
  antinoise loss --strategy dense --steps 150 \\
      --participation cyclic:15,10 --workload learned:learned.toml
  antinoise probe --by spectrum --learning-rate 0.1 --batch-size 96 \\
      --steps 150 --noise-multiplier 8 --products 16"
)]
pub struct Arguments {
    /// Public data to train on, as for `antinoise train`.
    #[arg(long, default_value = "digits")]
    pub(super) data: String,
    #[command(flatten)]
    pub(super) table: TableOptions,
    /// Model to train.
    #[arg(long, value_parser = one_of(ModelName::ALL), default_value = "mlp")]
    pub(super) model: ModelName,
    /// Number of examples in a batch.
    #[arg(long, value_name = "B", value_parser = count)]
    pub(super) batch_size: usize,
    /// Number of steps; with --epochs, it follows from them.
    #[arg(long, value_name = "N", value_parser = count, required_unless_present = "epochs", conflicts_with = "epochs")]
    pub(super) steps: Option<usize>,
    /// Passes over the data.
    #[arg(long, value_name = "K", value_parser = count)]
    pub(super) epochs: Option<usize>,
    /// Learning rate of SGD, as of the private training.
    #[arg(long, value_name = "RATE", value_parser = real)]
    pub(super) learning_rate: f64,
    /// Momentum of SGD.
    #[arg(long, value_name = "BETA", default_value = "0.9", value_parser = real)]
    pub(super) momentum: f64,
    /// How the learning rate falls, as for `antinoise train`.
    #[arg(long, default_value = "constant")]
    pub(super) schedule: Decay,
    /// Number of first steps over which the learning rate rises to the full one.
    #[arg(long, value_name = "N", default_value = "0", value_parser = count)]
    pub(super) warm_up: usize,
    /// Decoupled weight decay, as for `antinoise train`.
    #[arg(long, value_name = "LAMBDA", default_value = "0", value_parser = real)]
    pub(super) weight_decay: f64,
    /// Norm to which the gradient of each example is clipped.
    #[arg(long, value_name = "C", default_value = "1", value_parser = real)]
    pub(super) clip_norm: f64,
    /// Standard deviation of the noise in each coordinate of a step's sum, in clip norms.
    #[arg(long, value_name = "SIGMA", default_value = "1", value_parser = real)]
    pub(super) noise_multiplier: f64,
    /// What the weights are computed from.
    #[arg(long, default_value = "trainings")]
    pub(super) by: By,
    /// With --by trainings: number of probed steps, evenly spaced [default: 16].
    #[arg(long, value_name = "P", value_parser = count)]
    pub(super) probes: Option<usize>,
    /// With --by spectrum: number of products of the curvature matrix with a vector in a repeat, each of two
    /// gradients of all examples [default: 24].
    #[arg(long, value_name = "K", value_parser = count)]
    pub(super) products: Option<usize>,
    /// Number of trainings with different starts, batches and noise, in each of which all steps are probed,
    /// or the spectrum is computed.
    #[arg(long, value_name = "R", default_value = "4", value_parser = count)]
    pub(super) repeats: usize,
    /// Squared error of prefix sums over that of the last iterate, for independent noise.
    #[arg(long, value_name = "SHARE", default_value = "0.05", value_parser = real)]
    pub(super) prefix_share: f64,
    /// Seed of the trainings, which are not private.
    #[arg(long, value_name = "SEED", default_value = "1")]
    pub(super) seed: u64,
    /// Save the workload to this file, for --workload learned:FILE.
    #[arg(long, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
    /// Draw the measured and the fitted growth, or the weights of the curvatures, to this file, an SVG.
    #[arg(long, value_name = "FILE.svg")]
    pub(super) plot: Option<PathBuf>,
    #[command(flatten)]
    pub(super) overwriting: Overwriting,
}

impl Arguments {
    /// The number of steps over `examples` examples, those of a cyclic plan.
    fn steps(&self, examples: usize) -> usize {
        let of_epoch = (examples / self.batch_size.max(1)).max(1);
        self.steps.unwrap_or_else(|| of_epoch.saturating_mul(self.epochs.unwrap_or(1)))
    }

    /// The probe of `model` on `dataset`.
    pub(super) fn probe<'a>(&self, model: &'a Model, dataset: &'a Dataset) -> Probe<'a> {
        let rule = UpdateRule::Sgd { learning_rate: self.learning_rate, momentum: self.momentum };
        let schedule = Schedule { warm_up: self.warm_up, decay: self.schedule };
        Probe {
            model,
            dataset,
            optimizer: OptimizerConfig { schedule, weight_decay: self.weight_decay, ..rule.into() },
            batch_size: self.batch_size,
            steps: self.steps(dataset.train.len()),
            clip_norm: self.clip_norm,
            noise_multiplier: self.noise_multiplier,
            repeats: self.repeats,
            seed: self.seed,
        }
    }

    /// Refuses the option of the other way to probe.
    pub(super) fn check_way(&self) -> Result<()> {
        let (flag, other) = match self.by {
            By::Trainings => ("products", self.products),
            By::Spectrum => ("probes", self.probes),
        };
        match other {
            Some(given) => {
                let must_be = format!("left out with --by {}", self.by.name());
                Err(InvalidParameter::new(flag, given, must_be).into())
            }
            None => Ok(()),
        }
    }

    /// Number of probed steps.
    pub(super) fn probes(&self) -> usize {
        self.probes.unwrap_or(16)
    }

    /// Number of products with the curvature matrix in a repeat.
    pub(super) fn products(&self) -> usize {
        self.products.unwrap_or(24)
    }

    /// The file of the workload: TOML, which says what was probed.
    pub(super) fn saved(&self, workload: &Workload, steps: usize) -> Result<String> {
        let Self { data, model, batch_size, learning_rate, noise_multiplier, repeats, seed, .. } = self;
        let workload = toml::to_string(workload).map_err(Failure::other)?;
        let way = match self.by {
            By::Trainings => format!("Weights fitted to the growths of trainings at {} steps", self.probes()),
            By::Spectrum => {
                format!("Weights from the spectrum of curvatures by {} products", self.products())
            }
        };
        Ok(format!(
            "# NOT PRIVATE: measured by antinoise probe on {}.\n# Model {}, {steps} steps of batches of \
             {batch_size}, learning rate {learning_rate}, noise multiplier {noise_multiplier}, {repeats} repeats, \
             seed {seed}.\n# {way}.\n{workload}",
            printable(data),
            ModelName::ALL.iter().find(|(name, ..)| name == model).map_or("", |(_, name, _)| name),
        ))
    }
}
