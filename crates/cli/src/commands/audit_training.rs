//! `antinoise audit-training`: one training with canaries, and the lower bound on epsilon from guesses about
//! them.

use std::fmt;
use std::path::PathBuf;

use antinoise_audit::{Canary, OneRunReport};
use antinoise_input::{short_down, short_up};
use antinoise_noise::{Key, RunId};
use antinoise_study::{ModelName, load, trained_with_canaries};
use antinoise_train::optimizer::UpdateRule;
use antinoise_train::trainer::Setup;
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::arguments::one_of;
use crate::failure::Result;
use crate::numbers::{count, real};
use crate::output;
use crate::progress::Progress;
use crate::source::load_plan;

/// Train once with canaries and guess which of them took part: a lower bound on epsilon.
///
/// M examples are replaced by canaries, and each canary takes part with probability 1/2. The auditor guesses
/// better than chance only if the run leaks; Steinke, Nasr and Jagielski (2023) turn correct guesses into a
/// lower bound on epsilon that holds with probability 1 - alpha, without repeating the training. Sampler,
/// clipping, noise and optimizer are those of `antinoise train`. The model is discarded.
///
/// Exit status 0: the bound is below the plan's epsilon. 1: it is above, and the plan's statement is refuted
/// at confidence 1 - alpha. 2: bad input.
#[derive(Debug, Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "Examples:
  antinoise plan --examples 1440 --batch-size 96 --epochs 10 --epsilon 2 \\
      --delta 1e-5 --setting poisson --out plan.toml
  antinoise audit-training --plan plan.toml
  antinoise audit-training --plan plan.toml --canary input --canaries 200"
)]
pub struct Arguments {
    /// The plan that is run, made by `antinoise plan --out` for as many examples as the data have.
    #[arg(long, value_name = "FILE")]
    plan: PathBuf,
    /// Data to train on, as for `antinoise train`.
    #[arg(long, default_value = "digits")]
    data: String,
    /// Model to train.
    #[arg(long, value_parser = one_of(ModelName::ALL), default_value = "mlp")]
    model: ModelName,
    /// Kind of canary.
    #[arg(long, value_enum, default_value = "gradient")]
    canary: CanaryName,
    /// Number of examples that are canaries; gradient canaries need at least as many model parameters.
    #[arg(long, value_name = "M", value_parser = count, default_value = "1000")]
    canaries: usize,
    /// Maximum probability that the bound is above the truth.
    #[arg(long, value_name = "A", default_value = "0.05", value_parser = real)]
    alpha: f64,
    /// Learning rate of SGD.
    #[arg(long, value_name = "RATE", default_value = "0.1", value_parser = real)]
    learning_rate: f64,
    /// Momentum of SGD.
    #[arg(long, value_name = "BETA", default_value = "0.9", value_parser = real)]
    momentum: f64,
}

/// The kinds of canaries.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum CanaryName {
    /// Gradients of the clip norm's length, each along a parameter of its own; the auditor sees every
    /// noisy sum.
    Gradient,
    /// Examples with a wrong label; the auditor sees the last model.
    Input,
}

/// Output of `antinoise audit-training`.
#[derive(Debug, Serialize)]
pub struct TrainingAudit {
    #[serde(flatten)]
    found: OneRunReport,
    /// Whether the lower bound is below the stated epsilon.
    holds: bool,
}

impl TrainingAudit {
    /// Whether the lower bound is below the stated epsilon.
    pub fn holds(&self) -> bool {
        self.holds
    }
}

/// Trains with canaries, and bounds epsilon by guesses about them.
pub fn run(arguments: &Arguments) -> Result<TrainingAudit> {
    let plan = load_plan(&arguments.plan)?;
    let dataset = load(&arguments.data, None, None)?;
    let model = arguments.model.build(&dataset)?;
    let rule = UpdateRule::Sgd { learning_rate: arguments.learning_rate, momentum: arguments.momentum };
    let setup = Setup { plan: &plan, model: &model, dataset: &dataset, optimizer: rule.into(), groups: None };
    let canary = match arguments.canary {
        CanaryName::Gradient => Canary::Gradient,
        CanaryName::Input => Canary::Input,
    };
    let secret = (Key::from_os()?, RunId::default());
    let _progress = Progress::endless("training with canaries");
    let found = trained_with_canaries(setup, &model, secret, (canary, arguments.canaries, arguments.alpha))?;
    let holds = found.epsilon_lower <= found.epsilon_stated;
    Ok(TrainingAudit { found, holds })
}

impl fmt::Display for TrainingAudit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = &self.found;
        let confidence = 100.0 * (1.0 - found.alpha);
        let rows = vec![
            vec!["canaries".into(), found.canaries.to_string()],
            vec!["guesses".into(), found.guesses.to_string()],
            vec!["right".into(), found.correct.to_string()],
            vec![format!("epsilon at least ({confidence}%)"), short_down(found.epsilon_lower, 4)],
            vec!["epsilon stated".into(), short_up(found.epsilon_stated, 5)],
            vec!["delta".into(), format!("{:e}", found.delta)],
        ];
        writeln!(f, "{}", output::table(&["figure", "value"], &rows))?;
        let verdict = if self.holds {
            "The bound is below what the plan states, as it must be. This does not prove the statement: an audit can find faults, \
             but not show that there are none."
        } else {
            "The bound is ABOVE what the plan states: what was run is not as private as it says."
        };
        writeln!(
            f,
            "{verdict}\nThe model, of test accuracy {:.1}%, was trained with canaries and is not kept.",
            100.0 * found.test_accuracy
        )
    }
}
