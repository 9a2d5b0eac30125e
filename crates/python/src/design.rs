//! Mechanisms: design, loss, files.

use std::path::{Path, PathBuf};

use antinoise_input::InvalidParameter;
use antinoise_linear::Matrix;
use antinoise_mechanism::design::{Objective, Solution, StrategySpec};
use antinoise_mechanism::sensitivity::{Kind, Sensitivity};
use antinoise_mechanism::strategy::Factors;
use antinoise_mechanism::{Adjacency, AnyStrategy, Participation, Problem, Workload};
use antinoise_plan::read_strategy;
use numpy::{AllowTypeChange, IntoPyArray, PyArray1, PyArrayLike2};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{Raised, Result};
use crate::process::interruptible;
use crate::words::{ParticipationLike, WorkloadLike, parsed};

/// A strategy: the matrix C that correlates noise over the steps.
#[pyclass(frozen, module = "antinoise")]
pub struct Strategy {
    found: Solution<AnyStrategy>,
}

/// The name of a class to design, or a finished strategy.
#[derive(FromPyObject)]
pub enum StrategyLike<'py> {
    Made(Bound<'py, Strategy>),
    Name(String),
}

/// A matrix of numbers of any type.
pub type MatrixLike<'py> = PyArrayLike2<'py, f64, AllowTypeChange>;

/// A finished strategy, or its matrix C.
#[derive(FromPyObject)]
pub enum GivenStrategy<'py> {
    Made(Bound<'py, Strategy>),
    Matrix(MatrixLike<'py>),
}

impl GivenStrategy<'_> {
    pub fn read(&self) -> Result<AnyStrategy> {
        match self {
            Self::Made(strategy) => Ok(strategy.get().found.value.clone()),
            Self::Matrix(c) => Ok(AnyStrategy::of_matrix(&matrix(c))?),
        }
    }
}

fn matrix(array: &MatrixLike<'_>) -> Matrix {
    let array = array.as_array();
    Matrix::from_fn(array.nrows(), array.ncols(), |i, j| array[(i, j)])
}

#[pymethods]
impl Strategy {
    /// Designs the strategy of smallest loss in a class: `blt:4`, `banded-toeplitz:16`, `toeplitz`, `dense`,
    /// ...
    #[staticmethod]
    #[pyo3(signature = (spec, steps, *, workload=None, participation=None, objective="rms", bands=None, order=None))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn design(
        py: Python<'_>,
        spec: &str,
        steps: usize,
        workload: Option<WorkloadLike>,
        participation: Option<ParticipationLike>,
        objective: &str,
        bands: Option<usize>,
        order: Option<usize>,
    ) -> Result<Self> {
        let problem = problem(steps, workload, participation, objective)?;
        let spec = parsed::<StrategySpec>(spec)?.sized(bands, order, None)?;
        Ok(Self { found: designed(py, spec, problem)? })
    }

    /// The strategy of a matrix C, square or with more rows than columns, triangular or not: the
    /// lower-triangular C' with C'^T C' = C^T C. If `b` or `a` is given, B C or A must equal the matrix of
    /// `workload`.
    #[staticmethod]
    #[pyo3(signature = (c, *, b=None, a=None, workload=None))]
    fn of_matrix(
        c: MatrixLike<'_>,
        b: Option<MatrixLike<'_>>,
        a: Option<MatrixLike<'_>>,
        workload: Option<WorkloadLike>,
    ) -> Result<Self> {
        let factors = Factors { c: matrix(&c), b: b.as_ref().map(matrix), a: a.as_ref().map(matrix) };
        Ok(Self { found: Solution::closed_form(factors.strategy(&read_workload(workload)?)?) })
    }

    /// Reads a strategy from a file: one that `save`, or the command line's `--out`, wrote, or a matrix
    /// (.npy, .npz with the array C, .toml with C), as `of_matrix`.
    #[staticmethod]
    #[pyo3(signature = (path, *, workload=None))]
    fn load(path: PathBuf, workload: Option<WorkloadLike>) -> Result<Self> {
        std::fs::metadata(&path).map_err(|error| Raised::file(&path, &error))?;
        Ok(Self { found: Solution::closed_form(read_strategy(&path, &read_workload(workload)?)?) })
    }

    /// Reads a strategy from TOML text.
    #[staticmethod]
    fn from_toml(text: &str) -> Result<Self> {
        let strategy: AnyStrategy = toml::from_str(text).map_err(|error| {
            InvalidParameter::new(
                "strategy",
                "text that cannot be read",
                format!("a strategy in TOML: {error}"),
            )
        })?;
        strategy.check()?;
        Ok(Self { found: Solution::closed_form(strategy) })
    }

    /// Writes the strategy to `path` atomically; overwrites an existing file only with `force`.
    #[pyo3(signature = (path, *, force=false))]
    fn save(&self, path: PathBuf, force: bool) -> Result<()> {
        write_new(&path, &self.to_toml()?, force)
    }

    /// The strategy as TOML; every number is written with all its digits.
    fn to_toml(&self) -> Result<String> {
        toml::to_string(&self.found.value).map_err(Raised::failed)
    }

    /// The name of the strategy's class.
    #[getter]
    fn name(&self) -> &'static str {
        self.found.value.class().name()
    }

    #[getter]
    fn steps(&self) -> usize {
        self.found.value.steps()
    }

    /// How the optimisation ended: `closed-form`, `converged`, `stalled` or `iteration-limit`.
    #[getter]
    fn status(&self) -> &'static str {
        self.found.status.name()
    }

    /// The first column of C.
    #[getter]
    fn first_column<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyArray1<f64>>> {
        Ok(self.found.value.encoder()?.column(0).into_pyarray(py))
    }

    /// The sensitivity in units of the clip norm, with its justification: a dict with `value`, `kind` and
    /// `source`.
    #[pyo3(signature = (*, participation=None, adjacency="zero-out"))]
    fn sensitivity<'py>(
        &self,
        py: Python<'py>,
        participation: Option<ParticipationLike>,
        adjacency: &str,
    ) -> Result<Bound<'py, PyDict>> {
        let participation = read_participation(participation)?;
        let adjacency: Adjacency = parsed(adjacency)?;
        Ok(told(py, &self.found.value.sensitivity(&participation)?.under(adjacency))?)
    }

    /// The error of the workload A: norms of A C^-1, a dict with `max` and `rms`.
    #[pyo3(signature = (*, workload=None))]
    fn error<'py>(&self, py: Python<'py>, workload: Option<WorkloadLike>) -> Result<Bound<'py, PyDict>> {
        let error = self.found.value.error(&read_workload(workload)?)?;
        let report = PyDict::new(py);
        report.set_item("max", error.max)?;
        report.set_item("rms", error.rms)?;
        Ok(report)
    }

    /// Pickles the strategy as text: a strategy holds no secret and may be copied.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Result<(Bound<'py, PyAny>, (String,))> {
        Ok((slf.get_type().getattr("from_toml")?, (slf.get().to_toml()?,)))
    }

    fn __repr__(&self) -> String {
        format!("Strategy({:?}, steps={})", self.name(), self.steps())
    }
}

/// The errors and losses of a mechanism: a dict with `max_loss`, `rms_loss`, `total_loss`, `max_error`,
/// `rms_error`, `sensitivity`, `strategy`, `steps`, `status` and `gap`. A name is first designed for the
/// problem; a `Strategy` is evaluated unchanged.
#[pyfunction]
#[pyo3(signature = (strategy, steps=None, *, workload=None, participation=None, adjacency="zero-out", objective="rms", bands=None, order=None))]
#[expect(clippy::too_many_arguments, reason = "keywords of Python")]
pub fn loss<'py>(
    py: Python<'py>,
    strategy: StrategyLike<'py>,
    steps: Option<usize>,
    workload: Option<WorkloadLike>,
    participation: Option<ParticipationLike>,
    adjacency: &str,
    objective: &str,
    bands: Option<usize>,
    order: Option<usize>,
) -> Result<Bound<'py, PyDict>> {
    let adjacency = parsed(adjacency)?;
    let found = match strategy {
        StrategyLike::Made(strategy) => {
            let found = &strategy.get().found;
            let own = found.value.steps();
            let given = [("steps", steps.filter(|&steps| steps != own)), ("bands", bands), ("order", order)];
            if let Some((name, got)) = given.into_iter().find_map(|(name, got)| Some((name, got?))) {
                let must_be = format!("left out: the strategy is given, over {own} steps");
                return Err(InvalidParameter::new(name, got, must_be).into());
            }
            let problem = problem(own, workload, participation, objective)?;
            return measured(py, found.clone(), problem, adjacency);
        }
        StrategyLike::Name(name) => parsed::<StrategySpec>(&name)?.sized(bands, order, None)?,
    };
    let steps =
        steps.ok_or_else(|| InvalidParameter::new("steps", "absent", "given if the strategy is a name"))?;
    let problem = problem(steps, workload, participation, objective)?;
    let solution = designed(py, found, problem.clone())?;
    measured(py, solution, problem, adjacency)
}

/// The losses of several mechanisms for several numbers of steps: a list of dicts with the fields of `loss`
/// and `spec`.
#[pyfunction]
#[pyo3(signature = (strategies, steps, *, workload=None, participation=None, adjacency="zero-out", objective="rms"))]
pub fn compare<'py>(
    py: Python<'py>,
    strategies: Vec<String>,
    steps: Vec<usize>,
    workload: Option<WorkloadLike>,
    participation: Option<ParticipationLike>,
    adjacency: &str,
    objective: &str,
) -> Result<Vec<Bound<'py, PyDict>>> {
    let (workload, participation) = (read_workload(workload)?, read_participation(participation)?);
    let (adjacency, objective): (Adjacency, Objective) = (parsed(adjacency)?, parsed(objective)?);
    let specs = strategies.iter().map(|name| parsed(name)).collect::<Result<Vec<StrategySpec>>>()?;
    let mut reports = Vec::new();
    for &steps in &steps {
        let problem =
            Problem { steps, workload: workload.clone(), participation: participation.clone(), objective };
        for spec in &specs {
            let solution = designed(py, *spec, problem.clone())?;
            let report = measured(py, solution, problem.clone(), adjacency)?;
            report.set_item("spec", spec.to_string())?;
            reports.push(report);
        }
    }
    Ok(reports)
}

fn problem(
    steps: usize,
    workload: Option<WorkloadLike>,
    participation: Option<ParticipationLike>,
    objective: &str,
) -> Result<Problem> {
    let (workload, participation) = (read_workload(workload)?, read_participation(participation)?);
    Ok(Problem { steps, workload, participation, objective: parsed(objective)? })
}

pub fn read_workload(workload: Option<WorkloadLike>) -> Result<Workload> {
    workload.map_or(Ok(Workload::Prefix), WorkloadLike::read)
}

fn read_participation(participation: Option<ParticipationLike>) -> Result<Participation> {
    participation.map_or(Ok(Participation::Single), ParticipationLike::read)
}

fn designed(py: Python<'_>, spec: StrategySpec, problem: Problem) -> Result<Solution<AnyStrategy>> {
    problem.check()?;
    Ok(interruptible(py, move || spec.design(&problem))??)
}

fn measured(
    py: Python<'_>,
    solution: Solution<AnyStrategy>,
    problem: Problem,
    adjacency: Adjacency,
) -> Result<Bound<'_, PyDict>> {
    problem.check()?;
    let (solution, cost) = interruptible(py, move || {
        let cost = solution.value.loss(&problem.workload, &problem.participation, adjacency);
        (solution, cost)
    })?;
    let cost = cost?;
    let report = PyDict::new(py);
    report.set_item("strategy", solution.value.class().name())?;
    report.set_item("steps", solution.value.steps())?;
    report.set_item("max_loss", cost.max_loss)?;
    report.set_item("rms_loss", cost.rms_loss)?;
    report.set_item("total_loss", cost.total_loss)?;
    report.set_item("max_error", cost.max_error)?;
    report.set_item("rms_error", cost.rms_error)?;
    report.set_item("sensitivity", told(py, &cost.sensitivity)?)?;
    report.set_item("status", solution.status.name())?;
    report.set_item("gap", solution.gap)?;
    Ok(report)
}

/// The sensitivity as a dict.
pub fn told<'py>(py: Python<'py>, sensitivity: &Sensitivity) -> PyResult<Bound<'py, PyDict>> {
    let kind = match sensitivity.kind {
        Kind::Exact => "exact",
        Kind::UpperBound => "upper_bound",
    };
    let report = PyDict::new(py);
    report.set_item("value", sensitivity.value)?;
    report.set_item("kind", kind)?;
    report.set_item("source", &sensitivity.source)?;
    Ok(report)
}

/// Writes `text` to a new file; overwrites an existing file only with `force`.
pub fn write_new(path: &Path, text: &str, force: bool) -> Result<()> {
    if !force && path.symlink_metadata().is_ok() {
        let must_be = "a new file: it exists, and only force=True writes over it";
        return Err(InvalidParameter::new("path", path.display(), must_be).into());
    }
    Ok(antinoise_plan::write_atomically(path, text.as_bytes())?)
}
