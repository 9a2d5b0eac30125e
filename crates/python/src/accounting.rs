//! Privacy from noise, and noise from privacy.

use antinoise_accounting::{
    Composition, PoissonSampledGaussian, calibrate as solve, gaussian_noise_multiplier_upper,
};
use antinoise_input::InvalidParameter;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::Result;
use crate::process::interruptible;

/// The epsilon of Gaussian noise at `delta`: a dict with `epsilon` (an upper bound on the true value),
/// `epsilon_lower` (a lower bound), `delta` and `noise_multiplier`.
///
/// `noise_multiplier` is the noise's standard deviation divided by the sensitivity. Without `sampling_rate`
/// it describes all steps together as one release, and `steps` is 1. With `sampling_rate` it describes each
/// of `steps` Poisson-sampled steps.
#[pyfunction]
#[pyo3(signature = (noise_multiplier, delta, sampling_rate=None, steps=1))]
pub fn account<'py>(
    py: Python<'py>,
    noise_multiplier: f64,
    delta: f64,
    sampling_rate: Option<f64>,
    steps: u64,
) -> Result<Bound<'py, PyDict>> {
    let rate = rate(sampling_rate, steps)?;
    let found = interruptible(py, move || {
        let run = PoissonSampledGaussian::new(noise_multiplier, rate, steps)?;
        Composition::new([run])?.epsilon(delta)
    })??;
    let report = PyDict::new(py);
    report.set_item("epsilon", found.upper)?;
    report.set_item("epsilon_lower", found.lower)?;
    report.set_item("delta", delta)?;
    report.set_item("noise_multiplier", noise_multiplier)?;
    Ok(report)
}

/// The smallest (epsilon, delta)-private noise multiplier, rounded up; `sampling_rate` and `steps` as in
/// `account`.
#[pyfunction]
#[pyo3(signature = (epsilon, delta, sampling_rate=None, steps=1))]
pub fn calibrate(
    py: Python<'_>,
    epsilon: f64,
    delta: f64,
    sampling_rate: Option<f64>,
    steps: u64,
) -> Result<f64> {
    let checked = rate(sampling_rate, steps)?;
    Ok(interruptible(py, move || match sampling_rate {
        None => gaussian_noise_multiplier_upper(epsilon, delta),
        Some(_) => solve::noise_multiplier_upper(checked, steps, epsilon, delta),
    })??)
}

/// The probability that an example takes part in a step; without it, `steps` must be 1.
fn rate(sampling_rate: Option<f64>, steps: u64) -> Result<f64> {
    if sampling_rate.is_none() && steps != 1 {
        return Err(InvalidParameter::new("sampling_rate", "absent", "given with steps").into());
    }
    Ok(sampling_rate.unwrap_or(1.0))
}
