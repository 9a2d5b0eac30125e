//! The results at several epsilons.

use std::path::PathBuf;

use serde::Serialize;

use crate::result::{MechanismResult, StudyResult};

/// The results at several epsilons.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct EpsilonSweep {
    /// The results, in increasing order of epsilon.
    pub epsilons: Vec<AtEpsilon>,
    /// The file of the report of all epsilons.
    pub report: PathBuf,
    /// The path of each epsilon's report, relative to the folder of `report`.
    #[serde(skip)]
    pub links: Vec<String>,
}

/// The results at one epsilon.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct AtEpsilon {
    /// The requested epsilon.
    pub epsilon: f64,
    /// Its results.
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
