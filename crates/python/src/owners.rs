//! Examples with several owners.

use antinoise_noise::Purpose;
use antinoise_plan::OwnedExamples as Owned;
use numpy::{PyArray1, ToPyArray};
use pyo3::prelude::*;

use crate::errors::{Result, warn};
use crate::key::{Key, run_named};
use crate::participations::numbers;
use crate::plan::Plan;

/// Examples that belong to one or several users each, and batches for a plan of these users.
#[pyclass(frozen, module = "antinoise")]
pub struct OwnedExamples {
    owned: Owned,
}

fn array<'py>(py: Python<'py>, of: &[usize]) -> Bound<'py, PyArray1<i64>> {
    of.iter().map(|&number| number as i64).collect::<Vec<_>>().to_pyarray(py)
}

#[pymethods]
impl OwnedExamples {
    /// The owners of examples 0, 1, ..., by name.
    #[new]
    fn new(py: Python<'_>, owners: Vec<Vec<String>>) -> Result<Self> {
        let owned = Owned::new(owners.iter().map(|of| of.iter().map(String::as_str)))?;
        warn(py, owned.similar_names().warning())?;
        Ok(Self { owned })
    }

    /// The names of the users, in the order of their numbers.
    #[getter]
    fn users(&self) -> Vec<&str> {
        (0..self.owned.users()).map(|user| self.owned.name(user)).collect()
    }

    /// The examples of each step of the plan.
    #[pyo3(signature = (plan, key, *, run=None))]
    fn batches<'py>(
        &self,
        py: Python<'py>,
        plan: &Plan,
        key: &Key,
        run: Option<&str>,
    ) -> Result<Vec<Bound<'py, PyArray1<i64>>>> {
        let mut rng = key.rng(&run_named(run)?, plan.digest_bytes(), Purpose::DataOrder, 0)?;
        let batches = py.detach(|| self.owned.batches(plan.verified(), &mut rng))?;
        Ok(batches.iter().map(|batch| array(py, batch)).collect())
    }

    /// The owners of all examples of a batch: the units that take part in its step.
    fn owners<'py>(
        &self,
        py: Python<'py>,
        batch: numpy::PyReadonlyArray1<'_, i64>,
    ) -> Result<Bound<'py, PyArray1<i64>>> {
        let batch = numbers(&batch)?;
        if let Some(&example) = batch.iter().find(|&&example| example >= self.owned.examples()) {
            let must_be = format!("below {}, the number of examples", self.owned.examples());
            return Err(antinoise_input::InvalidParameter::new("batch", example, must_be).into());
        }
        Ok(array(py, &self.owned.owners(&batch)))
    }

    fn __len__(&self) -> usize {
        self.owned.examples()
    }

    fn __repr__(&self) -> String {
        format!("OwnedExamples({} examples of {} users)", self.owned.examples(), self.owned.users())
    }
}
