//! What is asked of a design: the class, its size, and whether to optimise.

use std::fmt;
use std::str::FromStr;

use antinoise_input::{InvalidParameter, between};
use serde::{Deserialize, Serialize};

use super::restarted::participation_of_run;
use super::{Class, ColumnNormalized, Problem, Restarted, Strategy};
use crate::optimize::Solution;
use crate::{Result, Workload};

/// A class of strategies and its options; an option that is not given takes the class's default.
///
/// ```
/// use antinoise_mechanism::{Participation, Problem, Workload, optimize::Objective, strategy::Recipe};
/// let problem = Problem {
///     steps: 8,
///     workload: Workload::Prefix,
///     participation: Participation::Single,
///     objective: Objective::Max,
/// };
/// let strategy = "toeplitz".parse::<Recipe>()?.design(&problem)?.value;
/// let sensitivity = strategy.mechanism().sensitivity(&problem.participation)?;
/// let error = strategy.mechanism().error(&problem.workload)?;
/// assert_eq!(format!("{:.3}", sensitivity.value * error.max), "1.718");
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipe {
    /// The class.
    pub class: Class,
    /// Number of bands, for the banded classes. Default min(16, steps).
    pub bands: Option<usize>,
    /// Number of buffers, for BLTs. Default 4.
    pub order: Option<usize>,
    /// Square-root coefficients instead of optimised ones.
    pub fixed: bool,
    /// Scale the columns to norm 1 once the strategy is found.
    pub column_normalize: bool,
    /// Runs that the steps are cut into, each with the same strategy.
    pub restarts: Option<usize>,
}

impl Recipe {
    /// The class with its defaults.
    pub fn new(class: Class) -> Self {
        Self { class, bands: None, order: None, fixed: false, column_normalize: false, restarts: None }
    }

    /// The best strategy of this class for the problem, or for [`Recipe::design_workload`] where the class
    /// cannot take the problem's.
    ///
    /// # Errors
    /// When the problem is not valid, an option does not belong to the class, or it is out of range.
    pub fn design(&self, problem: &Problem) -> Result<Solution<Strategy>> {
        problem.check()?;
        let workload = self.design_workload(&problem.workload);
        let problem = Problem { workload, ..problem.clone() };
        match self.restarts {
            None => self.design_run(&problem),
            Some(restarts) => self.design_restarted(&problem, restarts),
        }
    }

    fn design_run(&self, problem: &Problem) -> Result<Solution<Strategy>> {
        let found = self.class.design(self, problem)?;
        if !self.column_normalize {
            return Ok(found);
        }
        let normalized = Strategy::ColumnNormalized(ColumnNormalized::new(found.value.clone())?);
        // Not the strategy that was certified.
        Ok(Solution { gap: None, ..found.map(|_| normalized) })
    }

    fn design_restarted(&self, problem: &Problem, restarts: usize) -> Result<Solution<Strategy>> {
        between("restarts", restarts, 1, problem.steps, "steps")?;
        let period = problem.steps.div_ceil(restarts);
        let participation = participation_of_run(&problem.participation, period);
        let run = self.design_run(&Problem { steps: period, participation, ..problem.clone() })?;
        let strategy = Strategy::Restarted(Restarted::new(problem.steps, run.value.clone())?);
        // A certificate for one run says nothing about the whole.
        Ok(Solution { gap: None, ..run.map(|_| strategy) })
    }

    /// The workload that this class is designed for: the given one, or prefix sums where the class needs a
    /// Toeplitz workload and the given one is not.
    ///
    /// A strategy is valid for every workload; only its loss depends on which it was designed for.
    ///
    /// ```
    /// use antinoise_mechanism::{Workload, strategy::Recipe};
    /// let cooldown: Workload = "cooldown:5,0.1".parse()?;
    /// assert_eq!("blt".parse::<Recipe>()?.design_workload(&cooldown), Workload::Prefix);
    /// assert_eq!("workload".parse::<Recipe>()?.design_workload(&cooldown), cooldown);
    /// # Ok::<(), antinoise_mechanism::Error>(())
    /// ```
    pub fn design_workload(&self, workload: &Workload) -> Workload {
        let toeplitz = !matches!(workload, Workload::Cooldown { .. } | Workload::Matrix { .. });
        // A run of a schedule is not the schedule over fewer steps.
        let needs_toeplitz = self.class.needs_toeplitz_workload() || self.restarts.is_some();
        if toeplitz || !needs_toeplitz { workload.clone() } else { Workload::Prefix }
    }

    pub(super) fn refuse_bands(&self) -> Result<()> {
        self.refuse("bands", self.bands)
    }

    pub(super) fn refuse_order(&self) -> Result<()> {
        self.refuse("order", self.order)
    }

    pub(super) fn refuse_fixed(&self) -> Result<()> {
        self.refuse("fixed", self.fixed.then_some(true))
    }

    fn refuse<T: fmt::Display>(&self, option: &str, given: Option<T>) -> Result<()> {
        match given {
            None => Ok(()),
            Some(got) => {
                let must_be = format!("left out: strategy {} does not take it", self.class.name());
                Err(InvalidParameter::new(option, got, must_be).into())
            }
        }
    }
}

/// The class's name, then `:` and its size where one is given: `banded-toeplitz:16`, `blt:4`.
impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.class.name())?;
        if let Some(size) = self.bands.or(self.order) {
            write!(f, ":{size}")?;
        }
        if self.column_normalize {
            f.write_str(" column-normalized")?;
        }
        self.restarts.map_or(Ok(()), |restarts| write!(f, " x{restarts}"))
    }
}

impl FromStr for Recipe {
    type Err = crate::Error;

    fn from_str(text: &str) -> Result<Self> {
        let (name, size) = match text.split_once(':') {
            Some((name, size)) => (name, Some(size)),
            None => (text, None),
        };
        let class = Class::ALL.iter().copied().find(|class| class.name() == name);
        let size = size.map(|size| size.parse::<usize>()).transpose();
        let (Some(class), Ok(size)) = (class, size) else {
            let names: Vec<&str> = Class::ALL.iter().map(|class| class.name()).collect();
            let must_be =
                format!("one of {}, or with its size as in banded-toeplitz:16 or blt:4", names.join(", "));
            return Err(InvalidParameter::new("strategy", format!("{text:?}"), must_be).into());
        };
        let mut recipe = Self::new(class);
        match class {
            Class::Blt => recipe.order = size,
            _ => recipe.bands = size,
        }
        Ok(recipe)
    }
}
