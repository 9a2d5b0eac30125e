//! Choosing C: one file a problem, each returning a [`Solution`].

pub mod banded;
pub(crate) mod best;
pub mod blt;
pub(crate) mod column_normalized;
pub mod dense;
pub mod lbfgs;
pub(crate) mod softmax;
pub mod toeplitz;

use serde::{Deserialize, Serialize};

/// What an optimised strategy minimises: a norm of B = A C^-1 times sens(C, Pi).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// ||B||_row sens: the worst query.
    Max,
    /// ||B||_F / sqrt(n) sens: the root mean square over queries.
    #[default]
    Rms,
}

impl std::str::FromStr for Objective {
    type Err = crate::Error;

    fn from_str(text: &str) -> crate::Result<Self> {
        match text {
            "max" => Ok(Self::Max),
            "rms" => Ok(Self::Rms),
            _ => {
                Err(antinoise_input::InvalidParameter::new("objective", format!("{text:?}"), "max or rms")
                    .into())
            }
        }
    }
}

impl std::fmt::Display for Objective {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Max => "max",
            Self::Rms => "rms",
        })
    }
}

/// How a solver ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Nothing was optimised: the strategy is given by a formula.
    ClosedForm,
    /// The stopping rule holds.
    Converged,
    /// No step along the search direction lowers the objective, although its slope promises more than rounding.
    Stalled,
    /// The iterations ran out; the value is the best found.
    IterationLimit,
}

impl Status {
    /// Whether nothing is left to be done: a formula, or a stopping rule that holds.
    pub fn is_final(self) -> bool {
        matches!(self, Self::ClosedForm | Self::Converged)
    }
}

/// What a solver found, and how much it is worth.
///
/// ```
/// use antinoise_mechanism::optimize::{Solution, Status};
/// let doubled = Solution::closed_form(21).map(|x| 2 * x);
/// assert_eq!((doubled.value, doubled.status), (42, Status::ClosedForm));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Solution<T> {
    /// The minimiser.
    pub value: T,
    /// How the solver ended.
    pub status: Status,
    /// (value - certified lower bound) / lower bound, where there is a certificate.
    pub gap: Option<f64>,
    /// Iterations taken.
    pub iterations: usize,
    /// Whether the value is better than the solver's start; false where nothing was solved.
    pub improved: bool,
}

impl<T> Solution<T> {
    /// A value that needed no solver.
    pub fn closed_form(value: T) -> Self {
        Self { value, status: Status::ClosedForm, gap: None, iterations: 0, improved: false }
    }

    /// The same solution, its value seen through `f`.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Solution<U> {
        let Self { value, status, gap, iterations, improved } = self;
        Solution { value: f(value), status, gap, iterations, improved }
    }
}
