//! Privacy from noise, and noise from privacy.

use antinoise_accounting::{BlockCyclicPoisson, FixedSizeBatches, Neighbours, Sampling};
use antinoise_input::InvalidParameter;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::Result;
use crate::process::interruptible;

/// The epsilon of Gaussian noise at `delta`: a dict with `epsilon` (an upper bound on the true value),
/// `epsilon_lower` (a lower bound), `delta` and `noise_multiplier`.
///
/// `noise_multiplier` is the noise's standard deviation divided by the sensitivity under `adjacency`. Without
/// `sampling_rate` and `fixed_batch_size` it describes all steps together as one release, and `steps` is 1.
/// With `sampling_rate` it describes each of `steps` Poisson-sampled steps; with `fixed_batch_size`, each of
/// `steps` steps on that many of `examples` examples, drawn without replacement; with `random_allocation`,
/// each of `steps` steps, of which every example takes part in one in each epoch of that many.
#[pyfunction]
#[pyo3(signature = (noise_multiplier, delta, sampling_rate=None, steps=1, *, adjacency="zero-out", group_size=1, fixed_batch_size=None, examples=None, random_allocation=None))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub fn account<'py>(
    py: Python<'py>,
    noise_multiplier: f64,
    delta: f64,
    sampling_rate: Option<f64>,
    steps: usize,
    adjacency: &str,
    group_size: u64,
    fixed_batch_size: Option<usize>,
    examples: Option<usize>,
    random_allocation: Option<usize>,
) -> Result<Bound<'py, PyDict>> {
    let sampling = sampling(sampling_rate, steps, fixed_batch_size, examples, random_allocation)?;
    let neighbours: Neighbours = adjacency.parse()?;
    let found =
        interruptible(py, move || sampling.epsilon(noise_multiplier, delta, group_size, neighbours))??;
    let report = PyDict::new(py);
    report.set_item("epsilon", found.upper)?;
    report.set_item("epsilon_lower", found.lower)?;
    report.set_item("delta", delta)?;
    report.set_item("noise_multiplier", noise_multiplier)?;
    Ok(report)
}

/// The smallest (epsilon, delta)-private noise multiplier, rounded up; other arguments as in `account`.
#[pyfunction]
#[pyo3(signature = (epsilon, delta, sampling_rate=None, steps=1, *, adjacency="zero-out", fixed_batch_size=None, examples=None, random_allocation=None))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub fn calibrate(
    py: Python<'_>,
    epsilon: f64,
    delta: f64,
    sampling_rate: Option<f64>,
    steps: usize,
    adjacency: &str,
    fixed_batch_size: Option<usize>,
    examples: Option<usize>,
    random_allocation: Option<usize>,
) -> Result<f64> {
    let sampling = sampling(sampling_rate, steps, fixed_batch_size, examples, random_allocation)?;
    let neighbours: Neighbours = adjacency.parse()?;
    Ok(interruptible(py, move || sampling.noise_multiplier_upper(epsilon, delta, neighbours))??)
}

/// How batches are drawn.
fn sampling(
    sampling_rate: Option<f64>,
    steps: usize,
    fixed_batch_size: Option<usize>,
    examples: Option<usize>,
    random_allocation: Option<usize>,
) -> Result<Sampling> {
    let refused = |name, got: String, must_be: &str| Err(InvalidParameter::new(name, got, must_be).into());
    if let Some(epoch_steps) = random_allocation {
        return match (sampling_rate, fixed_batch_size, examples) {
            (None, None, None) if epoch_steps > 0 && steps.is_multiple_of(epoch_steps) => {
                Ok(Sampling::RandomAllocation { epoch_steps, epochs: steps / epoch_steps })
            }
            (None, None, None) => {
                refused("random_allocation", epoch_steps.to_string(), "a divisor of steps, at least 1")
            }
            _ => refused("random_allocation", epoch_steps.to_string(), "None with other sampling"),
        };
    }
    match (sampling_rate, fixed_batch_size, examples) {
        (None, None, None) if steps == 1 => Ok(Sampling::None),
        (None, None, None) => refused("sampling_rate", "absent".into(), "given with steps"),
        (Some(rate), None, None) if rate > 0.0 && rate <= 1.0 => {
            let batches = BlockCyclicPoisson { bands: 1, steps, batch_size: rate, examples: 1 };
            Ok(Sampling::Poisson { batches, max_batch: None })
        }
        (Some(rate), None, None) => refused("sampling_rate", rate.to_string(), "above 0 and at most 1"),
        (None, Some(batch_size), Some(examples)) => {
            Ok(Sampling::FixedSize(FixedSizeBatches { batch_size, examples, steps }))
        }
        (Some(_), Some(size), _) => refused("fixed_batch_size", size.to_string(), "None with sampling_rate"),
        (None, Some(_), None) => refused("examples", "absent".into(), "given with fixed_batch_size"),
        (_, None, Some(examples)) => {
            refused("examples", examples.to_string(), "None, or given with fixed_batch_size")
        }
    }
}
