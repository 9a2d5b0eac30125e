//! What is told of a candidate for a plan.

use antinoise_plan::Candidate;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// One candidate.
pub struct Row {
    spec: String,
    noise_multiplier: f64,
    sensitivity: f64,
    max_loss: f64,
    rms_loss: f64,
    relative_to_independent: f64,
    state_bytes: u64,
    status: &'static str,
    amplified: bool,
    chosen: bool,
    reference: bool,
}

impl Row {
    pub fn new(candidate: &Candidate, chosen: bool, reference: bool) -> Self {
        Self {
            spec: candidate.spec.to_string(),
            noise_multiplier: candidate.noise_multiplier,
            sensitivity: candidate.loss.sensitivity.value,
            max_loss: candidate.max_loss,
            rms_loss: candidate.rms_loss,
            relative_to_independent: candidate.relative_to_independent,
            state_bytes: candidate.state_bytes,
            status: candidate.status.name(),
            amplified: candidate.is_amplified(),
            chosen,
            reference,
        }
    }

    pub fn told<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let row = PyDict::new(py);
        row.set_item("strategy", &self.spec)?;
        row.set_item("noise_multiplier", self.noise_multiplier)?;
        row.set_item("sensitivity", self.sensitivity)?;
        row.set_item("max_loss", self.max_loss)?;
        row.set_item("rms_loss", self.rms_loss)?;
        row.set_item("relative_to_independent", self.relative_to_independent)?;
        row.set_item("state_bytes", self.state_bytes)?;
        row.set_item("status", self.status)?;
        row.set_item("amplified", self.amplified)?;
        row.set_item("chosen", self.chosen)?;
        row.set_item("reference", self.reference)?;
        Ok(row)
    }
}
