//! The losses as a table.

use std::fmt;

use antinoise_mechanism::bounds;
use antinoise_mechanism::design::{Objective, Status};
use clap::ValueEnum;
use serde::Serialize;

/// Table formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A Markdown table.
    Markdown,
    /// Comma-separated values.
    Csv,
}

/// Output of `antinoise compare`.
#[derive(Debug, Serialize)]
pub struct ComparedStrategies {
    pub objective: Objective,
    pub strategies: Vec<String>,
    pub steps: Vec<usize>,
    /// Losses: one row for each number of steps, one column for each strategy; null if the design fails.
    pub losses: Vec<Vec<Option<f64>>>,
    /// Status of each design.
    pub statuses: Vec<Vec<Option<Status>>>,
    /// Bounds on the loss of the best strategy for each number of steps, if a theorem gives them.
    pub least_possible: Vec<Option<Bounds>>,
    /// Reasons for missing losses.
    pub missing: Vec<String>,
    #[serde(skip)]
    pub total: bool,
    #[serde(skip)]
    pub bounds: Option<f64>,
    #[serde(skip)]
    pub format: Format,
}

/// Lower and upper bound on the loss of the best strategy.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Bounds {
    pub at_least: f64,
    pub at_most: f64,
}

impl Bounds {
    /// Bounds for prefix sums and max loss: `scale` times the bounds for zero-out adjacency.
    pub fn new(steps: usize, scale: f64) -> antinoise_mechanism::Result<Self> {
        let at_least = scale * bounds::prefix_max_loss_at_least(steps)?;
        Ok(Self { at_least, at_most: scale * bounds::prefix_max_loss_at_most(steps)? })
    }
}

impl fmt::Display for ComparedStrategies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cell = |loss: &Option<f64>| loss.map_or(String::new(), number);
        let rows = self.steps.iter().zip(&self.losses);
        match self.format {
            Format::Csv => {
                writeln!(f, "steps,{}", self.strategies.join(","))?;
                for (steps, row) in rows {
                    writeln!(f, "{steps},{}", row.iter().map(cell).collect::<Vec<_>>().join(","))?;
                }
            }
            Format::Markdown => {
                writeln!(f, "| steps | {} |", self.strategies.join(" | "))?;
                writeln!(f, "|---|{}", "---|".repeat(self.strategies.len()))?;
                for ((steps, row), how) in rows.zip(&self.statuses) {
                    let open = |how: &Option<Status>| how.is_some_and(|status| !status.is_final());
                    let marked = |(loss, how)| cell(loss) + if open(how) { " *" } else { "" };
                    writeln!(
                        f,
                        "| {steps} | {} |",
                        row.iter().zip(how).map(marked).collect::<Vec<_>>().join(" | ")
                    )?;
                }
                if self.statuses.iter().flatten().flatten().any(|status| !status.is_final()) {
                    writeln!(f, "\n* not converged: the best found")?;
                }
            }
        }
        Ok(())
    }
}

/// `x` with seven digits, in exponent form if that is shorter.
fn number(x: f64) -> String {
    if (1e-3..1e6).contains(&x) { format!("{x:.6}") } else { format!("{x:.6e}") }
}
