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
use crate::output;
use crate::signals::Stop;
use folder::Folder;
use study::Study;

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
    test_accuracy: f64,
    epsilon: f64,
    delta: f64,
    steps: usize,
    seconds: f64,
    seconds_in_noise: f64,
    learning_rate: f64,
    /// One a repeat.
    test_accuracies: Vec<f64>,
    /// Mean accuracy at each learning rate tried.
    by_learning_rate: Vec<(f64, f64)>,
    rms_loss: f64,
    /// How many models of this mechanism were trained: learning rates times repeats.
    models_trained: usize,
    /// How many models epsilon covers.
    models_released: usize,
    /// grid or plain.
    release: &'static str,
    /// Whether the noise came from a seed, so that the privacy statement does not hold.
    insecure_seed: bool,
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
                vec![
                    row.mechanism.clone(),
                    format!("{:.2}%", 100.0 * row.test_accuracy),
                    format!("{:.4}", (row.epsilon * 1e4).ceil() / 1e4),
                    format!("{:e}", row.delta),
                    format!("{:.5}", row.rms_loss),
                    row.learning_rate.to_string(),
                    row.steps.to_string(),
                    format!("{:.1}", row.seconds),
                    format!("{:.2}", row.seconds_in_noise),
                ]
            })
            .collect();
        writeln!(f, "{}\n\n{}", self.title, output::table(&header, &rows))?;
        if let [first, .., last] = &self.runs[..] {
            let points = 100.0 * (last.test_accuracy - first.test_accuracy);
            writeln!(
                f,
                "At the same privacy, {} is {:.1} points {} than {}.",
                last.mechanism,
                points.abs(),
                if points >= 0.0 { "more accurate" } else { "less accurate" },
                first.mechanism
            )?;
        }
        if self.runs.iter().any(|row| row.insecure_seed) {
            writeln!(f, "The noise came from a seed: whoever knows it can remove it. Not for private data.")?;
        }
        let trained: usize = self.runs.iter().map(|row| row.models_trained).sum();
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
