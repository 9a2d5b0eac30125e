//! The plan: sampler, mechanism and noise as one value that is accounted and run.

use std::path::PathBuf;

use antinoise_input::{InvalidParameter, hex};
use antinoise_mechanism::{Grid, PrivacyUnit};
use antinoise_plan::{
    Accountant, Candidate, Choice, Length, Plan as Numbers, Request, Sampler, VerifiedPlan, choose,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::design::{read_workload, told, write_new};
use crate::errors::Result;
use crate::process::interruptible;
use crate::words::{Names, WorkloadLike, parsed, release, setting, unit};

/// A plan whose claim follows from its numbers: made, or read and verified; there is no other.
#[pyclass(frozen, module = "antinoise")]
pub struct Plan {
    plan: VerifiedPlan,
    digest: [u8; 32],
    candidates: Vec<Row>,
}

/// What is told of a candidate.
struct Row {
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

/// Chooses a mechanism for a training and states its privacy.
///
/// `examples`, `batch_size` and either `epochs` or `steps` say what is trained; `setting` says how units come to take part: `cyclic`
/// (shuffled once, batches take turns), `poisson` (sampled, which amplifies), `single` (once at most), `federated` (by themselves, with
/// `min_sep` and `max_participations`). `mechanism` names one or several to choose from; `release` is `grid` or `plain`.
#[pyfunction]
#[pyo3(signature = (examples, batch_size, *, epsilon, delta, epochs=None, steps=None, setting="cyclic", min_sep=None,
    max_participations=None, clip_norm=1.0, dim=0, unit=None, adjacency="zero-out", workload=None, objective="rms",
    mechanism=None, memory=None, release="grid"))]
#[expect(clippy::too_many_arguments, reason = "keywords of Python")]
pub fn plan(
    py: Python<'_>,
    examples: usize,
    batch_size: usize,
    epsilon: f64,
    delta: f64,
    epochs: Option<usize>,
    steps: Option<usize>,
    setting: &str,
    min_sep: Option<usize>,
    max_participations: Option<usize>,
    clip_norm: f64,
    dim: usize,
    unit: Option<&str>,
    adjacency: &str,
    workload: Option<WorkloadLike>,
    objective: &str,
    mechanism: Option<Names>,
    memory: Option<u64>,
    release: &str,
) -> Result<Plan> {
    let setting = self::setting(setting, min_sep, max_participations)?;
    let request = Request {
        epsilon,
        delta,
        unit: self::unit(unit, setting)?,
        adjacency: parsed(adjacency)?,
        workload: read_workload(workload)?,
        objective: parsed(objective)?,
        clip_norm,
        dim,
        release: self::release(release)?,
        memory,
        specs: mechanism.map(Names::read).transpose()?,
        ..Request::new(examples, batch_size, length(epochs, steps)?, setting)
    };
    Ok(Plan::of(interruptible(py, move || choose(&request))??))
}

fn length(epochs: Option<usize>, steps: Option<usize>) -> Result<Length> {
    match (epochs, steps) {
        (Some(epochs), None) => Ok(Length::Epochs(epochs)),
        (None, Some(steps)) => Ok(Length::Steps(steps)),
        (None, None) => Err(InvalidParameter::new("epochs", "absent", "given, or steps").into()),
        (Some(_), Some(steps)) => Err(InvalidParameter::new("steps", steps, "left out with epochs").into()),
    }
}

impl Row {
    fn new(candidate: &Candidate, chosen: bool, reference: bool) -> Self {
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

    fn told<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
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

impl Plan {
    fn new(plan: VerifiedPlan, candidates: Vec<Row>) -> Self {
        Self { digest: plan.digest(), plan, candidates }
    }

    fn of(choice: Choice) -> Self {
        let Choice { candidates, references, chosen, plan } = choice;
        let rows =
            candidates.iter().enumerate().map(|(i, candidate)| Row::new(candidate, i == chosen, false));
        let references = references.iter().map(|candidate| Row::new(candidate, false, true));
        Self::new(plan, rows.chain(references).collect())
    }

    /// What is run.
    pub fn verified(&self) -> &VerifiedPlan {
        &self.plan
    }

    /// By which everything that belongs to the plan knows it again.
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
    fn loads(py: Python<'_>, text: String) -> Result<Self> {
        Ok(Self::new(interruptible(py, move || Numbers::from_toml(&text))??, Vec::new()))
    }

    /// Writes it to `path`, whole or not at all; over a file that exists only by `force`.
    #[pyo3(signature = (path, *, force=false))]
    fn save(&self, path: PathBuf, force: bool) -> Result<()> {
        write_new(&path, &self.plan.to_toml(), force)
    }

    /// The plan as TOML, every number to its last digit.
    fn to_toml(&self) -> String {
        self.plan.to_toml()
    }

    /// Recomputes the claim from the numbers; `ValueError` where it does not follow, which no plan held here is.
    fn verify(&self, py: Python<'_>) -> Result<()> {
        let numbers = self.plan.clone().into_plan();
        interruptible(py, move || numbers.verify())??;
        Ok(())
    }

    /// The claim in words: what is protected, by what, whom it holds against and what it leaves out.
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

    /// The batch size that was asked for; `expected_batch_size` is what sums are divided by.
    #[getter]
    fn batch_size(&self) -> usize {
        self.plan.batch_size
    }

    #[getter]
    fn steps(&self) -> usize {
        self.plan.steps
    }

    /// Most l2 norm of one example's gradient.
    #[getter]
    fn clip_norm(&self) -> f64 {
        self.plan.clip_norm
    }

    /// Noise standard deviation over sensitivity, for clip norm 1.
    #[getter]
    fn noise_multiplier(&self) -> f64 {
        self.plan.noise_multiplier
    }

    /// Standard deviation of the seed noise on the *sum* of clipped gradients.
    #[getter]
    fn noise_std(&self) -> f64 {
        self.plan.noise_std()
    }

    /// A dict with `value`, `kind` and `source`.
    #[getter]
    fn sensitivity<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        told(py, &self.plan.sensitivity)
    }

    /// Never below the truth.
    #[getter]
    fn epsilon(&self) -> f64 {
        self.plan.privacy.epsilon
    }

    /// No epsilon below it follows by this accountant.
    #[getter]
    fn epsilon_lower(&self) -> f64 {
        self.plan.privacy.epsilon_lower
    }

    #[getter]
    fn delta(&self) -> f64 {
        self.plan.privacy.delta
    }

    /// `example` or `user`.
    #[getter]
    fn unit(&self) -> &'static str {
        match self.plan.privacy.unit {
            PrivacyUnit::Example => "example",
            PrivacyUnit::User => "user",
        }
    }

    /// `zero-out` or `replace-one`.
    #[getter]
    fn adjacency(&self) -> String {
        self.plan.privacy.adjacency.to_string()
    }

    /// `gdp`, or `sampled-gaussian` where sampling amplifies.
    #[getter]
    fn accountant(&self) -> &'static str {
        match self.plan.privacy.accountant {
            Accountant::Gdp => "gdp",
            Accountant::SampledGaussian => "sampled-gaussian",
        }
    }

    /// The strategy's class.
    #[getter]
    fn strategy(&self) -> &'static str {
        self.plan.strategy.class().name()
    }

    /// A dict with `kind` (`cyclic`, `poisson` or `external`) and, but for the last, `groups`.
    #[getter]
    fn sampler<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let sampler = PyDict::new(py);
        let (kind, groups) = match self.plan.sampler {
            Sampler::Cyclic { groups } => ("cyclic", Some(groups)),
            Sampler::Poisson { groups } => ("poisson", Some(groups)),
            Sampler::External => ("external", None),
        };
        sampler.set_item("kind", kind)?;
        if let Some(groups) = groups {
            sampler.set_item("groups", groups)?;
        }
        Ok(sampler)
    }

    /// The schema that the sensitivity is for: `single`, `cyclic:B,K`, ...
    #[getter]
    fn participation(&self) -> String {
        self.plan.participation.to_string()
    }

    #[getter]
    fn workload(&self) -> String {
        self.plan.workload.to_string()
    }

    /// `grid` or `plain`.
    #[getter]
    fn release(&self) -> &'static str {
        self.plan.release.kind().name()
    }

    /// What the noisy sum is divided by.
    #[getter]
    fn expected_batch_size(&self) -> f64 {
        self.plan.expected_batch_size()
    }

    /// The distance of the points that releases lie on; None where they are plain.
    #[getter]
    fn grid_spacing(&self) -> Result<Option<f64>> {
        Ok(self.plan.release.grid()?.map(Grid::spacing))
    }

    /// The most that one unit can move a step's released sum by, rounding included.
    #[getter]
    fn widened_clip_norm(&self) -> f64 {
        self.plan.widened_clip_norm()
    }

    /// The most that floating point may add to a unit's effect on a clipped sum: whoever computes sums stays below it.
    #[getter]
    fn sum_allowance(&self) -> f64 {
        self.plan.sum_allowance()
    }

    /// What was compared when `plan()` made this: a list of dicts; empty for a plan that was read.
    #[getter]
    fn candidates<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        self.candidates.iter().map(|row| row.told(py)).collect()
    }

    /// Plans are no secret: a copy is read, and verified, again.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((slf.get_type().getattr("loads")?, (slf.get().to_toml(),)))
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
