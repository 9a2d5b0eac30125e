//! The examples of each step.

use antinoise_input::between;
use antinoise_noise::{KeyedRng, Purpose, RunId};
use antinoise_plan::{Batches as Sampled, Plan as Numbers};
use numpy::{PyArray1, ToPyArray};
use pyo3::prelude::*;

use crate::errors::Result;
use crate::key::{Key, no_copy, run_named, token};
use crate::plan::Plan;
use crate::stream::NoiseStream;

/// The batches of a plan's run: the examples of each step, numbered from 0, as the plan's sampler draws them.
///
/// Where sampling amplifies privacy, the batches are as secret as the key.
#[pyclass(frozen, module = "antinoise")]
pub struct Batches {
    sampled: Sampled,
    steps: usize,
    plan: [u8; 32],
    source: Source,
    run: RunId,
}

/// Owner of the random numbers from which the batches are drawn.
enum Source {
    Key(Py<Key>),
    Noise(Py<NoiseStream>),
}

impl Batches {
    fn of(py: Python<'_>, plan: &Plan, source: Source, run: RunId) -> Result<Self> {
        plan.verified().check_draws_no_users()?;
        let Numbers { steps, examples, batch_size, sampler, .. } = **plan.verified();
        let digest = plan.digest_bytes();
        let mut rng = source.rng(&run, digest, Purpose::DataOrder, 0)?;
        let sampled = py.detach(|| Sampled::new(sampler, examples, batch_size, steps, &mut rng))?;
        Ok(Self { sampled, steps, plan: digest, source, run })
    }

    /// The examples of step `step`, from 0.
    pub fn examples(&self, step: usize) -> Result<Vec<usize>> {
        between("step", step, 0, self.steps - 1, "steps - 1")?;
        let mut rng = self.source.rng(&self.run, self.plan, Purpose::BatchSampling, step as u64)?;
        Ok(self.sampled.at(step, &mut rng))
    }
}

impl Source {
    fn rng(&self, run: &RunId, plan: [u8; 32], purpose: Purpose, step: u64) -> Result<KeyedRng> {
        match self {
            Self::Key(key) => key.get().rng(run, plan, purpose, step),
            Self::Noise(stream) => stream.get().rng(purpose, step),
        }
    }
}

#[pymethods]
impl Batches {
    #[new]
    #[pyo3(signature = (plan, key, *, run=None))]
    fn new(py: Python<'_>, plan: &Plan, key: Py<Key>, run: Option<&str>) -> Result<Self> {
        Self::of(py, plan, Source::Key(key), run_named(run)?)
    }

    /// The batches of the run of `noise`. Works for a resumed run too, whose key exists only inside its
    /// noise.
    #[staticmethod]
    fn of_noise(py: Python<'_>, plan: &Plan, noise: Py<NoiseStream>) -> Result<Self> {
        noise.get().check_plan(plan)?;
        let run = noise.get().run_id();
        Self::of(py, plan, Source::Noise(noise), run)
    }

    /// A public token of the run that reveals nothing about its key; the noise of the same run has the same
    /// token.
    #[getter]
    fn token(&self) -> Result<String> {
        Ok(token(self.source.rng(&self.run, self.plan, Purpose::Token, 0)?))
    }

    /// The examples of step `step`, from 0.
    fn at<'py>(&self, py: Python<'py>, step: usize) -> Result<Bound<'py, PyArray1<i64>>> {
        let numbers: Vec<i64> = self.examples(step)?.into_iter().map(|example| example as i64).collect();
        Ok(numbers.to_pyarray(py))
    }

    /// The examples of each step, in the order of the steps.
    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let builtins = slf.py().import("builtins")?;
        let steps = builtins.getattr("range")?.call1((slf.get().steps,))?;
        builtins.getattr("map")?.call1((slf.getattr("at")?, steps))
    }

    fn __len__(&self) -> usize {
        self.steps
    }

    fn __repr__(&self) -> String {
        format!("Batches(run={:?}, steps={})", self.run.as_str(), self.steps)
    }

    fn __reduce_ex__(&self, _protocol: i32) -> PyResult<()> {
        no_copy("Batches")
    }

    fn __reduce__(&self) -> PyResult<()> {
        no_copy("Batches")
    }

    fn __copy__(&self) -> PyResult<()> {
        no_copy("Batches")
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> PyResult<()> {
        no_copy("Batches")
    }
}
