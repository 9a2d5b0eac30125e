//! `antinoise plan`: candidates for a setting, and the choice among them.

mod explanation;
mod figure;
mod owned;
mod report;
mod sweep;

use std::fmt;
use std::path::PathBuf;

use antinoise_accounting::Markup;
use antinoise_input::{InvalidParameter, between};
use antinoise_mechanism::PrivacyUnit;
use antinoise_mechanism::design::Objective;
use antinoise_plan::{
    Length, MaxBatchSize, OwnedExamples, Request, Setting, choose_with, default_delta, read_strategy,
};
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde::Serialize;

use super::statement::Format;
use crate::arguments::{ArithmeticOptions, LengthOptions, ProblemOptions, StrategySource, parsed, settings};
use crate::destination::Overwriting;
use crate::failure::Result;
use crate::numbers::{bytes, count, real};
use crate::output;
use crate::progress::Progress;
use crate::source::owned_examples;
use owned::OwnedBatches;
use report::PlanChoice;
use sweep::{Sweep, Swept};

/// Compare mechanisms for a setting at one privacy target, and choose the one of smallest loss.
#[derive(Debug, Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "Examples:
  antinoise plan --examples 60000 --batch-size 500 --epochs 4 --epsilon 4 \\
      --delta 1e-6 --setting cyclic
  antinoise plan --examples 60000 --batch-size 500 --epochs 4 --epsilon 1 \\
      --setting poisson --long
  antinoise plan --examples 60000 --batch-size 500 --epochs 4 --epsilon 4 \\
      --delta 1e-6 --setting poisson --max-batch-size auto
  antinoise plan --examples 60000 --batch-size 500 --epochs 4 \\
      --epsilon 0.5 --delta 1e-6 --setting cyclic --examples-per-user 5
  antinoise plan --examples 4000 --batch-size 200 --epochs 4 --epsilon 1 \\
      --delta 1e-5 --setting cyclic --max-examples-per-user 100
  antinoise plan --examples 1e6 --batch-size 1000 --epochs 1 --epsilon 4 \\
      --delta 1e-7 --setting stream
  antinoise plan --examples 1e6 --batch-size 1000 --steps 2048 --epsilon 2 \\
      --delta 1e-8 --setting federated --min-sep 128 \\
      --max-participations 16 --dim 1e7 --memory 2e8 --out plan.toml
  printf 'ada,bob\\nada\\nbob,cy\\ncy,dan\\ndan\\n' > owners.txt
  antinoise plan --owners owners.txt --batch-size 2 --steps 6 --epsilon 8 \\
      --setting federated --min-sep 2 --out owners.toml
  antinoise loss --strategy dense --steps 32 --participation cyclic:8,4 \\
      --out c.toml
  antinoise plan --examples 4000 --batch-size 500 --epochs 4 --epsilon 2 \\
      --delta 1e-6 --setting cyclic --strategy file:c.toml
  antinoise plan --examples 1e6 --batch-size 1000 --steps 1000 \\
      --epsilon 2 --delta 1e-7 --setting poisson --quick \\
      --sweep batch-size --plot sweep.svg"
)]
pub struct Arguments {
    /// Number of examples; of users in a federated setting and with --max-examples-per-user.
    #[arg(long, value_name = "N", value_parser = count)]
    #[arg(required_unless_present = "owners", conflicts_with = "owners")]
    examples: Option<usize>,
    /// Examples with several owners, instead of --examples, for setting federated: a text file with the
    /// owners of each example, one example a line, names separated by commas. The plan protects each owner
    /// with all examples; `antinoise batches --owners` forms its batches, of B examples, and --epochs are
    /// passes over the examples.
    #[arg(long, value_name = "FILE")]
    owners: Option<PathBuf>,
    /// Expected number of examples in a batch; of users in a federated setting and with
    /// --max-examples-per-user.
    #[arg(long, value_name = "B", value_parser = count)]
    batch_size: usize,
    #[command(flatten)]
    length: LengthOptions,
    /// Target epsilon.
    #[arg(long, value_name = "E", value_parser = real)]
    epsilon: f64,
    /// Target delta [default: the power of ten at or below 0.1 / N, for N examples, at most 1e-5].
    #[arg(long, value_name = "D", value_parser = real)]
    delta: Option<f64>,
    /// How batches are formed, which decides which privacy units take part in which step.
    #[arg(long, value_parser = PossibleValuesParser::new(settings(|_| true)))]
    setting: String,
    /// Federated: minimum separation, the smallest number of steps from one participation of a user to the
    /// next.
    #[arg(long, value_name = "B", value_parser = count)]
    min_sep: Option<usize>,
    /// Federated: maximum number of participations of a user [default: as many as fit].
    #[arg(long, value_name = "K", value_parser = count)]
    max_participations: Option<usize>,
    /// Fixed shapes, for setting poisson: batches of more than SIZE examples are cut to it, uniformly at
    /// random, and can be padded to it; auto takes the smallest size that costs at most a hundredth of delta.
    /// Cyclic batches, whose sizes differ by at most one, still compete; bins do not.
    #[arg(long, value_name = "SIZE|auto", value_parser = max_batch_size)]
    max_batch_size: Option<MaxBatchSize>,
    /// Number of model parameters, which decides the size of the noise's state and the spacing of the grid
    /// [default: a grid for up to 2^30 parameters].
    #[arg(long, value_name = "M", value_parser = count, default_value = "0", hide_default_value = true)]
    dim: usize,
    /// Maximum size of the noise's state, in bytes; needs --dim.
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    memory: Option<usize>,
    /// Maximum estimated time for the noise of one step, in seconds of one core; needs --dim.
    #[arg(long, value_name = "SECONDS", value_parser = real)]
    noise_time: Option<f64>,
    /// Accepted loss above the smallest, as a fraction, in exchange for a smaller noise state; 0 chooses the
    /// smallest loss. States up to 256 MiB count as equal.
    #[arg(long, value_name = "SHARE", default_value = "0.05", value_parser = real)]
    tolerance: f64,
    /// Skip candidates that take seconds to optimise or to account for: dense strategies, banded strategies
    /// with every entry free, balls-in-bins sampling.
    #[arg(long)]
    quick: bool,
    /// Number of examples that one user may have: prints the epsilon of such a user, all of whose examples
    /// change together. The plan's own epsilon is that of one example.
    #[arg(long, value_name = "M", value_parser = count, conflicts_with = "sweep")]
    examples_per_user: Option<usize>,
    /// Plan for users instead of examples, for `antinoise train --user`: N and B are numbers of users, and a
    /// step uses the mean gradient of at most M examples of a user, clipped as one. Epsilon is that of a user
    /// with any number of examples.
    #[arg(long, value_name = "M", value_parser = count, conflicts_with = "examples_per_user")]
    max_examples_per_user: Option<usize>,
    #[command(flatten)]
    arithmetic: ArithmeticOptions,
    #[command(flatten)]
    problem: ProblemOptions,
    /// Loss to minimise and compare: max or rms.
    #[arg(long, default_value = "rms", value_parser = parsed::<Objective>)]
    objective: Objective,
    /// Clip norm: the maximum l2 norm of one example's gradient.
    #[arg(long, value_name = "NORM", default_value = "1", value_parser = real)]
    clip_norm: f64,
    /// Consider only this mechanism (blt:4, banded-toeplitz:16), compared with independent noise; may be
    /// repeated. file:PATH takes a strategy that `antinoise loss --out` saved, or your own matrix C, with a
    /// column for each step and at least as many rows, triangular or not: an array of NumPy (.npy, or .npz
    /// with the array C and, to be checked against the workload, B or A), a table of Arrow (.arrow; with the
    /// feature parquet), or rows in TOML (C = [[1.0], [0.5, 1.0]]).
    #[arg(long, value_name = "STRATEGY")]
    strategy: Vec<StrategySource>,
    /// Also plan for other batch sizes (with the same number of steps) or epsilons, from an eighth to eight
    /// times the given one, and print the loss of each choice and the number of gradients to compute.
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with = "out")]
    sweep: Option<Sweep>,
    /// Draw loss against noise state, or the sweep, to this SVG file.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Print every candidate and the whole privacy statement.
    #[arg(long)]
    long: bool,
    /// Format of the output; json is the same as --json.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Save the chosen plan to this file.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    overwriting: Overwriting,
}

/// A maximum batch size, or `auto`.
fn max_batch_size(text: &str) -> std::result::Result<MaxBatchSize, String> {
    match text {
        "auto" => Ok(MaxBatchSize::Auto),
        number => {
            count(number).map(MaxBatchSize::Of).map_err(|_| "must be auto or a whole number (640)".into())
        }
    }
}

impl Arguments {
    /// Whether `--format` asks for JSON.
    pub fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    fn markup(&self) -> Markup {
        self.format.markup().unwrap_or(Markup::Text)
    }

    /// The examples that `--owners` names.
    fn owned(&self) -> Result<Option<OwnedExamples>> {
        self.owners.as_deref().map(owned_examples).transpose()
    }

    fn request(&self, owned: Option<&OwnedExamples>) -> Result<Request> {
        let setting = Setting::named(&self.setting, self.min_sep, self.max_participations)?;
        let federated = matches!(setting, Setting::Federated { .. });
        if owned.is_some() && !federated {
            let must_be = "federated with --owners, whose batches keep owners min_sep steps apart";
            return Err(InvalidParameter::new("setting", setting.name(), must_be).into());
        }
        let examples = owned.map(OwnedExamples::users).or(self.examples).expect("clap asks for one of them");
        let length = match (owned, self.length.length()) {
            // Passes are over the examples, which may be more or fewer than their owners.
            (Some(owned), Length::Epochs(epochs)) => {
                let uses = epochs.saturating_mul(owned.examples());
                Length::Steps((uses / self.batch_size.max(1)).max(1))
            }
            (_, length) => length,
        };
        let specs: Vec<_> = self.strategy.iter().filter_map(StrategySource::spec).collect();
        let files = self.strategy.iter().filter_map(StrategySource::path);
        let strategies = files.map(|path| read_strategy(path, &self.problem.workload));
        let strategies = strategies.collect::<std::result::Result<_, _>>()?;
        Ok(Request {
            epsilon: self.epsilon,
            delta: self.delta.unwrap_or_else(|| default_delta(examples)),
            unit: match federated || self.max_examples_per_user.is_some() {
                true => PrivacyUnit::User,
                false => PrivacyUnit::Example,
            },
            max_batch_size: self.max_batch_size,
            max_examples_per_user: self.max_examples_per_user,
            adjacency: self.problem.adjacency,
            workload: self.problem.workload.clone(),
            objective: self.objective,
            clip_norm: self.clip_norm,
            dim: self.dim,
            arithmetic: self.arithmetic.kind(),
            memory: self.memory.map(|bytes| bytes as u64),
            noise_time: self.noise_time,
            tolerance: self.tolerance,
            thorough: !self.quick,
            specs: (!specs.is_empty()).then_some(specs),
            strategies,
            ..Request::new(examples, self.batch_size, length, setting)
        })
    }
}

/// Chooses a plan, and saves it if `--out` is given.
pub fn run(arguments: &Arguments, is_json: bool) -> Result<Output> {
    let (out, plot) = arguments.overwriting.out_and_plot(&arguments.out, &arguments.plot)?;
    let owned = arguments.owned()?;
    let request = arguments.request(owned.as_ref())?;
    // The text of one plan ends with its statement, which has the warning.
    if is_json || arguments.sweep.is_some() {
        output::warn_of_delta(request.delta, request.examples, request.unit);
    }
    refuse_examples_of_users(arguments.examples_per_user, &request)?;
    if let Some(sweep) = arguments.sweep {
        let swept = sweep.run(&request, arguments.markup())?;
        if let Some(plot) = &plot {
            plot.write(swept.figure()?.as_bytes())?;
        }
        return Ok(Output::Sweep(Box::new(swept)));
    }
    let progress = Progress::percent("planning");
    let choice = choose_with(&request, &|done, expected| progress.done(done, expected))?;
    let front = plot.as_ref().map(|_| figure::front(&choice, &request));
    let owned = owned.map(|examples| OwnedBatches::new(&examples, &choice.plan)).transpose()?;
    let report = PlanChoice { owned, ..PlanChoice::new(choice, &request, arguments.examples_per_user)? };
    drop(progress);
    if let (Some(plot), Some(front)) = (&plot, front) {
        plot.write(front?.as_bytes())?;
    }
    if let Some(out) = &out {
        out.write(report.plan.to_toml().as_bytes())?;
    }
    if let Some(warning) = report.beyond_memory(output::memory()) {
        eprintln!("warning: {warning}");
    }
    let (long, markup) = (arguments.long, arguments.markup());
    Ok(Output::Plan(Box::new(PlanChoice { long, markup, ..report })))
}

/// Refuses an invalid `--examples-per-user` before anything is designed.
fn refuse_examples_of_users(most: Option<usize>, request: &Request) -> Result<()> {
    let Some(most) = most else { return Ok(()) };
    if request.unit == PrivacyUnit::User {
        let must_be = "left out with --setting federated, whose epsilon is that of a user with all examples";
        return Err(InvalidParameter::new("examples_per_user", most, must_be).into());
    }
    between("examples_per_user", most, 1, request.examples, "examples")?;
    Ok(())
}

/// One plan, or several by a sweep.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Output {
    /// Candidates and the choice.
    Plan(Box<PlanChoice>),
    /// The choice at each point.
    Sweep(Box<Swept>),
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(report) => report.fmt(f),
            Self::Sweep(swept) => swept.fmt(f),
        }
    }
}
