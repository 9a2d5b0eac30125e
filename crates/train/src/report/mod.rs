//! A report of several runs: one HTML file that needs no other file and no network.

mod figure;
mod page;

use antinoise_input::InvalidParameter;

use crate::Error;

/// What one run contributes to a report; series are indexed by step from 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// What the mechanism is called.
    pub mechanism: String,
    /// (steps done, test accuracy in \[0, 1\]), in the order of steps.
    pub accuracies: Vec<(usize, f64)>,
    /// Standard error of the last accuracy as a mean over repeats; none of a single run.
    pub standard_error: Option<f64>,
    /// Standard deviation, in a coordinate, of the sum of the noise in the mean gradients up to each step.
    pub prefix_errors: Vec<f64>,
    /// First column of C: its entries on the diagonal and below.
    pub strategy: Vec<f64>,
    /// First column of C^-1.
    pub noise_correlating: Vec<f64>,
    /// Privacy parameter, not below the truth; infinite without privacy.
    pub epsilon: f64,
    /// Privacy parameter.
    pub delta: f64,
    /// sigma.
    pub noise_multiplier: f64,
    /// sens(C, Pi) under the adjacency.
    pub sensitivity: f64,
    /// The privacy claim in words: unit, adjacency, schema, epsilon, delta, sigma, sensitivity and its source.
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
    pub(crate) fn is_private(&self) -> bool {
        self.epsilon.is_finite()
    }

    /// The test accuracy after the last step that was tested, in \[0, 1\].
    ///
    /// ```
    /// # use antinoise_train::report::Run;
    /// # let run = Run { mechanism: "identity".into(), accuracies: vec![(1, 0.25), (2, 0.5)], standard_error: None,
    /// #     prefix_errors: vec![], strategy: vec![], noise_correlating: vec![], epsilon: 1.0, delta: 1e-6,
    /// #     noise_multiplier: 1.0, sensitivity: 1.0, statement: String::new(), learning_rate: 0.1, steps: 2, seconds: 1.0,
    /// #     seconds_in_noise: 0.1 };
    /// assert_eq!(run.test_accuracy(), Some(0.5));
    /// ```
    pub fn test_accuracy(&self) -> Option<f64> {
        self.accuracies.last().map(|&(_, accuracy)| accuracy)
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

impl Report {
    /// The report as HTML, with its figures as SVG and its style inside.
    ///
    /// ```
    /// # use antinoise_train::report::{Report, Run};
    /// # let run = Run { mechanism: "identity".into(), accuracies: vec![(1, 0.25), (2, 0.5)], standard_error: None,
    /// #     prefix_errors: vec![1.0, 1.4], strategy: vec![1.0, 0.0], noise_correlating: vec![1.0, 0.0],
    /// #     epsilon: 1.0, delta: 1e-6, noise_multiplier: 1.0, sensitivity: 1.0,
    /// #     statement: "Private.".into(), learning_rate: 0.1, steps: 2, seconds: 1.0, seconds_in_noise: 0.1 };
    /// let html = Report { title: "logistic on digits".into(), runs: vec![run] }.to_html()?;
    /// assert!(html.starts_with("<!doctype html>") && html.contains("</svg>"));
    /// # Ok::<(), antinoise_train::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there is no run, or a figure cannot be drawn.
    pub fn to_html(&self) -> Result<String, Error> {
        if self.runs.is_empty() {
            return Err(InvalidParameter::new("number of runs in a report", 0, "at least 1").into());
        }
        page::html(self)
    }
}
