//! The results of a sweep: of studies at several epsilons, or with several numbers of epochs or steps.

use std::path::PathBuf;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::point::Point;
use crate::result::{MechanismResult, PrivateResult, StudyResult};

/// The results of a sweep.
#[derive(Debug)]
#[non_exhaustive]
pub struct Sweep {
    /// The results, in increasing order of the setting that varies.
    pub points: Vec<AtPoint>,
    /// The file of the report of all studies.
    pub report: PathBuf,
    /// The path of each study's report, relative to the folder of `report`.
    pub links: Vec<String>,
}

/// The results at one point of a sweep.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct AtPoint {
    /// The value of the setting that varies.
    #[serde(flatten)]
    pub point: Point,
    /// The results there.
    #[serde(flatten)]
    pub result: StudyResult,
}

/// The results under the plural of the setting that varies, and the report.
impl Serialize for Sweep {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry(self.points[0].point.plural(), &self.points)?;
        map.serialize_entry("report", &self.report)?;
        map.end()
    }
}

impl Sweep {
    /// The results by increasing value of the setting that varies, each with that value.
    pub fn rows(&self) -> impl Iterator<Item = (Point, &MechanismResult)> {
        self.points.iter().flat_map(|at| at.result.runs.iter().map(|row| (at.point, row)))
    }

    /// The warning for readers who see models of several points.
    pub fn together(&self) -> String {
        let name = match self.points[0].point {
            Point::Epsilon(_) => {
                return "Each epsilon covers only its own models. Publishing models of several epsilons costs more than any \
                        one of them."
                    .into();
            }
            length => length.name(),
        };
        let published = self.private().map(|private| private.models_published).max();
        let covered = match published {
            None | Some(0 | 1) => "one model, and covers no choice among models by their accuracy".into(),
            Some(several) => format!(
                "up to {several} models of one mechanism and one number of {name} together, and covers no choice between \
                 numbers of {name} by accuracy"
            ),
        };
        format!(
            "Epsilon is that of {covered}. Lengths and learning rates that were chosen on public data cost a training on \
             private data nothing."
        )
    }

    /// What is stated of the private results.
    pub fn private(&self) -> impl Iterator<Item = &PrivateResult> {
        self.rows().filter_map(|(_, row)| row.private.as_ref())
    }

    /// The most accurate private result, of equal ones that of the shortest training; `None` for a sweep over
    /// epsilons, in which more privacy costs accuracy.
    pub fn best(&self) -> Option<(Point, &MechanismResult)> {
        let lengths = self.rows().filter(|(point, _)| !matches!(point, Point::Epsilon(_)));
        lengths
            .filter(|(_, row)| row.private.is_some())
            .reduce(|best, next| if next.1.test_accuracy > best.1.test_accuracy { next } else { best })
    }

    /// The name of a result in a figure over all points: its label, if there is a result of its mechanism at
    /// every point, or else that of a mechanism that was chosen for its point.
    pub fn series(&self, row: &MechanismResult) -> String {
        let names = |at: &AtPoint| at.result.runs.iter().any(|other| other.mechanism == row.mechanism);
        if row.baseline.is_some() || self.points.iter().all(names) {
            return row.label();
        }
        format!("correlated noise, chosen for its {}", self.points[0].point.name())
    }
}
