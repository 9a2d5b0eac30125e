//! The plan: sampler, mechanism and noise in one value, which is both accounted and run.

use std::path::PathBuf;

use antinoise_input::hex;
use antinoise_mechanism::{Grid, PrivacyUnit};
use antinoise_plan::{Choice, Plan as Numbers, VerifiedPlan};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::candidate;
use crate::design::{told, write_new};
use crate::errors::Result;
use crate::process::interruptible;
use crate::words::dict;

/// A verified plan: its privacy claim follows from its numbers. Made by `plan`, or read from a file or text
/// and verified.
#[pyclass(frozen, module = "antinoise")]
pub struct Plan {
    plan: VerifiedPlan,
    digest: [u8; 32],
    candidates: Vec<Py<PyDict>>,
}

impl Plan {
    fn new(plan: VerifiedPlan, candidates: Vec<Py<PyDict>>) -> Self {
        Self { digest: plan.digest(), plan, candidates }
    }

    pub fn of(py: Python<'_>, choice: Choice) -> Result<Self> {
        let Choice { candidates, baselines, chosen, plan, .. } = choice;
        let compared = candidates.iter().enumerate().map(|(i, other)| (other, i == chosen, false));
        let references = baselines.iter().map(|other| (other, false, true));
        let rows = compared
            .chain(references)
            .map(|(other, chosen, reference)| Ok(candidate::row(py, other, chosen, reference)?.unbind()));
        Ok(Self::new(plan, rows.collect::<Result<_>>()?))
    }

    /// The verified plan that is run.
    pub fn verified(&self) -> &VerifiedPlan {
        &self.plan
    }

    /// The digest by which noise, batches and checkpoints identify their plan.
    pub fn digest_bytes(&self) -> [u8; 32] {
        self.digest
    }
}

#[pymethods]
impl Plan {
    /// Reads and verifies the plan at `path`.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> Result<Self> {
        Ok(Self::new(interruptible(py, move || Numbers::load(&path))??, Vec::new()))
    }

    /// Reads and verifies the plan in this text.
    #[staticmethod]
    fn from_toml(py: Python<'_>, text: String) -> Result<Self> {
        Ok(Self::new(interruptible(py, move || Numbers::from_toml(&text))??, Vec::new()))
    }

    /// Writes the plan to `path` atomically; overwrites an existing file only with `force`.
    #[pyo3(signature = (path, *, force=false))]
    fn save(&self, path: PathBuf, force: bool) -> Result<()> {
        write_new(&path, &self.plan.to_toml(), force)
    }

    /// The plan as TOML; every number is written with all its digits.
    fn to_toml(&self) -> String {
        self.plan.to_toml()
    }

    /// Recomputes the claim from the numbers; `ValueError` if it does not follow, which cannot happen for a
    /// verified plan.
    fn verify(&self, py: Python<'_>) -> Result<()> {
        let numbers = self.plan.clone().into_plan();
        interruptible(py, move || numbers.verify())??;
        Ok(())
    }

    /// The claim in words: the privacy unit, the mechanism, the observer against whom the claim holds, and
    /// the limits of the claim.
    #[getter]
    fn statement(&self) -> String {
        self.plan.statement().to_string()
    }

    /// SHA-256 of the TOML, in hexadecimal digits.
    #[getter]
    fn digest(&self) -> String {
        hex(&self.digest)
    }

    #[getter]
    fn examples(&self) -> usize {
        self.plan.examples
    }

    /// The requested batch size; sums are divided by `expected_batch_size`.
    #[getter]
    fn batch_size(&self) -> usize {
        self.plan.batch_size
    }

    #[getter]
    fn steps(&self) -> usize {
        self.plan.steps
    }

    /// Maximum l2 norm of one example's gradient.
    #[getter]
    fn clip_norm(&self) -> f64 {
        self.plan.clip_norm
    }

    /// Noise standard deviation divided by sensitivity, for clip norm 1.
    #[getter]
    fn noise_multiplier(&self) -> f64 {
        self.plan.noise_multiplier
    }

    /// Standard deviation of the seed noise on the *sum* of clipped gradients.
    #[getter]
    fn noise_std(&self) -> f64 {
        self.plan.noise_std()
    }

    /// The sensitivity with its justification: a dict with `value`, `kind` and `source`.
    #[getter]
    fn sensitivity<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        told(py, &self.plan.sensitivity)
    }

    /// The claimed epsilon: an upper bound on the true value.
    #[getter]
    fn epsilon(&self) -> f64 {
        self.plan.privacy.epsilon
    }

    /// A lower bound on every epsilon that this accountant can prove.
    #[getter]
    fn epsilon_lower(&self) -> f64 {
        self.plan.epsilon_lower()
    }

    #[getter]
    fn delta(&self) -> f64 {
        self.plan.privacy.delta
    }

    /// The privacy unit: `example` or `user`.
    #[getter]
    fn unit(&self) -> &'static str {
        match self.plan.privacy.unit {
            PrivacyUnit::Example => "example",
            PrivacyUnit::User => "user",
        }
    }

    /// The neighbouring relation: `zero-out` or `replace-one`.
    #[getter]
    fn adjacency(&self) -> String {
        self.plan.privacy.adjacency.to_string()
    }

    /// The accountant: `gdp`, or where sampling amplifies `sampled-gaussian`, `balls-in-bins` or `b-min-sep`.
    #[getter]
    fn accountant(&self) -> &'static str {
        self.plan.privacy.accountant.name()
    }

    /// The name of the strategy's class.
    #[getter]
    fn strategy(&self) -> &'static str {
        self.plan.strategy.class().name()
    }

    /// The sampler: a dict with its `kind` and numbers, as in a plan's file.
    #[getter]
    fn sampler<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        dict(py, &self.plan.sampler)
    }

    /// The size to which all batches can be padded; None if there is no largest one.
    #[getter]
    fn max_batch_size(&self) -> Option<usize> {
        self.plan.max_batch_size()
    }

    /// The smallest and the largest batch of step `step` that the sampler can form; None if it forms none.
    fn batch_sizes(&self, step: usize) -> Option<(usize, usize)> {
        let (most, probability) = self.plan.batch_size_law(step)?;
        let most = self.plan.sampler.max_batch_size().map_or(most, |size| size.min(most));
        Some((if probability == 1.0 { most } else { 0 }, most))
    }

    /// The participation schema for which the sensitivity holds: `single`, `cyclic:B,K`, ...
    #[getter]
    fn participation(&self) -> String {
        self.plan.participation.to_string()
    }

    #[getter]
    fn workload(&self) -> String {
        self.plan.workload.to_string()
    }

    /// The arithmetic of noisy sums: `grid` or `plain`.
    #[getter]
    fn arithmetic(&self) -> &'static str {
        self.plan.arithmetic.kind().name()
    }

    /// The divisor of the noisy sum.
    #[getter]
    fn expected_batch_size(&self) -> f64 {
        self.plan.expected_batch_size()
    }

    /// Spacing of the grid of noisy sums; None for plain arithmetic.
    #[getter]
    fn grid_spacing(&self) -> Result<Option<f64>> {
        Ok(self.plan.arithmetic.grid()?.map(Grid::spacing))
    }

    /// Maximum change of a step's noisy sum by one unit, rounding included.
    #[getter]
    fn widened_clip_norm(&self) -> f64 {
        self.plan.widened_clip_norm()
    }

    /// Upper bound on the part of floating-point rounding in a unit's effect on a clipped sum: the error of
    /// computed sums must stay below it.
    #[getter]
    fn sum_allowance(&self) -> f64 {
        self.plan.sum_allowance()
    }

    /// The candidates that `plan()` compared to choose this plan: a list of dicts; empty for a plan that was
    /// read.
    #[getter]
    fn candidates<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        // A copy: changes by the caller must not reach the plan.
        self.candidates.iter().map(|row| row.bind(py).copy()).collect()
    }

    /// Pickles the plan as text, since a plan is not secret; the copy is verified again.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((slf.get_type().getattr("from_toml")?, (slf.get().to_toml(),)))
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.digest == other.digest
    }

    fn __hash__(&self) -> u64 {
        u64::from_le_bytes(self.digest[..8].try_into().expect("eight bytes"))
    }

    fn __repr__(&self) -> String {
        let Numbers { steps, privacy, .. } = &*self.plan;
        let (epsilon, delta) = (privacy.epsilon, privacy.delta);
        format!("Plan({}, steps={steps}, epsilon={epsilon:.6}, delta={delta:e})", self.strategy())
    }
}
