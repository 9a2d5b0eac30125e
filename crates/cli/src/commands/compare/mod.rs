//! `antinoise compare`: several mechanisms over several numbers of steps.

mod figure;
mod report;

use std::path::PathBuf;

use antinoise_input::at_least;
use antinoise_mechanism::design::{Objective, Status, StrategySpec};
use antinoise_mechanism::{Participation, Problem, Workload};
use clap::Args;

use self::report::{Bounds, ComparedStrategies, Format};
use crate::arguments::{ProblemOptions, parsed, participation};
use crate::destination::Overwriting;
use crate::failure::Result;
use crate::numbers::count;
use crate::progress::Progress;

/// Print the losses of several mechanisms over several numbers of steps as a table, and draw them.
#[derive(Debug, Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "Examples:
  antinoise compare --strategies identity,workload,blt:4,toeplitz,dense \\
      --steps 8,16,32,64,128 --objective max
  antinoise compare --strategies blt:2,blt:4,blt:8 --steps 1e3,1e6,1e9 \\
      --objective max --plot blt.svg
  antinoise compare --strategies toeplitz+column-normalized,dense+x4 \\
      --steps 64 --format csv"
)]
pub struct Arguments {
    /// Mechanisms, separated by commas: name[:size][+form][+column-normalized][+xRESTARTS].
    #[arg(long, value_name = "LIST", value_delimiter = ',', required = true, value_parser = parsed::<StrategySpec>)]
    strategies: Vec<StrategySpec>,
    /// Numbers of steps, separated by commas.
    #[arg(long, value_name = "LIST", value_delimiter = ',', required = true, value_parser = count)]
    steps: Vec<usize>,
    /// Loss to minimise and print: max or rms.
    #[arg(long, default_value = "rms", value_parser = parsed::<Objective>)]
    objective: Objective,
    /// Print the total loss, sens^2 ||B||_F^2, instead.
    #[arg(long)]
    total: bool,
    /// When one unit may take part: single, full-batch, cyclic:B,K, min-sep:B,K or file:PATH
    /// (one pattern of steps a line).
    #[arg(long, default_value = "single", value_parser = participation)]
    participation: Participation,
    #[command(flatten)]
    problem: ProblemOptions,
    /// How the table is printed.
    #[arg(long, value_enum, default_value = "markdown")]
    format: Format,
    /// Draw the losses, and their excess over the smallest one, to this SVG file: over the steps, or one row
    /// for each strategy if there is one number of steps.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    overwriting: Overwriting,
}

/// Measures every pair; a pair that cannot be designed is left out, and reported.
pub fn run(arguments: &Arguments) -> Result<ComparedStrategies> {
    let plot = arguments.overwriting.figure("plot", &arguments.plot)?;
    for &steps in &arguments.steps {
        at_least("steps", steps, 1)?;
        arguments.participation.check(steps)?;
        arguments.problem.workload.check_steps(steps)?;
    }
    let mut missing = Vec::new();
    let designs = arguments.steps.len() * arguments.strategies.len();
    let progress = Progress::new("compare", "designs", designs as u64);
    let (mut losses, mut statuses) = (Vec::new(), Vec::new());
    for &steps in &arguments.steps {
        let mut row = Vec::new();
        for spec in &arguments.strategies {
            row.push(
                one(arguments, spec, steps)
                    .map_err(|error| missing.push(format!("{spec} at {steps}: {error}")))
                    .ok(),
            );
            progress.advance(1);
        }
        let (row, how) = row.into_iter().map(Option::unzip).unzip();
        losses.push(row);
        statuses.push(how);
    }
    drop(progress);
    for reason in &missing {
        eprintln!("left out: {reason}");
    }
    let bounds = arguments.scale_of_bounds();
    let least_possible =
        arguments.steps.iter().map(|&n| bounds.map(|scale| Bounds::new(n, scale)).transpose());
    let report = ComparedStrategies {
        objective: arguments.objective,
        least_possible: least_possible.collect::<std::result::Result<_, _>>()?,
        total: arguments.total,
        bounds,
        strategies: arguments.strategies.iter().map(ToString::to_string).collect(),
        steps: arguments.steps.clone(),
        losses,
        statuses,
        missing,
        format: arguments.format,
    };
    if let Some(plot) = &plot {
        plot.write(report.figure()?.as_bytes())?;
    }
    Ok(report)
}

impl Arguments {
    /// Factor on the known bounds, which are for zero-out adjacency; `None` where they do not hold.
    fn scale_of_bounds(&self) -> Option<f64> {
        let prefix = matches!(self.problem.workload, Workload::Prefix);
        let single = matches!(self.participation, Participation::Single);
        let max = self.objective == Objective::Max && !self.total;
        (prefix && single && max).then(|| self.problem.adjacency.sensitivity_factor())
    }
}

fn one(
    arguments: &Arguments,
    spec: &StrategySpec,
    steps: usize,
) -> antinoise_mechanism::Result<(f64, Status)> {
    let problem = Problem {
        steps,
        workload: arguments.problem.workload.clone(),
        participation: arguments.participation.clone(),
        objective: arguments.objective,
    };
    let found = spec.design(&problem)?;
    let cost = found.value.loss(&problem.workload, &problem.participation, arguments.problem.adjacency)?;
    let loss = match (arguments.total, arguments.objective) {
        (true, _) => cost.total_loss,
        (false, Objective::Max) => cost.max_loss,
        (false, Objective::Rms) => cost.rms_loss,
    };
    Ok((loss, found.status))
}
