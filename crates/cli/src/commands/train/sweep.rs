//! The results at several epsilons.

use std::fmt;
use std::path::PathBuf;

use antinoise_accounting::three_digits_up;
use serde::Serialize;

use super::result::{CHOSEN, MechanismResult, PrivateResult, StudyResult, percent};
use crate::output;

/// The results at several epsilons.
#[derive(Debug, Serialize)]
pub struct EpsilonSweep {
    /// The results, in increasing order of epsilon.
    pub epsilons: Vec<AtEpsilon>,
    pub report: PathBuf,
    /// The path of each epsilon's report, relative to the folder of `report`.
    #[serde(skip)]
    pub links: Vec<String>,
}

/// The results at one epsilon.
#[derive(Debug, Serialize)]
pub struct AtEpsilon {
    /// The requested epsilon.
    pub epsilon: f64,
    #[serde(flatten)]
    pub result: StudyResult,
}

/// The warning for readers who see models of several epsilons.
pub const TOGETHER: &str = "Each epsilon covers only its own models. Publishing models of several epsilons costs more than any one \
                            of them.";

impl EpsilonSweep {
    /// The results by increasing epsilon.
    pub fn rows(&self) -> impl Iterator<Item = &MechanismResult> {
        self.epsilons.iter().flat_map(|at| &at.result.runs)
    }

    /// The name of a result in a figure over all epsilons: its label, if there is a result of its mechanism
    /// for every epsilon, or else that of a mechanism that was chosen for its epsilon.
    pub fn series(&self, row: &MechanismResult) -> String {
        let names = |at: &AtEpsilon| at.result.runs.iter().any(|other| other.mechanism == row.mechanism);
        if row.baseline.is_some() || self.epsilons.iter().all(names) {
            return row.label();
        }
        "correlated noise, chosen for its epsilon".into()
    }
}

impl fmt::Display for EpsilonSweep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = ["epsilon", "mechanism", "test accuracy", "RMS loss", "learning rate", "in noise"];
        let cells = |row: &MechanismResult| {
            let private = |cell: fn(&PrivateResult) -> String| row.private.as_ref().map_or("-".into(), cell);
            vec![
                private(|private| three_digits_up(private.epsilon)),
                row.mechanism.clone(),
                percent(row.test_accuracy, row.standard_error),
                private(|private| format!("{:.5}", private.rms_loss)),
                row.learning_rate.to_string(),
                format!("{:.1}%", 100.0 * row.seconds_in_noise / row.seconds),
            ]
        };
        let cells: Vec<Vec<String>> = self.rows().map(cells).collect();
        writeln!(f, "{}\n\n{}", self.epsilons[0].result.title, output::table(&header, &cells))?;
        writeln!(f, "{CHOSEN}")?;
        self.rows().filter_map(MechanismResult::edge).try_for_each(|edge| writeln!(f, "{edge}"))?;
        writeln!(f, "{TOGETHER}")?;
        for AtEpsilon { epsilon, result } in &self.epsilons {
            writeln!(f, "Model to give away at epsilon {epsilon}: {}", result.model.display())?;
        }
        writeln!(f, "Report: {}", self.report.display())
    }
}
