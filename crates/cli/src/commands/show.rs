//! `antinoise show`: a strategy as a picture.

use std::fmt;
use std::path::PathBuf;

use antinoise_chart::{Axis, Chart, Heatmap, LineStyle, Series};
use antinoise_input::{between, largest, short};
use antinoise_mechanism::{AnyStrategy, Encoder, Problem};
use clap::Args;
use serde::Serialize;

use crate::destination::{Destination, Overwriting};
use crate::failure::Result;
use crate::plot;
use crate::progress::Progress;
use crate::source::{Source, SourceOptions};

/// Draw C and C^-1 as heat maps, the entries of their first columns, the inner products of C's columns, and
/// the noise of the query of each step, for at most 4096 steps.
#[derive(Debug, Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "Examples:
  antinoise show --strategy dense --steps 64 --out dense.svg
  antinoise show --strategy banded-toeplitz --bands 16 --steps 64 \\
      --participation cyclic:16,4 --out banded.svg
  antinoise plan --examples 60k --batch-size 500 --epochs 4 --epsilon 4 \\
      --delta 1e-5 --setting cyclic --out plan.toml
  antinoise show --plan plan.toml --out plan.svg"
)]
pub struct Arguments {
    #[command(flatten)]
    source: SourceOptions,
    /// SVG file to write.
    #[arg(long, value_name = "FILE.svg")]
    out: PathBuf,
    #[command(flatten)]
    overwriting: Overwriting,
}

/// Output of `antinoise show`.
#[derive(Debug, Serialize)]
pub struct ShownStrategy {
    out: PathBuf,
    strategy: &'static str,
    /// First column of C.
    strategy_column: Vec<f64>,
    /// First column of C^-1.
    noise_correlating_column: Vec<f64>,
    /// Largest magnitude of C^T C at each distance between two steps: 0 where participations at that distance
    /// add no more to the squared sensitivity than they do alone.
    largest_inner_products: Vec<f64>,
    /// Standard deviation of the noise in the query of each step, at clip norm 1 and noise multiplier 1: row
    /// norms of B = A C^-1 times sensitivity.
    query_errors: Vec<f64>,
}

/// Maximum number of entries of a column that are drawn at even distances.
const MOST_EVEN: usize = 128;

/// Draws the strategy.
pub fn run(arguments: &Arguments) -> Result<ShownStrategy> {
    let (problem, plan) = arguments.source.problem()?;
    let steps = between("steps", problem.steps, 1, plot::MOST_STEPS, "the maximum that can be drawn")?;
    let out = Destination::figure("out", &arguments.out, arguments.overwriting)?;
    let progress = Progress::endless("designing");
    let source = arguments.source.solve_for(problem, plan)?;
    let strategy = &source.solution.value;
    let encoder = strategy.encoder()?;
    let c: Vec<Vec<f64>> = (0..steps).map(|j| encoder.column(j)).collect();
    let inverse = from_seeds(strategy, steps)?;
    let Source { problem: Problem { workload, participation, .. }, adjacency, .. } = &source;
    let errors = strategy.query_errors(workload, participation, *adjacency)?;
    let products = largest_inner_products(&encoder);
    drop(progress);
    out.write(figure(strategy.class().name(), &c, &inverse, &products, &errors)?.as_bytes())?;
    Ok(ShownStrategy {
        out: arguments.out.clone(),
        strategy: strategy.class().name(),
        strategy_column: c[0].clone(),
        noise_correlating_column: inverse[0].clone(),
        largest_inner_products: products,
        query_errors: errors,
    })
}

/// Columns of C^-1: the weight of each seed in the noise of each step.
fn from_seeds(strategy: &AnyStrategy, steps: usize) -> Result<Vec<Vec<f64>>> {
    let recursion = strategy.recursion()?;
    let seeds = recursion.seeds(steps);
    let unit = |seed: usize| (0..seeds).map(|s| f64::from(s == seed)).collect::<Vec<f64>>();
    Ok((0..seeds).map(|seed| recursion.apply(steps, &unit(seed))).collect())
}

/// The largest magnitude on each diagonal of C^T C, from the main one on.
fn largest_inner_products(encoder: &Encoder) -> Vec<f64> {
    let gram = encoder.gram();
    let n = encoder.steps();
    (0..n).map(|lag| largest((lag..n).map(|i| gram[(i, i - lag)].abs()))).collect()
}

/// C and its inverse, their first columns, the inner products of C's columns, and the noise of the queries.
fn figure(
    name: &str,
    c: &[Vec<f64>],
    inverse: &[Vec<f64>],
    products: &[f64],
    errors: &[f64],
) -> Result<String> {
    let c_map = Heatmap::of_columns(format!("C of {name}"), ("step of the gradient", "row of C"), c);
    let inverse_map =
        Heatmap::of_columns("C\u{207b}\u{b9}: noise from seeds", ("seed", "step of the noise"), inverse);
    let errors = Chart {
        title: "Noise of each query".into(),
        x: Axis::linear("training step").whole().covering(1.0),
        y: Axis::linear("standard deviation at clip norm 1, noise multiplier 1").covering(0.0),
        series: vec![Series::new("noise", LineStyle::Line, (1..).map(f64::from).zip(errors.iter().copied()))],
    };
    let lags = (0..).map(f64::from).zip(products.iter().copied());
    let products = Chart {
        title: "Columns of C: largest inner product".into(),
        x: Axis::linear("steps between the two columns").whole().covering(0.0),
        y: Axis::linear("largest magnitude on that diagonal of C\u{1d40}C (no unit)").covering(0.0),
        series: vec![Series::new("largest magnitude", LineStyle::Line, lags)],
    };
    plot::file(vec![
        vec![c_map.into(), inverse_map.into()],
        vec![
            column("First column of C", &c[0]).into(),
            column("First column of C\u{207b}\u{b9}", &inverse[0]).into(),
        ],
        vec![products.into(), errors.into()],
    ])
}

/// Chart of the entries of a column by row, as separate points.
fn column(title: &str, entries: &[f64]) -> Chart {
    let rows = (1..).map(f64::from).zip(entries.iter().copied());
    let name = "row, from the diagonal on";
    // A logarithmic axis gives room to the first rows, where most of the decay is.
    let x = if entries.len() > MOST_EVEN {
        Axis::logarithmic(name)
    } else {
        Axis::linear(name).whole().covering(1.0)
    };
    let y = Axis::linear("entry (no unit)").covering(0.0);
    Chart { title: title.into(), x, y, series: vec![Series::new(title, LineStyle::Points, rows)] }
}

impl fmt::Display for ShownStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps = self.query_errors.len();
        let words = if steps == 1 { "step" } else { "steps" };
        writeln!(f, "{}: {}, {steps} {words}\n", self.out.display(), self.strategy)?;
        writeln!(f, "Standard deviation of each query's noise, at clip norm 1 and noise multiplier 1:")?;
        let mut told = vec![1, steps.div_ceil(2), steps];
        told.dedup();
        for step in told {
            writeln!(f, "  step {step:<8} {}", short(self.query_errors[step - 1], 4))?;
        }
        let largest = self.query_errors.iter().copied().fold(0.0, f64::max);
        let mean = self.query_errors.iter().map(|error| error * error).sum::<f64>() / steps as f64;
        writeln!(f, "  {:<13} {}", "largest", short(largest, 4))?;
        writeln!(f, "  {:<13} {}", "RMS", short(mean.sqrt(), 4))
    }
}
