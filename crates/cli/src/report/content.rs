//! Contents of a report.

use serde::Serialize;

/// The test accuracy after a step, averaged over repeats.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Accuracy {
    /// Steps done.
    pub step: usize,
    /// Mean accuracy, in \[0, 1\].
    pub mean: f64,
    /// Standard error of the mean; `None` for a single run.
    pub standard_error: Option<f64>,
}

/// Results of one run in a report; series are indexed by step from 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Name of the mechanism.
    pub mechanism: String,
    /// Test accuracies, in the order of steps.
    pub accuracies: Vec<Accuracy>,
    /// Standard deviation, in a coordinate, of the sum of the noise in the mean gradients up to each step.
    pub prefix_errors: Vec<f64>,
    /// First column of C: its entries on the diagonal and below.
    pub strategy: Vec<f64>,
    /// First column of C^-1.
    pub noise_correlating: Vec<f64>,
    /// Privacy parameter, not below the truth; infinite without privacy.
    pub epsilon: f64,
    /// Lower bound on one model's epsilon from an audit.
    pub audit: Option<f64>,
    /// (step, epsilon of the steps up to it) for some steps; empty if it was not computed, or without
    /// privacy.
    pub spent: Vec<(usize, f64)>,
    /// Privacy parameter.
    pub delta: f64,
    /// Noise multiplier sigma.
    pub noise_multiplier: f64,
    /// sens(C, Pi) under the adjacency.
    pub sensitivity: f64,
    /// The privacy claim in words: unit, adjacency, schema, epsilon, delta, sigma, sensitivity and its
    /// source.
    pub statement: String,
    /// Learning rate of the optimiser.
    pub learning_rate: f64,
    /// Steps done.
    pub steps: usize,
    /// Seconds of training.
    pub seconds: f64,
    /// Part of `seconds` spent in making and adding noise.
    pub seconds_in_noise: f64,
}

impl Run {
    pub fn is_private(&self) -> bool {
        self.epsilon.is_finite()
    }

    /// The test accuracy after the last step that was tested.
    pub fn last(&self) -> Option<&Accuracy> {
        self.accuracies.last()
    }
}

/// Runs of one model on the same data, to be compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Model and data.
    pub title: String,
    /// Runs; the first is the reference for the others.
    pub runs: Vec<Run>,
}

/// Results of one mechanism at one epsilon.
#[derive(Debug, Clone, PartialEq)]
pub struct AtEpsilon {
    /// Name of the mechanism.
    pub mechanism: String,
    /// Name of the mechanism's series over all epsilons.
    pub series: String,
    /// Epsilon, not below the truth; infinite without privacy.
    pub epsilon: f64,
    /// Mean test accuracy, in \[0, 1\].
    pub accuracy: f64,
    /// Standard error of the mean; `None` for a single run.
    pub standard_error: Option<f64>,
    /// Learning rate of the optimiser.
    pub learning_rate: f64,
    /// Root mean square of the standard deviations of prefix sums.
    pub rms_loss: f64,
}

/// One comparison at several epsilons.
#[derive(Debug, Clone, PartialEq)]
pub struct Epsilons {
    /// Model and data.
    pub title: String,
    /// Delta of all rows.
    pub delta: f64,
    /// Results by increasing epsilon; those without privacy at the first epsilon.
    pub rows: Vec<AtEpsilon>,
    /// Each epsilon with its own report.
    pub links: Vec<(f64, String)>,
}
