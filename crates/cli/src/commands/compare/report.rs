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
    /// All bounds in closed form, also those on the losses of classes that are compared.
    pub bounds: Vec<BoundValues>,
    /// With --by-step: for each strategy, the standard deviation of the noise in the query of each step, at
    /// clip norm 1 and noise multiplier 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query_errors: Option<Vec<Option<Vec<f64>>>>,
    /// Reasons for missing losses.
    pub missing: Vec<String>,
    #[serde(skip)]
    pub total: bool,
    #[serde(skip)]
    pub known: KnownBounds,
    #[serde(skip)]
    pub format: Format,
}

/// Lower and upper bound on the loss of the best strategy.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Bounds {
    pub at_least: f64,
    pub at_most: f64,
}

/// A bound's name and its values, one for each number of steps.
#[derive(Debug, Serialize)]
pub struct BoundValues {
    pub name: &'static str,
    pub values: Vec<f64>,
}

/// A bound in closed form, as a function of the steps.
#[derive(Debug, Clone, Copy)]
pub struct BoundCurve {
    pub name: &'static str,
    pub is_lower: bool,
    at: fn(usize) -> antinoise_mechanism::Result<f64>,
    scale: f64,
}

impl BoundCurve {
    /// The bound at a number of steps.
    pub fn at(&self, steps: usize) -> antinoise_mechanism::Result<f64> {
        Ok(self.scale * (self.at)(steps)?)
    }
}

/// A bound on the loss of a class of strategies: its names, the losses it bounds, its label, and its value by
/// the number of steps.
type OfClass = (
    &'static [&'static str],
    &'static [Objective],
    &'static str,
    fn(usize) -> antinoise_mechanism::Result<f64>,
);

const MAX: &[Objective] = &[Objective::Max];
const RMS: &[Objective] = &[Objective::Rms];
const BOTH: &[Objective] = &[Objective::Max, Objective::Rms];

const OF_CLASSES: [OfClass; 7] = [
    (&["identity"], MAX, "identity = √n", |n| Ok((n as f64).sqrt())),
    (&["identity"], RMS, "identity = √((n+1)/2)", |n| Ok((0.5 * (n as f64 + 1.0)).sqrt())),
    (&["workload"], BOTH, "workload = √n", |n| Ok((n as f64).sqrt())),
    (
        &["toeplitz", "toeplitz+square-root"],
        MAX,
        "toeplitz ≤ 1+(γ+ln(n))/π",
        bounds::toeplitz_max_loss_at_most,
    ),
    (
        &["toeplitz+square-root+column-normalized"],
        BOTH,
        "column-normalized ≤ 1+ln(n)/π",
        bounds::prefix_max_loss_at_most,
    ),
    (&["tree"], MAX, "tree ≤ √(h(h+1))", bounds::tree_max_loss_at_most),
    (&["fourier"], RMS, "fourier ≤ 1+Σ1/sin((2a+1)π/2n)/n", bounds::fourier_rms_loss_at_most),
];

/// Bounds in closed form on losses for prefix sums in one pass; none where they do not hold. The first two
/// are those of the best strategy.
#[derive(Debug, Clone, Default)]
pub struct KnownBounds(pub Vec<BoundCurve>);

impl KnownBounds {
    /// Bounds on this loss: `scale` times those for zero-out adjacency. Those of a class are there if it is
    /// among the strategies.
    pub fn new(objective: Objective, scale: f64, strategies: &[String]) -> Self {
        let curve = |name, is_lower, at| BoundCurve { name, is_lower, at, scale };
        let least = match objective {
            Objective::Max => curve("best ≥ ln(2n+1)/π", true, bounds::prefix_max_loss_at_least),
            Objective::Rms => curve("best ≥ (Henzinger et al.)", true, bounds::prefix_rms_loss_at_least),
        };
        let most = curve("best ≤ 1+ln(n)/π", false, bounds::prefix_max_loss_at_most);
        let is_compared = |names: &[&str]| strategies.iter().any(|strategy| names.contains(&&**strategy));
        let of_classes = OF_CLASSES
            .iter()
            .filter(|(names, objectives, ..)| is_compared(names) && objectives.contains(&objective))
            .map(|&(.., name, at)| curve(name, false, at));
        Self([least, most].into_iter().chain(of_classes).collect())
    }

    /// The bounds on the loss of the best strategy.
    pub fn of_best(&self, steps: usize) -> antinoise_mechanism::Result<Option<Bounds>> {
        let [least, most, ..] = &self.0[..] else { return Ok(None) };
        Ok(Some(Bounds { at_least: least.at(steps)?, at_most: most.at(steps)? }))
    }

    /// All bounds at these numbers of steps.
    pub fn values(&self, steps: &[usize]) -> antinoise_mechanism::Result<Vec<BoundValues>> {
        let values = |curve: &BoundCurve| -> antinoise_mechanism::Result<BoundValues> {
            let values = steps.iter().map(|&n| curve.at(n)).collect::<antinoise_mechanism::Result<_>>()?;
            Ok(BoundValues { name: curve.name, values })
        };
        self.0.iter().map(values).collect()
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
