//! Output of `antinoise train`.

use std::fmt;
use std::path::PathBuf;

use antinoise_input::rounded_to_4;
use serde::Serialize;

use super::audit::Audited;
use super::clip_by::ClipBy;
use super::named::{Baseline, WITHOUT_NOISE};
use super::results::{edge, mean_and_error};
use crate::numbers::same_privacy;
use crate::output;
use crate::report::Accuracy;

/// Output of `antinoise train`.
#[derive(Debug, Serialize)]
pub struct Report {
    pub runs: Vec<Row>,
    pub report: PathBuf,
    #[serde(skip)]
    pub title: String,
    /// Trainings on the same data that epsilon does not cover.
    #[serde(skip)]
    pub uncovered: Option<String>,
}

/// Results of one mechanism at its best learning rate, averaged over repeats.
#[derive(Debug, Serialize)]
pub struct Row {
    pub mechanism: String,
    /// Kind of baseline; `None` if the mechanism is not a baseline.
    pub baseline: Option<Baseline>,
    pub test_accuracy: f64,
    /// Standard error of the mean over repeats; `None` for a single repeat.
    pub standard_error: Option<f64>,
    /// Epsilon; null without privacy.
    pub epsilon: f64,
    pub delta: f64,
    pub steps: usize,
    pub seconds: f64,
    pub seconds_in_noise: f64,
    pub learning_rate: f64,
    /// Test accuracy of each repeat.
    pub test_accuracies: Vec<f64>,
    /// Means over repeats, after each step that was tested.
    pub accuracy_by_step: Vec<Accuracy>,
    /// Mean accuracy at each learning rate tried.
    pub by_learning_rate: Vec<(f64, f64)>,
    pub rms_loss: f64,
    /// Number of trained models of this mechanism.
    pub models_trained: usize,
    /// Number of models that epsilon covers.
    pub models_released: usize,
    /// Arithmetic of the release, grid or plain; `None` without noise.
    pub release: Option<&'static str>,
    /// Part of a gradient that was clipped as one; `None` without clipping.
    pub clip_by: Option<ClipBy>,
    /// Clip norm of each part of a gradient that is clipped separately.
    pub clip_norms: Vec<f64>,
    /// Result of the training with canaries, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<Audited>,
    /// Whether the noise came from a seed, so that the privacy statement does not hold.
    pub insecure_seed: bool,
}

impl Row {
    /// The difference to another row, paired by repeat. Repeats of the same number share model and data and,
    /// if one is given, the seed.
    fn compared_with(&self, other: &Self) -> String {
        let differences: Vec<f64> =
            self.test_accuracies.iter().zip(&other.test_accuracies).map(|(x, y)| 100.0 * (x - y)).collect();
        let (points, error) = mean_and_error(&differences);
        let words = if points >= 0.0 { "more accurate" } else { "less accurate" };
        let error = error.map_or_else(String::new, |error| format!(" +- {error:.1}"));
        let repeats = differences.len();
        let privacy = if same_privacy(self.epsilon, other.epsilon) {
            "At the same privacy".into()
        } else {
            format!(
                "At epsilon {:.4} against {:.4}",
                rounded_to_4(self.epsilon, f64::ceil),
                rounded_to_4(other.epsilon, f64::ceil)
            )
        };
        let of = if repeats > 1 {
            format!("mean and standard error of {repeats}")
        } else {
            "one run of each".into()
        };
        format!(
            "{privacy}, {} is {:.1}{error} points {words} than {} ({of}).",
            self.mechanism,
            points.abs(),
            other.mechanism
        )
    }

    /// Warning if the best learning rate is the smallest or the largest that was tried.
    pub fn edge(&self) -> Option<String> {
        let further = edge(&self.by_learning_rate)?;
        let which = if further < self.learning_rate { "smallest" } else { "largest" };
        Some(format!(
            "The best learning rate of {} is the {which} that was tried: another may do better (--learning-rate).",
            self.mechanism
        ))
    }
}

/// A share in percent, with its standard error.
pub fn percent(share: f64, error: Option<f64>) -> String {
    let error = error.map_or_else(String::new, |error| format!(" +- {:.2}", 100.0 * error));
    format!("{:.2}{error}%", 100.0 * share)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = [
            "mechanism",
            "test accuracy",
            "epsilon",
            "delta",
            "RMS loss",
            "learning rate",
            "steps",
            "seconds",
            "in noise",
        ];
        let rows: Vec<Vec<String>> = self
            .runs
            .iter()
            .map(|row| {
                let private = row.epsilon.is_finite();
                let if_private = |text: String| if private { text } else { "-".into() };
                vec![
                    row.mechanism.clone(),
                    percent(row.test_accuracy, row.standard_error),
                    if_private(format!("{:.4}", rounded_to_4(row.epsilon, f64::ceil))),
                    if_private(format!("{:e}", row.delta)),
                    if_private(format!("{:.5}", row.rms_loss)),
                    row.learning_rate.to_string(),
                    row.steps.to_string(),
                    format!("{:.1}", row.seconds),
                    format!("{:.2}", row.seconds_in_noise),
                ]
            })
            .collect();
        writeln!(f, "{}\n\n{}", self.title, output::table(&header, &rows))?;
        let mut private = self.runs.iter().filter(|row| row.epsilon.is_finite());
        if let Some(first) = private.next() {
            private.try_for_each(|row| writeln!(f, "{}", row.compared_with(first)))?;
        }
        if self.runs.iter().any(|row| row.by_learning_rate.len() > 1) {
            writeln!(
                f,
                "Each row is the best of its learning rates by test accuracy; no standard error has that choice in it."
            )?;
        }
        for row in &self.runs {
            row.edge().map_or(Ok(()), |edge| writeln!(f, "{edge}"))?;
        }
        for row in &self.runs {
            row.audit.as_ref().map_or(Ok(()), |audit| writeln!(f, "{}", audit.sentence(&row.mechanism)))?;
        }
        if self.runs.iter().any(|row| row.insecure_seed) {
            writeln!(
                f,
                "The noise came from a seed: anyone who knows it can subtract the noise. Not for private data."
            )?;
        }
        if self.runs.iter().any(|row| row.epsilon.is_infinite()) {
            writeln!(f, "\"{WITHOUT_NOISE}\" is not private: only for readers who may see the data.")?;
        }
        let private = self.runs.iter().filter(|row| row.epsilon.is_finite());
        let trained: usize = private.map(|row| row.models_trained).sum();
        let covered = match self.runs[0].models_released {
            1 => "each one of them".into(),
            several => format!("{several} of them together"),
        };
        match trained {
            1 => writeln!(f, "One private model was trained on these data; epsilon is its own.")?,
            _ => writeln!(
                f,
                "{trained} private models were trained on these data; epsilon is that of {covered}."
            )?,
        }
        self.uncovered.as_ref().map_or(Ok(()), |uncovered| writeln!(f, "{uncovered}."))?;
        writeln!(f, "Report: {}", self.report.display())
    }
}
