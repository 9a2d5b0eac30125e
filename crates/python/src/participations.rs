//! A record of the examples that took part in each step.

use std::sync::{Mutex, MutexGuard};

use antinoise_input::InvalidParameter;
use antinoise_plan::Participations as Recorded;
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::batches::Batches;
use crate::errors::{Raised, Result};
use crate::plan::Plan;

/// How often each example of a run took part, and in which step last, checked against the plan at every step.
/// Where sampling amplifies privacy, this record is as secret as the key.
#[pyclass(frozen, module = "antinoise")]
pub struct Participations {
    recorded: Mutex<Recorded>,
}

impl Participations {
    fn of(recorded: Recorded) -> Self {
        Self { recorded: Mutex::new(recorded) }
    }

    fn locked(&self) -> Result<MutexGuard<'_, Recorded>> {
        self.recorded.lock().map_err(|_| Raised::failed("an earlier call failed half way"))
    }
}

/// The numbers of a batch's examples.
pub fn numbers(examples: &PyReadonlyArray1<'_, i64>) -> Result<Vec<usize>> {
    let number = |&example: &i64| usize::try_from(example);
    examples.as_array().iter().map(number).collect::<std::result::Result<_, _>>().map_err(|_| {
        InvalidParameter::new(
            "batch",
            "an array with a negative number",
            "an array of example numbers, counted from 0",
        )
        .into()
    })
}

#[pymethods]
impl Participations {
    /// The record before the first step: no example has taken part.
    #[new]
    fn new(plan: &Plan) -> Self {
        Self::of(Recorded::none(plan.verified()))
    }

    /// The record after the first `steps` steps of `batches`.
    #[staticmethod]
    fn of_batches(py: Python<'_>, plan: &Plan, batches: &Batches, steps: usize) -> Result<Self> {
        let plan = plan.verified();
        Ok(Self::of(py.detach(|| Recorded::of_steps(plan, steps, |step| batches.examples(step)))?))
    }

    /// Reads a record that `to_bytes` wrote.
    #[staticmethod]
    fn from_bytes(plan: &Plan, bytes: &[u8]) -> Result<Self> {
        Ok(Self::of(Recorded::from_bytes(plan.verified(), bytes)?))
    }

    /// The step after the last recorded one; 0 if none is recorded.
    #[getter]
    fn next_step(&self) -> Result<usize> {
        Ok(self.locked()?.next_step())
    }

    /// Checks a batch without recording it; refuses a batch that the plan does not permit at this step.
    fn check(&self, step: usize, batch: PyReadonlyArray1<'_, i64>) -> Result<()> {
        Ok(self.locked()?.check(step, &numbers(&batch)?)?)
    }

    /// Records that the examples of this batch take part in this step; records nothing if `check` would
    /// refuse the batch.
    fn record(&self, step: usize, batch: PyReadonlyArray1<'_, i64>) -> Result<()> {
        Ok(self.locked()?.record(step, &numbers(&batch)?)?)
    }

    /// The record in 8 bytes, and 8 more for each example.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.locked()?.to_bytes()))
    }

    fn __repr__(&self) -> Result<String> {
        Ok(format!("Participations(next_step={})", self.locked()?.next_step()))
    }
}
