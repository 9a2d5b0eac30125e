//! `antinoise train`: private training, each mechanism at the same privacy, and a report.

mod folder;
mod options;
mod problem;
mod released;
mod statement;
mod study;
mod summary;

use std::fmt;
use std::path::PathBuf;

pub use options::Arguments;
use serde::Serialize;

use crate::failure::Result;
use crate::numbers::same_privacy;
use crate::output;
use crate::report::Accuracy;
use crate::signals::Stop;
use folder::Folder;
use study::{Baseline, Study, WITHOUT_NOISE};

/// What the command prints.
#[derive(Debug, Serialize)]
pub struct Report {
    runs: Vec<Row>,
    report: PathBuf,
    #[serde(skip)]
    title: String,
}

/// One mechanism: its best learning rate's results, averaged over repeats.
#[derive(Debug, Serialize)]
pub struct Row {
    mechanism: String,
    /// What it stands for in the comparison, if it is there to compare with.
    baseline: Option<Baseline>,
    test_accuracy: f64,
    /// Of the mean over repeats; none of a single one.
    standard_error: Option<f64>,
    /// Null where there is no privacy.
    epsilon: f64,
    delta: f64,
    steps: usize,
    seconds: f64,
    seconds_in_noise: f64,
    learning_rate: f64,
    /// One a repeat.
    test_accuracies: Vec<f64>,
    /// Means over repeats, after each step that was tested.
    accuracy_by_step: Vec<Accuracy>,
    /// Mean accuracy at each learning rate tried.
    by_learning_rate: Vec<(f64, f64)>,
    rms_loss: f64,
    /// How many models of this mechanism were trained: learning rates times repeats.
    models_trained: usize,
    /// How many models epsilon covers.
    models_released: usize,
    /// grid or plain; none where there is no noise.
    release: Option<&'static str>,
    /// Whether the noise came from a seed, so that the privacy statement does not hold.
    insecure_seed: bool,
}

impl Row {
    /// The difference to another row, repeat by repeat: they share the seed's number or nothing, but always the model and
    /// the data.
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
            format!("At epsilon {:.4} against {:.4}", rounded_up(self.epsilon), rounded_up(other.epsilon))
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

    /// A word of warning where the best learning rate is the least or the largest that was tried.
    fn edge(&self) -> Option<String> {
        let further = summary::edge(&self.by_learning_rate)?;
        let which = if further < self.learning_rate { "smallest" } else { "largest" };
        Some(format!(
            "The best learning rate of {} is the {which} that was tried: another may do better (--learning-rate).",
            self.mechanism
        ))
    }
}

/// The mean and its standard error, which a single number has not.
fn mean_and_error(values: &[f64]) -> (f64, Option<f64>) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    (mean, (values.len() > 1).then(|| (squares / (count - 1.0) / count).sqrt()))
}

/// An epsilon as it is told, never below what it is.
fn rounded_up(epsilon: f64) -> f64 {
    (epsilon * 1e4).ceil() / 1e4
}

/// A share in percent, with its standard error.
fn percent(share: f64, error: Option<f64>) -> String {
    let error = error.map_or_else(String::new, |error| format!(" +- {:.2}", 100.0 * error));
    format!("{:.2}{error}%", 100.0 * share)
}

/// Trains, or resumes, and writes the report.
pub fn run(arguments: &Arguments) -> Result<Report> {
    let (study, folder) = match &arguments.resume {
        Some(path) => {
            arguments.refuse_with_resume()?;
            let folder = Folder::open(path)?;
            let mut study = folder.study()?;
            if let Some(released) = arguments.released_models {
                study.release(released)?;
                folder.save_study(&study)?;
            }
            (study, folder)
        }
        None => {
            let study = Study::new(arguments)?;
            let folder = Folder::create(&arguments.out)?;
            folder.save_study(&study)?;
            (study, folder)
        }
    };
    // All mechanisms are held to one delta.
    let plan = &study.plans()[0].plan;
    output::warn_of_delta(plan.privacy.delta, plan.examples, plan.privacy.unit);
    study.run(&folder, &Stop::on_signals()?)
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
                    if_private(format!("{:.4}", rounded_up(row.epsilon))),
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
        if self.runs.iter().any(|row| row.insecure_seed) {
            writeln!(f, "The noise came from a seed: whoever knows it can remove it. Not for private data.")?;
        }
        if self.runs.iter().any(|row| row.epsilon.is_infinite()) {
            writeln!(f, "\"{WITHOUT_NOISE}\" is not private: for whoever may see the data.")?;
        }
        let private = self.runs.iter().filter(|row| row.epsilon.is_finite());
        let trained: usize = private.map(|row| row.models_trained).sum();
        let covered = match self.runs[0].models_released {
            1 => "each one of them".into(),
            several => format!("{several} of them together"),
        };
        match trained {
            1 => writeln!(f, "One model was trained on these data; epsilon is its own.")?,
            _ => writeln!(f, "{trained} models were trained on these data; epsilon is that of {covered}.")?,
        }
        writeln!(f, "Report: {}", self.report.display())
    }
}
