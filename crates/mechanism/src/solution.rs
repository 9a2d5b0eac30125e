//! Results of solvers.

use serde::{Deserialize, Serialize};

use crate::Result;

/// How a solver ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// The strategy is given by a formula; nothing was optimised.
    ClosedForm,
    /// The stopping rule of the solver was met.
    Converged,
    /// The solver stopped early: no step along the search direction lowers the objective, although the
    /// gradient is not small.
    Stalled,
    /// The maximum number of iterations was reached; the value is the best found.
    IterationLimit,
}

impl Status {
    /// Returns the name of the status in files and reports.
    ///
    /// ```
    /// use antinoise_mechanism::design::Status;
    /// assert_eq!(Status::IterationLimit.name(), "iteration-limit");
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            Self::ClosedForm => "closed-form",
            Self::Converged => "converged",
            Self::Stalled => "stalled",
            Self::IterationLimit => "iteration-limit",
        }
    }

    /// Returns the status of a solve with a certificate: converged if and only if the gap is small enough
    /// (`has_converged`).
    pub(crate) fn certified(self, has_converged: bool) -> Self {
        match self {
            _ if has_converged => Self::Converged,
            Self::Converged => Self::Stalled,
            Self::ClosedForm | Self::Stalled | Self::IterationLimit => self,
        }
    }

    /// Returns whether the strategy is given by a formula or the solver's stopping rule was met.
    pub fn is_final(self) -> bool {
        matches!(self, Self::ClosedForm | Self::Converged)
    }
}

/// The result of a solver, with its status and its certificate, if there is one.
///
/// ```
/// use antinoise_mechanism::design::{Solution, Status};
/// let doubled = Solution::closed_form(21).map(|x| 2 * x);
/// assert_eq!((doubled.value, doubled.status), (42, Status::ClosedForm));
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Solution<T> {
    /// The minimiser that was found.
    pub value: T,
    /// How the solver ended.
    pub status: Status,
    /// Relative gap of the squared loss to its certified lower bound, (loss - bound) / bound, if there is a
    /// certificate.
    pub gap: Option<f64>,
    /// Number of iterations of the solver.
    pub iterations: usize,
    /// Whether the value is better than the solver's start; false for a formula.
    pub improved: bool,
}

impl<T> Solution<T> {
    /// Returns the solution for a value that is given by a formula.
    pub fn closed_form(value: T) -> Self {
        Self { value, status: Status::ClosedForm, gap: None, iterations: 0, improved: false }
    }

    /// Applies `f` to the value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Solution<U> {
        let Self { value, status, gap, iterations, improved } = self;
        Solution { value: f(value), status, gap, iterations, improved }
    }

    /// Applies `f` to the value.
    ///
    /// # Errors
    /// When `f` fails.
    pub(crate) fn try_map<U>(self, f: impl FnOnce(T) -> Result<U>) -> Result<Solution<U>> {
        let Self { value, status, gap, iterations, improved } = self;
        Ok(Solution { value: f(value)?, status, gap, iterations, improved })
    }
}
