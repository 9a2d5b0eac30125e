//! `antinoise show`: a strategy as a picture.

use std::fmt;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::destination::{Destination, Overwriting};
use crate::failure::Result;
use crate::plot::{Curves, HeatMap, maps_and_curves};
use crate::source::SourceOptions;

/// Draw C and C^-1 as heat maps and their first columns as curves, for at most 2048 steps.
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

/// What the command prints.
#[derive(Debug, Serialize)]
pub struct Report {
    out: PathBuf,
    strategy: &'static str,
    /// First column of C.
    strategy_column: Vec<f64>,
    /// First column of C^-1.
    noise_correlating_column: Vec<f64>,
}

/// Most steps that are drawn, and most cells of a heat map in each direction.
const MOST_STEPS: usize = 2048;
const MOST_CELLS: usize = 64;

/// Draws.
pub fn run(arguments: &Arguments) -> Result<Report> {
    let (problem, plan) = arguments.source.problem()?;
    let steps = antinoise_input::between("steps", problem.steps, 1, MOST_STEPS, "the most that are drawn")?;
    let out = Destination::figure("out", &arguments.out, arguments.overwriting)?;
    let strategy = arguments.source.solve_for(problem, plan)?.solution.value;
    let encoder = strategy.mechanism().encoder()?;
    let c: Vec<Vec<f64>> = (0..steps).map(|j| encoder.column(j)).collect();
    let recursion = strategy.mechanism().recursion()?;
    let seeds = recursion.seeds(steps);
    let unit = |seed: usize| (0..seeds).map(|s| f64::from(s == seed)).collect::<Vec<f64>>();
    let inverse: Vec<Vec<f64>> = (0..seeds).map(|seed| recursion.apply(steps, &unit(seed))).collect();
    let name = strategy.class().name();
    let maps = [heat_map(format!("C, {name}"), &c), heat_map("noise from seeds, C^-1".into(), &inverse)];
    let curves = [
        Curves { title: "first column of C".into(), values: c[0].clone() },
        Curves { title: "first column of C^-1".into(), values: inverse[0].clone() },
    ];
    out.write(maps_and_curves(&maps, &curves)?.as_bytes())?;
    Ok(Report {
        out: arguments.out.clone(),
        strategy: name,
        strategy_column: c[0].clone(),
        noise_correlating_column: inverse[0].clone(),
    })
}

/// Columns as a map of at most `MOST_CELLS` cells a side, each the entry of largest magnitude that it covers.
fn heat_map(title: String, columns: &[Vec<f64>]) -> HeatMap {
    let (rows, width) = (columns[0].len(), columns.len());
    let (down, across) = (rows.div_ceil(MOST_CELLS), width.div_ceil(MOST_CELLS));
    let mut cells = vec![vec![0.0f64; width.div_ceil(across)]; rows.div_ceil(down)];
    for (j, column) in columns.iter().enumerate() {
        for (i, &x) in column.iter().enumerate() {
            let cell = &mut cells[i / down][j / across];
            if x.abs() > cell.abs() {
                *cell = x;
            }
        }
    }
    HeatMap { title, cells }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.out.display(), self.strategy)
    }
}
