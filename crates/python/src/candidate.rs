//! The description of a candidate for a plan.

use antinoise_plan::Candidate;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A candidate's strategy and figures, as a dict with the names used in Python.
pub fn row<'py>(
    py: Python<'py>,
    candidate: &Candidate,
    chosen: bool,
    reference: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("strategy", candidate.spec.to_string())?;
    row.set_item("is_given", candidate.is_given)?;
    row.set_item("noise_multiplier", candidate.noise_multiplier)?;
    row.set_item("sensitivity", candidate.unit_loss.sensitivity.value)?;
    row.set_item("max_loss", candidate.max_loss)?;
    row.set_item("rms_loss", candidate.rms_loss)?;
    row.set_item("relative_to_independent", candidate.relative_to_independent)?;
    row.set_item("state_bytes", candidate.state_bytes)?;
    row.set_item("noise_seconds", candidate.noise_seconds)?;
    row.set_item("status", candidate.status.name())?;
    row.set_item("amplified", candidate.is_amplified())?;
    row.set_item("chosen", chosen)?;
    row.set_item("reference", reference)?;
    Ok(row)
}
