//! `antinoise compare`: several mechanisms over several numbers of steps.

mod figure;
mod report;

use std::path::PathBuf;

use antinoise_input::{InvalidParameter, at_least, between};
use antinoise_mechanism::design::{Objective, Solution, Status, StrategySpec};
use antinoise_mechanism::{Participation, Problem, Workload};
use clap::Args;

use self::report::{ComparedStrategies, Format, KnownBounds};
use crate::arguments::{ProblemOptions, parsed, participation};
use crate::destination::Overwriting;
use crate::failure::Result;
use crate::numbers::count;
use crate::plot;
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
      --steps 64 --format csv
  antinoise compare --strategies tree,blt:4,dense --steps 128 \\
      --workload momentum:0.95 --plot steps.svg --by-step"
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
    /// When one unit may take part: single, full-batch, cyclic:B,K, min-sep:B,K, each-epoch:B or file:PATH
    /// (one pattern of steps a line).
    #[arg(long, default_value = "single", value_parser = participation)]
    participation: Participation,
    #[command(flatten)]
    problem: ProblemOptions,
    /// How the table is printed.
    #[arg(long, value_enum, default_value = "markdown")]
    format: Format,
    /// Draw the losses, and their excess over the smallest one, to this SVG file: over the steps, or one row
    /// for each strategy if there is one number of steps. Bounds in closed form are drawn where they hold:
    /// for prefix sums and one participation.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// With --plot: draw the noise of each step's query instead, one line for each strategy, at one privacy.
    /// For one number of steps, at most 4096.
    #[arg(long, requires = "plot")]
    by_step: bool,
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
    match arguments.steps[..] {
        [steps] if arguments.by_step => {
            between("steps", steps, 1, plot::MOST_STEPS, "the maximum that can be drawn step by step")?;
        }
        [..] if arguments.by_step => {
            let got = format!("{:?}", arguments.steps);
            return Err(InvalidParameter::new("steps", got, "one number with --by-step").into());
        }
        [..] => {}
    }
    let designs = arguments.steps.len() * arguments.strategies.len();
    let progress = Progress::new("compare", "designs", designs as u64);
    let (mut losses, mut statuses, mut query_errors) = (Vec::new(), Vec::new(), Vec::new());
    for &steps in &arguments.steps {
        let (mut row, mut how) = (Vec::new(), Vec::new());
        for spec in &arguments.strategies {
            let found = one(arguments, spec, steps)
                .map_err(|error| missing.push(format!("{spec} at {steps}: {error}")))
                .ok();
            row.push(found.as_ref().map(|found| found.loss));
            how.push(found.as_ref().map(|found| found.status));
            query_errors.push(found.and_then(|found| found.query_errors));
            progress.advance(1);
        }
        losses.push(row);
        statuses.push(how);
    }
    drop(progress);
    for reason in &missing {
        eprintln!("left out: {reason}");
    }
    arguments.warn_of_objective();
    let known = arguments.known_bounds();
    let least_possible = arguments.steps.iter().map(|&n| known.of_best(n));
    let report = ComparedStrategies {
        objective: arguments.objective,
        least_possible: least_possible.collect::<std::result::Result<_, _>>()?,
        bounds: known.values(&arguments.steps)?,
        total: arguments.total,
        known,
        strategies: arguments.strategies.iter().map(ToString::to_string).collect(),
        steps: arguments.steps.clone(),
        losses,
        statuses,
        query_errors: arguments.by_step.then_some(query_errors),
        missing,
        format: arguments.format,
    };
    if let Some(plot) = &plot {
        plot.write(report.figure()?.as_bytes())?;
    }
    Ok(report)
}

impl Arguments {
    /// Names the strategies that were designed for another loss than the one that is compared.
    fn warn_of_objective(&self) {
        let Self { problem: ProblemOptions { workload, .. }, objective, .. } = self;
        let others =
            self.strategies.iter().filter(|s| s.design_objective(workload, *objective) != *objective);
        let others: Vec<String> = others.map(ToString::to_string).collect();
        if !others.is_empty() {
            let others = others.join(", ");
            eprintln!(
                "warning: designed for the RMS loss of {workload}, not for the {objective} loss: {others}"
            );
        }
    }

    /// The bounds in closed form, which are for prefix sums in one pass.
    fn known_bounds(&self) -> KnownBounds {
        let is_prefix = matches!(self.problem.workload, Workload::Prefix);
        if !is_prefix || self.participation != Participation::Single || self.total {
            return KnownBounds::default();
        }
        let strategies: Vec<String> = self.strategies.iter().map(ToString::to_string).collect();
        KnownBounds::new(self.objective, self.problem.adjacency.sensitivity_factor(), &strategies)
    }
}

/// A strategy that was designed.
struct Measured {
    loss: f64,
    status: Status,
    /// Standard deviation of the noise of each step's query, where asked for.
    query_errors: Option<Vec<f64>>,
}

fn one(arguments: &Arguments, spec: &StrategySpec, steps: usize) -> antinoise_mechanism::Result<Measured> {
    let problem = Problem {
        steps,
        workload: arguments.problem.workload.clone(),
        participation: arguments.participation.clone(),
        objective: arguments.objective,
    };
    let Solution { value: strategy, status, .. } = spec.design(&problem)?;
    let (workload, adjacency) = (&problem.workload, arguments.problem.adjacency);
    let cost = strategy.loss(workload, &problem.participation, adjacency)?;
    let loss = match (arguments.total, arguments.objective) {
        (true, _) => cost.total_loss,
        (false, Objective::Max) => cost.max_loss,
        (false, Objective::Rms) => cost.rms_loss,
    };
    let query_errors = || strategy.query_errors(workload, &problem.participation, adjacency);
    Ok(Measured { loss, status, query_errors: arguments.by_step.then(query_errors).transpose()? })
}
