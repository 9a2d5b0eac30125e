//! What a report is made of.

use serde::Serialize;

/// The test accuracy after a step, averaged over repeats.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Accuracy {
    /// Steps done.
    pub step: usize,
    /// In \[0, 1\].
    pub mean: f64,
    /// Of the mean; none of a single run.
    pub standard_error: Option<f64>,
}

/// What one run contributes to a report; series are indexed by step from 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// What the mechanism is called.
    pub mechanism: String,
    /// In the order of steps.
    pub accuracies: Vec<Accuracy>,
    /// Standard deviation, in a coordinate, of the sum of the noise in the mean gradients up to each step.
    pub prefix_errors: Vec<f64>,
    /// First column of C: its entries on the diagonal and below.
    pub strategy: Vec<f64>,
    /// First column of C^-1.
    pub noise_correlating: Vec<f64>,
    /// Privacy parameter, not below the truth; infinite without privacy.
    pub epsilon: f64,
    /// What an audit shows of one model's epsilon, from below.
    pub audit: Option<f64>,
    /// epsilon of the first steps alone, at some of them: nothing where it was not found or nothing is
    /// private.
    pub spent: Vec<(usize, f64)>,
    /// Privacy parameter.
    pub delta: f64,
    /// sigma.
    pub noise_multiplier: f64,
    /// sens(C, Pi) under the adjacency.
    pub sensitivity: f64,
    /// The privacy claim in words: unit, adjacency, schema, epsilon, delta, sigma, sensitivity and its
    /// source.
    pub statement: String,
    /// The optimiser's.
    pub learning_rate: f64,
    /// Steps done.
    pub steps: usize,
    /// Seconds of training.
    pub seconds: f64,
    /// Seconds of these in noise.
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
    /// What was trained, and on what.
    pub title: String,
    /// The first run is what the others are compared with.
    pub runs: Vec<Run>,
}

/// What came of one mechanism at one epsilon.
#[derive(Debug, Clone, PartialEq)]
pub struct AtEpsilon {
    /// What the mechanism is called.
    pub mechanism: String,
    /// What it is called over all epsilons.
    pub series: String,
    /// Not below the truth; infinite without privacy.
    pub epsilon: f64,
    /// Mean test accuracy, in \[0, 1\].
    pub accuracy: f64,
    /// Of the mean; none of a single run.
    pub standard_error: Option<f64>,
    /// The optimiser's.
    pub learning_rate: f64,
    /// Root mean square of the standard deviations of prefix sums.
    pub rms_loss: f64,
}

/// One comparison at several epsilons.
#[derive(Debug, Clone, PartialEq)]
pub struct Epsilons {
    /// What was trained, and on what.
    pub title: String,
    /// Privacy parameter of all.
    pub delta: f64,
    /// By increasing epsilon; what is not private among the first.
    pub rows: Vec<AtEpsilon>,
    /// Each epsilon with its own report.
    pub links: Vec<(f64, String)>,
}
