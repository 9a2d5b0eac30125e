//! Names and lists from Python, read by the library's own names where they exist, and dicts for Python.

use std::str::FromStr;

use antinoise_input::InvalidParameter;
use antinoise_mechanism::design::StrategySpec;
use antinoise_mechanism::{Participation, PrivacyUnit};
use antinoise_plan::{ArithmeticKind, MaxBatchSize, Setting};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Serialize;

use crate::errors::Result;

/// Parses text with the library's own parser.
pub fn parsed<T: FromStr<Err = antinoise_mechanism::Error>>(text: &str) -> Result<T> {
    Ok(text.parse()?)
}

/// A workload of a kind that has no name, such as that of an optimizer with a schedule.
#[pyclass(frozen, module = "antinoise")]
pub struct Workload {
    pub of: antinoise_mechanism::Workload,
}

#[pymethods]
impl Workload {
    fn __str__(&self) -> String {
        self.of.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Workload({:?})", self.of.to_string())
    }
}

/// A workload: one that was made, its name, Toeplitz coefficients, or rows (of a lower-triangular matrix, or
/// queries of equal length).
#[derive(FromPyObject)]
pub enum WorkloadLike {
    Made(Py<Workload>),
    Name(String),
    Coefficients(Vec<f64>),
    Rows(Vec<Vec<f64>>),
}

impl WorkloadLike {
    pub fn read(self) -> Result<antinoise_mechanism::Workload> {
        use antinoise_mechanism::Workload as Of;
        Ok(match self {
            Self::Made(workload) => workload.get().of.clone(),
            Self::Name(name) => parsed(&name)?,
            Self::Coefficients(coefficients) => Of::Toeplitz { coefficients },
            Self::Rows(rows) if rows.iter().enumerate().all(|(i, row)| row.len() == i + 1) => {
                Of::Matrix { rows }
            }
            Self::Rows(rows) => Of::Queries { rows },
        })
    }
}

/// A schema: its name, or the patterns of steps in which a unit may take part.
#[derive(FromPyObject)]
pub enum ParticipationLike {
    Name(String),
    Patterns(Vec<Vec<usize>>),
}

impl ParticipationLike {
    pub fn read(self) -> Result<Participation> {
        match self {
            Self::Name(name) => parsed(&name),
            Self::Patterns(patterns) => Ok(Participation::Patterns { patterns }),
        }
    }
}

/// One or several mechanisms by name.
#[derive(FromPyObject)]
pub enum Names {
    One(String),
    Several(Vec<String>),
}

impl Names {
    pub fn read(self) -> Result<Vec<StrategySpec>> {
        match self {
            Self::One(name) => Ok(vec![parsed(&name)?]),
            Self::Several(names) => names.iter().map(|name| parsed(name)).collect(),
        }
    }
}

/// A maximum batch size, or `auto`.
#[derive(FromPyObject)]
pub enum SizeLike {
    Of(usize),
    Named(String),
}

impl SizeLike {
    pub fn read(self) -> Result<MaxBatchSize> {
        match self {
            Self::Of(size) => Ok(MaxBatchSize::Of(size)),
            Self::Named(name) if name == "auto" => Ok(MaxBatchSize::Auto),
            Self::Named(name) => Err(unknown("max_batch_size", &name, "auto or a whole number")),
        }
    }
}

/// The privacy unit: by default the user in the federated setting, the example elsewhere.
pub fn unit(name: Option<&str>, setting: Setting) -> Result<PrivacyUnit> {
    match (name, setting) {
        (Some("user"), _) | (None, Setting::Federated { .. }) => Ok(PrivacyUnit::User),
        (Some("example"), _) | (None, _) => Ok(PrivacyUnit::Example),
        (Some(name), _) => Err(unknown("unit", name, "example or user")),
    }
}

pub fn arithmetic(name: &str) -> Result<ArithmeticKind> {
    [ArithmeticKind::Grid, ArithmeticKind::PlainFloatingPoint]
        .into_iter()
        .find(|kind| kind.name() == name)
        .ok_or_else(|| unknown("arithmetic", name, "grid or plain"))
}

fn unknown<T: From<InvalidParameter>>(parameter: &str, got: &str, must_be: &str) -> T {
    InvalidParameter::new(parameter, format!("{got:?}"), must_be).into()
}

/// `value` as a dict, with the keys of its JSON object.
pub fn dict<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyDict>> {
    let text = serde_json::to_string(value).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    Ok(py.import("json")?.call_method1("loads", (text,))?.cast_into()?)
}
