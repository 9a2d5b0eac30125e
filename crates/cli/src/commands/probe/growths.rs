//! Growths of the final loss that trainings measure, and those of the fitted weights.

use std::fmt;

use antinoise_chart::{Axis, Chart, LineStyle, Series};
use antinoise_input::short;
use antinoise_mechanism::Workload;
use antinoise_train::probe::Growth;
use serde::Serialize;

use crate::failure::Result;
use crate::output;
use crate::plot;

/// Growths of the final loss with noise at single steps.
#[derive(Debug, Serialize)]
pub struct Growths {
    /// As measured.
    growths: Vec<Growth>,
    /// By the fitted weights, at the same steps.
    fitted: Vec<f64>,
    /// Whether standard errors are more than half as large as the growths, or unknown.
    mostly_chance: bool,
    /// By the fitted weights, at all steps.
    #[serde(skip)]
    curve: Vec<f64>,
}

impl Growths {
    /// Measured growths, and those by the fitted weights of `workload` over `steps` steps.
    pub(super) fn new(growths: Vec<Growth>, workload: &Workload, steps: usize) -> Result<Self> {
        let curve = fitted(workload, &growths, steps)?;
        let fitted = growths.iter().map(|growth| curve[growth.step]).collect();
        let size = |of: fn(&Growth) -> f64| growths.iter().map(|growth| of(growth).powi(2)).sum::<f64>();
        let error = size(|growth| growth.error);
        let mostly_chance = error.is_nan() || error > 0.25 * size(|growth| growth.mean);
        Ok(Self { growths, fitted, mostly_chance, curve })
    }

    /// A figure of both.
    pub(super) fn drawn(&self) -> Result<String> {
        drawn(&self.growths, &self.curve)
    }
}

/// The growth at each step by the fitted weights: the rows of a workload are scaled, and so is their sum of
/// squares, to the measured growths by least squares.
fn fitted(workload: &Workload, growths: &[Growth], steps: usize) -> Result<Vec<f64>> {
    let rows = workload.responses(steps)?;
    let squares: Vec<f64> = (0..steps).map(|step| rows.iter().map(|u| u[step].powi(2)).sum()).collect();
    let at = |growth: &Growth| squares[growth.step];
    let product: f64 = growths.iter().map(|growth| at(growth) * growth.mean).sum();
    let factor = product / growths.iter().map(|growth| at(growth).powi(2)).sum::<f64>();
    Ok(squares.iter().map(|square| factor * square).collect())
}

fn drawn(growths: &[Growth], fitted: &[f64]) -> Result<String> {
    let measured = growths.iter().map(|growth| (growth.step as f64 + 1.0, growth.mean));
    plot::file(vec![vec![
        Chart {
            title: "What training remembers of a step's noise".into(),
            x: Axis::linear("step of the noise").whole().covering(1.0),
            y: Axis::linear("growth of the final test loss").covering(0.0),
            series: vec![
                Series::new("measured", LineStyle::Points, measured),
                Series::new("fitted", LineStyle::Line, (1..).map(f64::from).zip(fitted.iter().copied())),
            ],
        }
        .into(),
    ]])
}

impl fmt::Display for Growths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Growth of the final test loss with noise at one of {} steps:\n", self.curve.len())?;
        let row = |(growth, fitted): (&Growth, &f64)| {
            let error = if growth.error.is_nan() { "-".into() } else { short(growth.error, 2) };
            vec![(growth.step + 1).to_string(), short(growth.mean, 3), error, short(*fitted, 3)]
        };
        let rows: Vec<Vec<String>> = self.growths.iter().zip(&self.fitted).map(row).collect();
        writeln!(f, "{}", output::table(&["step", "growth", "standard error", "fitted"], &rows))?;
        if self.mostly_chance {
            let chance = match self.growths.iter().any(|growth| growth.error.is_nan()) {
                true => "One repeat has no standard errors: how much of the fit is chance is unknown.",
                false => {
                    "Standard errors are more than half as large as the growths: the fit is mostly chance."
                }
            };
            writeln!(f, "{chance}\nUse more --repeats or a larger --noise-multiplier.\n")?;
        }
        Ok(())
    }
}
