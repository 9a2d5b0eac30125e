//! The problem that a strategy is designed for.

use std::fmt;
use std::str::FromStr;

use antinoise_input::{InvalidParameter, at_least};
use serde::{Deserialize, Serialize};

use crate::{Participation, Result, Workload};

/// The loss that a design minimises: a norm of B = A C^-1 times sens(C, Pi).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// Max loss ||B||_row sens: the noise of the worst query.
    Max,
    /// RMS loss ||B||_F / sqrt(n) sens: the root mean square of the noise over all queries.
    #[default]
    Rms,
}

impl FromStr for Objective {
    type Err = crate::Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "max" => Ok(Self::Max),
            "rms" => Ok(Self::Rms),
            _ => Err(InvalidParameter::new("objective", format!("{text:?}"), "max or rms").into()),
        }
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Max => "max",
            Self::Rms => "rms",
        })
    }
}

/// The steps, workload, schema and loss that a strategy is designed for.
///
/// ```
/// use antinoise_mechanism::{Problem, design::Objective};
/// let problem = Problem::prefix(100).with_participation("cyclic:20,5".parse()?).with_objective(Objective::Max);
/// assert!(problem.check().is_ok() && problem.with_participation("cyclic:20,6".parse()?).check().is_err());
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Problem {
    /// Number of steps n.
    pub steps: usize,
    /// Workload A.
    pub workload: Workload,
    /// Participation schema Pi.
    pub participation: Participation,
    /// The loss that is minimised.
    pub objective: Objective,
}

impl Problem {
    /// Creates the problem of minimising the RMS loss of prefix sums over `steps` steps, with a single
    /// participation.
    pub fn prefix(steps: usize) -> Self {
        Self {
            steps,
            workload: Workload::Prefix,
            participation: Participation::Single,
            objective: Objective::Rms,
        }
    }

    /// Replaces the workload.
    #[must_use]
    pub fn with_workload(self, workload: Workload) -> Self {
        Self { workload, ..self }
    }

    /// Replaces the schema.
    #[must_use]
    pub fn with_participation(self, participation: Participation) -> Self {
        Self { participation, ..self }
    }

    /// Replaces the loss that is minimised.
    #[must_use]
    pub fn with_objective(self, objective: Objective) -> Self {
        Self { objective, ..self }
    }

    /// Refuses a workload or schema that is not valid for `steps`.
    ///
    /// # Errors
    /// When the workload or the schema is not valid. The error names the parameter.
    pub fn check(&self) -> Result<()> {
        at_least("steps", self.steps, 1)?;
        self.workload.check_steps(self.steps)?;
        self.participation.check(self.steps)
    }

    /// Returns the problem for classes that minimise the RMS loss of rectangular workloads only: a batch of
    /// queries is replaced by a lower-triangular workload with the same RMS loss, and for the last iterate
    /// the objective is the RMS loss. Other problems are returned unchanged.
    ///
    /// # Errors
    /// When the queries of the batch do not span all directions.
    pub(crate) fn summed(&self) -> Result<Self> {
        Ok(match (self.workload.triangular(self.steps)?, &self.workload) {
            (Some(workload), _) => Self { workload, objective: Objective::Rms, ..self.clone() },
            (None, Workload::LastIterate { .. }) => self.clone().with_objective(Objective::Rms),
            (None, _) => self.clone(),
        })
    }
}
