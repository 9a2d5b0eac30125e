//! `antinoise plan`: candidates for a setting, and the choice among them.

use std::fmt;
use std::path::PathBuf;

use antinoise_accounting::PrivacyStatement;
use antinoise_input::InvalidParameter;
use antinoise_mechanism::optimize::{Objective, Status};
use antinoise_mechanism::strategy::StrategySpec;
use antinoise_mechanism::{Adjacency, PrivacyUnit};
use antinoise_plan::{Accountant, Candidate, Choice, Length, Request, Setting, VerifiedPlan, choose};
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::arguments::{ProblemOptions, ReleaseOptions, parsed};
use crate::destination::Overwriting;
use crate::failure::Result;
use crate::numbers::{bytes, count, real};
use crate::output;
use crate::progress::Progress;

/// Compare mechanisms for a setting at one privacy target, and choose.
#[derive(Debug, Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "Examples:
  antinoise plan --examples 60000 --batch-size 500 --epochs 4 --epsilon 4 \\
      --delta 1e-5 --setting cyclic
  antinoise plan --examples 60000 --batch-size 500 --epochs 4 --epsilon 1 \\
      --delta 1e-5 --setting poisson
  antinoise plan --examples 1e6 --batch-size 1000 --steps 2048 --epsilon 2 \\
      --delta 1e-8 --setting federated --min-sep 128 \\
      --max-participations 16 --dim 1e7 --memory 2e8 --out plan.toml"
)]
pub struct Arguments {
    /// Number of examples, or of users in a federated setting.
    #[arg(long, value_name = "N", value_parser = count)]
    examples: usize,
    /// Expected number of examples in a batch.
    #[arg(long, value_name = "B", value_parser = count)]
    batch_size: usize,
    #[command(flatten)]
    length: LengthOptions,
    /// Target epsilon.
    #[arg(long, value_name = "E", value_parser = real)]
    epsilon: f64,
    /// Target delta.
    #[arg(long, value_name = "D", value_parser = real)]
    delta: f64,
    /// How privacy units come to take part.
    #[arg(long, value_enum)]
    setting: SettingName,
    /// Federated: fewest steps between two participations of a user.
    #[arg(long, value_name = "B", value_parser = count)]
    min_sep: Option<usize>,
    /// Federated: most participations of a user [default: as many as fit].
    #[arg(long, value_name = "K", value_parser = count)]
    max_participations: Option<usize>,
    /// Model parameters, for the size of the noise's state and the spacing of the grid [default: a grid for up to
    /// 2^30].
    #[arg(long, value_name = "M", value_parser = count, default_value = "0", hide_default_value = true)]
    dim: usize,
    /// Most bytes of noise state.
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    memory: Option<usize>,
    #[command(flatten)]
    release: ReleaseOptions,
    #[command(flatten)]
    problem: ProblemOptions,
    /// The loss that is compared: max or rms.
    #[arg(long, default_value = "rms", value_parser = parsed::<Objective>)]
    objective: Objective,
    /// Most l2 norm of one example's gradient.
    #[arg(long, value_name = "NORM", default_value = "1", value_parser = real)]
    clip_norm: f64,
    /// Consider only this mechanism beside independent noise; may be repeated (blt:4, banded-toeplitz:16).
    #[arg(long, value_name = "STRATEGY", value_parser = parsed::<StrategySpec>)]
    strategy: Vec<StrategySpec>,
    /// Save the chosen plan to this file.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    overwriting: Overwriting,
}

/// How long to train.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct LengthOptions {
    /// Passes over the data.
    #[arg(long, value_name = "K", value_parser = count)]
    epochs: Option<usize>,
    /// Steps.
    #[arg(long, value_name = "n", value_parser = count)]
    steps: Option<usize>,
}

impl LengthOptions {
    /// The same as the library takes it.
    pub fn length(&self) -> Length {
        match (self.epochs, self.steps) {
            (Some(epochs), _) => Length::Epochs(epochs),
            (None, steps) => Length::Steps(steps.unwrap_or(0)),
        }
    }
}

/// The names of the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SettingName {
    /// Every example joins the batches of its group's turns with the same probability, on its own: sampling
    /// amplifies. One group, plain Poisson sampling, for one band.
    Poisson,
    /// Data are shuffled once and cut into batches that take turns.
    Cyclic,
    /// Units come by themselves, at least --min-sep steps apart.
    Federated,
    /// Each example at most once.
    Single,
}

impl Arguments {
    fn setting(&self) -> Result<Setting> {
        if self.setting != SettingName::Federated {
            let given = [("min_sep", self.min_sep), ("max_participations", self.max_participations)];
            if let Some((name, Some(got))) = given.into_iter().find(|(_, got)| got.is_some()) {
                return Err(
                    InvalidParameter::new(name, got, "left out: only --setting federated takes it").into()
                );
            }
        }
        Ok(match self.setting {
            SettingName::Poisson => Setting::Poisson,
            SettingName::Cyclic => Setting::Cyclic,
            SettingName::Single => Setting::Single,
            SettingName::Federated => {
                let min_sep = self.min_sep.ok_or_else(|| {
                    InvalidParameter::new("min_sep", "absent", "given with --setting federated")
                })?;
                Setting::Federated { min_sep, max_participations: self.max_participations }
            }
        })
    }

    fn request(&self) -> Result<Request> {
        let setting = self.setting()?;
        let federated = self.setting == SettingName::Federated;
        Ok(Request {
            epsilon: self.epsilon,
            delta: self.delta,
            unit: if federated { PrivacyUnit::User } else { PrivacyUnit::Example },
            adjacency: self.problem.adjacency,
            workload: self.problem.workload.clone(),
            objective: self.objective,
            clip_norm: self.clip_norm,
            dim: self.dim,
            release: self.release.kind(),
            memory: self.memory.map(|bytes| bytes as u64),
            specs: (!self.strategy.is_empty()).then(|| self.strategy.clone()),
            ..Request::new(self.examples, self.batch_size, self.length.length(), setting)
        })
    }
}

/// What the command prints.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The last ones may be independent noise in batches that are formed otherwise, to compare with.
    candidates: Vec<Row>,
    chosen: usize,
    explanation: String,
    plan: VerifiedPlan,
    statement: PrivacyStatement,
    #[serde(skip)]
    adjacency: Adjacency,
    /// Without the dimension nothing is known of memory.
    #[serde(skip)]
    has_dim: bool,
}

#[derive(Debug, Serialize)]
struct Row {
    strategy: &'static str,
    bands: Option<usize>,
    order: Option<usize>,
    noise_multiplier: f64,
    sensitivity: f64,
    max_loss: f64,
    rms_loss: f64,
    relative_to_independent: f64,
    state_bytes: u64,
    status: Status,
    /// Whether sampling amplifies its privacy.
    amplified: bool,
    accountant: Accountant,
    #[serde(skip)]
    name: String,
}

impl Row {
    fn new(candidate: &Candidate) -> Self {
        Self {
            strategy: candidate.spec.class.name(),
            bands: candidate.spec.bands,
            order: candidate.spec.order,
            noise_multiplier: candidate.noise_multiplier,
            sensitivity: candidate.loss.sensitivity.value,
            max_loss: candidate.max_loss,
            rms_loss: candidate.rms_loss,
            relative_to_independent: candidate.relative_to_independent,
            state_bytes: candidate.state_bytes,
            status: candidate.status,
            amplified: candidate.is_amplified(),
            accountant: candidate.schedule.scheme.accountant(),
            name: candidate.spec.to_string(),
        }
    }
}

impl Row {
    /// Independent noise in other batches, by the name under which it is known there.
    fn of_reference(candidate: &Candidate) -> Self {
        let how = if candidate.is_amplified() { "Poisson (DP-SGD)" } else { "cyclic" };
        Self { name: format!("{}, {how}", candidate.spec), ..Self::new(candidate) }
    }

    /// What the last column says: the choice, and a design that is not the best of its class for sure.
    fn mark(&self, chosen: bool) -> String {
        let open = (!self.status.is_final()).then_some("not converged");
        let chosen = chosen.then_some("<- chosen");
        chosen.into_iter().chain(open).collect::<Vec<_>>().join(", ")
    }
}

/// Chooses, and saves the plan where that is asked for.
pub fn run(arguments: &Arguments) -> Result<Report> {
    let out = arguments.overwriting.file("out", &arguments.out)?;
    let request = arguments.request()?;
    let progress = Progress::endless("planning");
    let choice = choose(&request)?;
    drop(progress);
    output::warn_of_delta(request.delta, request.examples, request.unit);
    let explanation = explanation(&choice, request.objective);
    let Choice { candidates, references, chosen, plan } = choice;
    if let Some(out) = &out {
        out.write(plan.to_toml().as_bytes())?;
    }
    let mut rows: Vec<Row> = candidates.iter().map(Row::new).collect();
    rows.extend(references.iter().map(Row::of_reference));
    let statement = plan.statement();
    let (adjacency, has_dim) = (arguments.problem.adjacency, arguments.dim > 0);
    Ok(Report { candidates: rows, chosen, explanation, plan, statement, adjacency, has_dim })
}

/// What the choice is worth, against the same noise in the same batches and against what could be run instead.
fn explanation(choice: &Choice, objective: Objective) -> String {
    let chosen = &choice.candidates[choice.chosen];
    let times =
        |other: &Candidate| format!("{:.2}", chosen.objective(objective) / other.objective(objective));
    let name = match objective {
        Objective::Max => "max",
        Objective::Rms => "RMS",
    };
    let independent = match choice.candidates[0].is_amplified() {
        true => "DP-SGD (independent noise, each example sampled anew at every step)",
        false => "independent noise in the same batches",
    };
    let worth = times(&choice.candidates[0]);
    let mut text = format!("{} has {worth} times the {name} loss of {independent}", chosen.spec);
    for reference in &choice.references {
        let instead = if reference.is_amplified() {
            "DP-SGD, where each example can be sampled anew at every step"
        } else {
            "independent noise without sampling, in batches that take turns"
        };
        text += &format!(", and {} times that of {instead}", times(reference));
    }
    let better = choice.references.iter().any(|r| r.objective(objective) < chosen.objective(objective));
    text + if better { ". Where that can be had, it is the better choice." } else { "." }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = [
            "strategy",
            "noise multiplier",
            "sensitivity",
            "max loss",
            "RMS loss",
            "vs independent",
            "noise state",
            "",
        ];
        let rows: Vec<Vec<String>> = self
            .candidates
            .iter()
            .enumerate()
            .map(|(i, row)| {
                vec![
                    row.name.clone(),
                    format!("{:.4}", row.noise_multiplier),
                    format!("{:.4}", row.sensitivity),
                    format!("{:.6}", row.max_loss),
                    format!("{:.6}", row.rms_loss),
                    format!("{:.3}", row.relative_to_independent),
                    if self.has_dim { output::bytes(row.state_bytes) } else { "-".into() },
                    row.mark(i == self.chosen),
                ]
            })
            .collect();
        writeln!(
            f,
            "{} adjacency. Losses are standard deviations of the averaged queries.\n",
            self.adjacency
        )?;
        writeln!(f, "{}", output::table(&header, &rows))?;
        writeln!(f, "{}\n", self.explanation.replace(", and", ",\nand").replace(". Where", ".\nWhere"))?;
        writeln!(f, "{}", self.statement)
    }
}
