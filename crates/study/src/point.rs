//! The value of the setting that varies between the studies of a sweep.

use std::fmt;

use antinoise_input::InvalidParameter;
use antinoise_plan::Length;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::settings::Settings;

/// The value of the setting that varies between the studies of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Point {
    /// The requested epsilon.
    Epsilon(f64),
    /// Number of passes over the data.
    Epochs(usize),
    /// Number of steps.
    Steps(usize),
}

impl Point {
    /// The points of a sweep by these settings, in increasing order; none if they ask for a single study.
    ///
    /// # Errors
    /// If two settings have several values, or a value is given twice.
    pub(crate) fn of(settings: &Settings) -> Result<Vec<Self>> {
        let Settings { epsilons, lengths, .. } = settings;
        let mut points: Vec<Self> = match (epsilons.len() > 1, lengths.len() > 1) {
            (true, true) => {
                let must_be = "a single one where epochs or steps are several";
                return Err(InvalidParameter::new("epsilon", "several", must_be).into());
            }
            (true, false) => epsilons.iter().copied().map(Self::Epsilon).collect(),
            (false, true) => lengths.iter().copied().map(Self::from).collect(),
            (false, false) => Vec::new(),
        };
        points.sort_by(|x, y| x.value().total_cmp(&y.value()));
        for pair in points.windows(2) {
            if pair[0].name() != pair[1].name() {
                let must_be = "all in epochs, or all in steps";
                return Err(
                    InvalidParameter::new("length", format!("{} and {}", pair[0], pair[1]), must_be).into()
                );
            }
            if pair[0] == pair[1] {
                return Err(InvalidParameter::new(pair[0].name(), pair[0].value(), "given once").into());
            }
        }
        Ok(points)
    }

    /// The settings of the study at this point.
    pub(crate) fn settings(self, of_sweep: &Settings) -> Settings {
        let of_sweep = of_sweep.clone();
        match self {
            Self::Epsilon(epsilon) => Settings { epsilons: vec![epsilon], ..of_sweep },
            Self::Epochs(epochs) => Settings { lengths: vec![Length::Epochs(epochs)], ..of_sweep },
            Self::Steps(steps) => Settings { lengths: vec![Length::Steps(steps)], ..of_sweep },
        }
    }

    /// The name of the setting: epsilon, epochs or steps.
    pub fn name(self) -> &'static str {
        match self {
            Self::Epsilon(_) => "epsilon",
            Self::Epochs(_) => "epochs",
            Self::Steps(_) => "steps",
        }
    }

    /// The name of several values: epsilons, epochs or steps.
    pub fn plural(self) -> &'static str {
        if let Self::Epsilon(_) = self { "epsilons" } else { self.name() }
    }

    /// The value as a number.
    pub fn value(self) -> f64 {
        match self {
            Self::Epsilon(epsilon) => epsilon,
            Self::Epochs(count) | Self::Steps(count) => count as f64,
        }
    }

    /// Name of the study's folder, within the folder of the sweep.
    pub(crate) fn folder(self) -> String {
        format!("{}-{}", self.name(), self.value())
    }
}

impl From<Length> for Point {
    fn from(length: Length) -> Self {
        match length {
            Length::Epochs(epochs) => Self::Epochs(epochs),
            Length::Steps(steps) => Self::Steps(steps),
        }
    }
}

/// As in "epsilon 0.5" or "10 epochs".
impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Epsilon(epsilon) => write!(f, "epsilon {epsilon}"),
            Self::Epochs(1) => f.write_str("1 epoch"),
            Self::Steps(1) => f.write_str("1 step"),
            Self::Epochs(count) | Self::Steps(count) => write!(f, "{count} {}", self.name()),
        }
    }
}
