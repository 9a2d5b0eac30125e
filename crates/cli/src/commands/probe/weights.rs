//! Weights of curvatures that the spectrum gives.

use std::fmt;

use antinoise_chart::{Axis, Chart, LineStyle, Series};
use antinoise_input::short;
use antinoise_mechanism::Workload;
use antinoise_train::probe::{Curvature, Probe, effective_dimension};
use serde::Serialize;

use crate::failure::Result;
use crate::output;
use crate::plot;

/// The curvatures of a workload and their weights.
#[derive(Debug, Serialize)]
pub struct Weights {
    /// In units of (1 - momentum) / (largest learning rate).
    curvatures: Vec<f64>,
    /// As fractions of the largest.
    weights: Vec<f64>,
    /// The curvatures of the loss that they follow from, those of all repeats.
    spectrum: Vec<Curvature>,
    /// The sum of the curvatures above 0 over the largest.
    effective_dimension: f64,
    /// Number of parameters.
    #[serde(skip)]
    dim: usize,
}

impl Weights {
    /// The weights of `workload`, which follow from `spectrum`.
    pub(super) fn new(spectrum: Vec<Curvature>, workload: &Workload, probe: &Probe<'_>) -> Self {
        let weights = match workload {
            Workload::LastIterate { weights, .. } => weights.clone(),
            _ => Vec::new(),
        };
        Self {
            curvatures: workload.curvatures(probe.steps),
            weights,
            effective_dimension: effective_dimension(&spectrum),
            spectrum,
            dim: probe.model.parameters(),
        }
    }

    /// A figure of the weights.
    pub(super) fn drawn(&self) -> Result<String> {
        let rising = self.curvatures.iter().copied().zip(self.weights.iter().copied()).rev();
        plot::file(vec![vec![
            Chart {
                title: "Curvatures along which noise raises the loss".into(),
                x: Axis::logarithmic("curvature times learning rate / (1 - momentum)"),
                y: Axis::linear("weight").covering(0.0),
                series: vec![Series::new("weight", LineStyle::Marked, rising)],
            }
            .into(),
        ]])
    }
}

impl fmt::Display for Weights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Weights of curvatures, which are times learning rate / (1 - momentum):\n")?;
        let row = |(h, weight): (&f64, &f64)| vec![short(*h, 3), short(*weight, 3)];
        let rows: Vec<Vec<String>> = self.curvatures.iter().zip(&self.weights).map(row).collect();
        writeln!(f, "{}", output::table(&["curvature", "weight"], &rows))?;
        let (effective, dim) = (short(self.effective_dimension, 3), self.dim);
        writeln!(
            f,
            "Effective dimension, the sum of positive curvatures over the largest: {effective} of {dim} parameters.\n"
        )
    }
}
