//! The results of solvers.

use serde::{Deserialize, Serialize};

use crate::Result;

/// How a solver ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Nothing was optimised: the strategy is given by a formula.
    ClosedForm,
    /// The stopping rule holds.
    Converged,
    /// No step along the search direction lowers the objective, although its slope predicts a decrease above rounding.
    Stalled,
    /// The iterations ran out; the value is the best found.
    IterationLimit,
}

impl Status {
    /// Its name in files and reports.
    ///
    /// ```
    /// use antinoise_mechanism::optimize::Status;
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

    /// How a solver ended whose certificate leaves a gap: the gap alone tells whether it has converged.
    pub(crate) fn certified(self, has_converged: bool) -> Self {
        match self {
            _ if has_converged => Self::Converged,
            Self::Converged => Self::Stalled,
            Self::ClosedForm | Self::Stalled | Self::IterationLimit => self,
        }
    }

    /// True for a formula, or when the stopping rule holds.
    pub fn is_final(self) -> bool {
        matches!(self, Self::ClosedForm | Self::Converged)
    }
}

/// A solver's result and its status.
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

    /// The same solution with `f` applied to its value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Solution<U> {
        let Self { value, status, gap, iterations, improved } = self;
        Solution { value: f(value), status, gap, iterations, improved }
    }

    /// The same solution with `f` applied to its value.
    ///
    /// # Errors
    /// Those of `f`.
    pub(crate) fn try_map<U>(self, f: impl FnOnce(T) -> Result<U>) -> Result<Solution<U>> {
        let Self { value, status, gap, iterations, improved } = self;
        Ok(Solution { value: f(value)?, status, gap, iterations, improved })
    }
}
