//! `antinoise loss`: loss and sensitivity of a mechanism.

use std::fmt;
use std::path::PathBuf;
use std::time::Instant;

use antinoise_input::{short, short_up};
use antinoise_mechanism::design::{Objective, Status, StrategySpec};
use antinoise_mechanism::sensitivity::{Kind, Sensitivity};
use clap::Args;
use serde::Serialize;

use crate::destination::Overwriting;
use crate::failure::{Failure, Result};
use crate::progress::Progress;
use crate::source::{Source, SourceOptions};

/// Print the errors, the sensitivity and the losses of one mechanism.
#[derive(Debug, Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "Examples:
  antinoise loss --strategy toeplitz --objective max --steps 1024
  antinoise loss --strategy banded-toeplitz --bands 120 --steps 480 \\
      --participation cyclic:120,4
  antinoise loss --strategy blt --order 5 --objective max --steps 1e10
  antinoise plan --examples 60k --batch-size 500 --epochs 4 --epsilon 4 \\
      --delta 1e-5 --setting cyclic --out plan.toml
  antinoise loss --plan plan.toml"
)]
pub struct Arguments {
    #[command(flatten)]
    source: SourceOptions,
    /// Save the strategy to this file, for --strategy file:PATH.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    overwriting: Overwriting,
}

/// Output of `antinoise loss`.
#[derive(Debug, Serialize)]
pub struct LossFigures {
    strategy: &'static str,
    steps: usize,
    workload: String,
    participation: String,
    adjacency: String,
    objective: Objective,
    max_loss: f64,
    rms_loss: f64,
    total_loss: f64,
    max_error: f64,
    rms_error: f64,
    sensitivity: Sensitivity,
    status: Status,
    improved: bool,
    designed_for: Option<String>,
    gap: Option<f64>,
    iterations: usize,
    seconds: f64,
}

/// Designs the strategy and measures it.
pub fn run(arguments: &Arguments) -> Result<LossFigures> {
    let out = arguments.overwriting.file("out", &arguments.out)?;
    let start = Instant::now();
    let progress = Progress::endless("designing");
    let Source { problem, adjacency, solution, designed_for, .. } = arguments.source.solve()?;
    drop(progress);
    let seconds = start.elapsed().as_secs_f64();
    let strategy = &solution.value;
    let cost = strategy.loss(&problem.workload, &problem.participation, adjacency)?;
    if let Some(out) = &out {
        out.write(toml::to_string(strategy).map_err(Failure::other)?.as_bytes())?;
    }
    Ok(LossFigures {
        strategy: strategy.class().name(),
        steps: problem.steps,
        workload: problem.workload.to_string(),
        participation: problem.participation.to_string(),
        adjacency: adjacency.to_string(),
        objective: StrategySpec::new(strategy.class())
            .design_objective(designed_for.as_ref().unwrap_or(&problem.workload), problem.objective),
        max_loss: cost.max_loss,
        rms_loss: cost.rms_loss,
        total_loss: cost.total_loss,
        max_error: cost.max_error,
        rms_error: cost.rms_error,
        sensitivity: cost.sensitivity,
        status: solution.status,
        improved: solution.improved,
        designed_for: designed_for.map(|workload| workload.to_string()),
        gap: solution.gap,
        iterations: solution.iterations,
        seconds,
    })
}

impl fmt::Display for LossFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} over {} steps, workload {}", self.strategy, self.steps, self.workload)?;
        writeln!(f, "participation {}, adjacency {}\n", self.participation, self.adjacency)?;
        writeln!(f, "             max            RMS")?;
        let figure = |x: f64| short(x, 8);
        writeln!(f, "error  {:>12}  {:>12}", figure(self.max_error), figure(self.rms_error))?;
        writeln!(
            f,
            "loss   {:>12}  {:>12}    total {}",
            figure(self.max_loss),
            figure(self.rms_loss),
            figure(self.total_loss)
        )?;
        let kind = match self.sensitivity.kind {
            Kind::Exact => "exact",
            Kind::UpperBound => "upper bound",
        };
        let sensitivity = short_up(self.sensitivity.value, 8);
        writeln!(f, "\nsensitivity {sensitivity} ({kind}: {})", self.sensitivity.source)?;
        let how = match self.status {
            Status::ClosedForm => "nothing to optimise".to_string(),
            Status::Converged => format!("{} loss optimised, {} iterations", self.objective, self.iterations),
            Status::Stalled => format!(
                "{} loss NOT converged: no step of the solver lowers it after {} iterations; the best found is shown",
                self.objective, self.iterations
            ),
            Status::IterationLimit => format!(
                "{} loss NOT converged after {} iterations; the best found is shown",
                self.objective, self.iterations
            ),
        };
        if let Some(workload) = self.designed_for.as_ref().filter(|&workload| *workload != self.workload) {
            writeln!(f, "designed for {workload}, not for the workload that it is measured under")?;
        }
        let gap = self
            .gap
            .map(rounded_up)
            .map_or(String::new(), |gap| format!(", certified relative gap {gap:.1e}"));
        writeln!(f, "{how}{gap}; {:.3} s", self.seconds)
    }
}

/// A gap rounded up to the two digits that are printed.
fn rounded_up(gap: f64) -> f64 {
    let unit = 10f64.powf(gap.log10().floor() - 1.0);
    if unit.is_normal() { (gap / unit).ceil() * unit } else { gap }
}
