//! The cohort and the sum of a federated round, and the server's optimizer, as in `antinoise_federated`: with
//! the same key and updates, rounds in Python have the bits of rounds in Rust.

use antinoise_federated::{clipped_update_sum, draw_cohort};
use antinoise_input::tables::SimilarNames;
use antinoise_input::{InvalidParameter, at_least};
use antinoise_noise::Purpose;
use antinoise_train::optimizer::{Optimizer, OptimizerConfig, Schedule, UpdateRule};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{Raised, Result};
use crate::ledger::names;
use crate::process::threaded;
use crate::rows::Arrays;
use crate::stream::NoiseStream;
use crate::words::Workload;

/// Draws at most `size` of `users` for a step, by the key of `noise`, and returns them in the order given.
#[pyfunction]
pub fn _draw_cohort(
    noise: &NoiseStream,
    step: u64,
    users: &Bound<'_, PyAny>,
    size: usize,
) -> Result<Vec<String>> {
    let users = names(users)?;
    let users: Vec<&str> = users.iter().map(String::as_str).collect();
    let mut rng = noise.rng(Purpose::BatchSampling, step)?;
    Ok(draw_cohort(&users, size, &mut rng)?.into_iter().map(String::from).collect())
}

/// A warning of users whose names are nearly the same, if there are any.
#[pyfunction]
pub fn _similar_names(users: &Bound<'_, PyAny>) -> Result<Option<String>> {
    let users = names(users)?;
    Ok(SimilarNames::among(users.iter().map(String::as_str)).warning())
}

/// The sum, float64, of a cohort's updates, each clipped to `clip_norm`. `update(i)` returns the update of
/// user i below `count`, float32 and of length `dim`, or None; other threads may call it.
#[pyfunction]
pub fn _clipped_update_sum<'py>(
    update: &Bound<'py, PyAny>,
    count: usize,
    dim: usize,
    clip_norm: f64,
) -> Result<Bound<'py, PyArray1<f64>>> {
    let (py, update) = (update.py(), update.clone().unbind());
    let of_user = |i: usize, add: &mut dyn FnMut(&[f32])| -> Result<()> {
        Python::attach(|py| {
            let row: Option<PyReadonlyArray1<'_, f32>> = update.bind(py).call1((i,))?.extract()?;
            let Some(row) = row else {
                return Ok(());
            };
            if row.len() != dim {
                return Err(InvalidParameter::new("length of an update", row.len(), dim.to_string()).into());
            }
            add(row.as_slice().map_err(Raised::failed)?);
            Ok(())
        })
    };
    let sum = py.detach(|| threaded(false, || clipped_update_sum(count, dim, clip_norm, of_user)))??;
    Ok(sum.into_pyarray(py))
}

/// The server's optimizer on the noisy means of updates.
#[pyclass(frozen, module = "antinoise.flower")]
pub struct ServerOptimizer {
    config: OptimizerConfig,
}

#[pymethods]
impl ServerOptimizer {
    #[new]
    #[pyo3(signature = (learning_rate, *, rule="sgd", momentum=None, schedule="constant", warm_up=0, weight_decay=0.0, zero_beyond=None))]
    fn new(
        learning_rate: f64,
        rule: &str,
        momentum: Option<f64>,
        schedule: &str,
        warm_up: usize,
        weight_decay: f64,
        zero_beyond: Option<f64>,
    ) -> Result<Self> {
        if rule == "ftrl" {
            let must_be = "sgd, nesterov or adam: ftrl's model follows from its start and its sums alone";
            return Err(InvalidParameter::new("rule", format!("{rule:?}"), must_be).into());
        }
        let rule = UpdateRule::named(rule, learning_rate, momentum, None)?.check()?;
        let schedule = Schedule { warm_up, decay: schedule.parse()? };
        Ok(Self { config: OptimizerConfig { rule, schedule, weight_decay, zero_beyond } })
    }

    /// Refuses settings that are out of range or do not fit a run of `steps` steps.
    fn _check(&self, steps: usize) -> Result<()> {
        Ok(self.config.check(steps)?)
    }

    /// The workload for which `antinoise train` designs a strategy with this optimizer and `steps` steps.
    fn workload(&self, steps: usize) -> Result<Workload> {
        at_least("steps", steps, 1)?;
        self._check(steps)?;
        Ok(Workload { of: self.config.design_workload(steps) })
    }

    /// The text that identifies the optimizer.
    fn __repr__(&self) -> String {
        format!("ServerOptimizer({})", self.config.identity())
    }

    /// The state before the first of `steps` steps, for `dim` parameters.
    fn _first_state<'py>(&self, py: Python<'py>, dim: usize, steps: usize) -> Result<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &state_of(&Optimizer::of_run(self.config, dim, steps)?)))
    }

    /// Makes step `step` of `steps` from a state: moves `parameters`, float32, along the `mean`, float32, and
    /// returns the state after it.
    fn _moved<'py>(
        &self,
        state: &Bound<'py, PyBytes>,
        step: usize,
        steps: usize,
        parameters: &Bound<'py, PyAny>,
        mean: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyBytes>> {
        let mean = Arrays::<f32>::one("mean", mean)?;
        let mut parameters = Arrays::<f32>::one_to_write("parameters", parameters)?;
        let py = state.py();
        let mean = mean.as_slice().map_err(Raised::failed)?;
        let parameters = parameters.as_slice_mut().map_err(Raised::failed)?;
        if step >= steps || mean.len() != parameters.len() {
            return Err(Raised::failed("a step of the optimizer needs one number for each parameter"));
        }
        let new = Optimizer::of_run(self.config, parameters.len(), steps)?;
        let mut optimizer = after(new, step, state.as_bytes())?;
        py.detach(|| optimizer.step(parameters, mean));
        Ok(PyBytes::new(py, &state_of(&optimizer)))
    }
}

/// The moments, little-endian, one after the other.
fn state_of(optimizer: &Optimizer) -> Vec<u8> {
    let (first, second) = optimizer.moments();
    first.iter().chain(second).flat_map(|x| x.to_le_bytes()).collect()
}

/// The optimizer after `step` steps, with the moments that [`state_of`] wrote.
fn after(new: Optimizer, step: usize, state: &[u8]) -> Result<Optimizer> {
    let numbers: Vec<f32> =
        state.chunks_exact(4).map(|x| f32::from_le_bytes(x.try_into().expect("four bytes"))).collect();
    let first = new.moments().0.len().min(numbers.len());
    let (first, second) = numbers.split_at(first);
    Ok(new.after(step, (first.to_vec(), second.to_vec()))?)
}
