//! The choice of a plan.

use antinoise_input::InvalidParameter;
use antinoise_plan::{Length, Request, Setting, choose, default_delta};
use pyo3::prelude::*;

use crate::design::{GivenStrategy, read_workload};
use crate::errors::{Result, warn};
use crate::plan::Plan;
use crate::process::interruptible;
use crate::words::{Names, SizeLike, WorkloadLike, arithmetic, parsed, unit};

/// Chooses a mechanism for a training run and states its privacy.
///
/// `examples`, `batch_size` and either `epochs` or `steps` describe the training; `setting` says how
/// batches are formed: `cyclic` (shuffled once, batches in cyclic order), `poisson` (sampled, which
/// amplifies privacy), `single` (each example at most once), `federated` (users who are available, with
/// `min_sep` and `max_participations`). With `max_batch_size`, a number or `auto`, Poisson batches are cut at
/// that size. `delta` is by default the power of ten at or below 0.1 / `examples`, at most 1e-5. `mechanism`
/// names the mechanism, or several to choose from;
/// `strategy` is a finished one, or any matrix C, to be taken as it is; `arithmetic` is `grid` or `plain`.
///
/// Candidates must fit `memory` (bytes of noise state) and `noise_time` (estimated seconds on one core for a
/// step's noise). Among the candidates whose loss is at most `tolerance` above the smallest loss, the one
/// with the smallest state is chosen. `thorough=False` leaves out strategies that take seconds to optimise.
#[pyfunction]
#[pyo3(signature = (examples, batch_size, *, epsilon, delta=None, epochs=None, steps=None, setting="cyclic", min_sep=None,
    max_participations=None, max_batch_size=None, clip_norm=1.0, dim=0, unit=None, adjacency="zero-out", workload=None, objective="rms",
    mechanism=None, strategy=None, memory=None, noise_time=None, tolerance=0.05, thorough=true, arithmetic="grid"))]
#[expect(clippy::too_many_arguments, reason = "keywords of Python")]
pub fn plan(
    py: Python<'_>,
    examples: usize,
    batch_size: usize,
    epsilon: f64,
    delta: Option<f64>,
    epochs: Option<usize>,
    steps: Option<usize>,
    setting: &str,
    min_sep: Option<usize>,
    max_participations: Option<usize>,
    max_batch_size: Option<SizeLike>,
    clip_norm: f64,
    dim: usize,
    unit: Option<&str>,
    adjacency: &str,
    workload: Option<WorkloadLike>,
    objective: &str,
    mechanism: Option<Names>,
    strategy: Option<GivenStrategy<'_>>,
    memory: Option<u64>,
    noise_time: Option<f64>,
    tolerance: f64,
    thorough: bool,
    arithmetic: &str,
) -> Result<Plan> {
    let delta = delta.unwrap_or_else(|| default_delta(examples));
    warn_of_delta(py, examples, delta)?;
    let setting = Setting::named(setting, min_sep, max_participations)?;
    let request = Request {
        epsilon,
        delta,
        unit: self::unit(unit, setting)?,
        adjacency: parsed(adjacency)?,
        workload: read_workload(workload)?,
        objective: parsed(objective)?,
        max_batch_size: max_batch_size.map(SizeLike::read).transpose()?,
        clip_norm,
        dim,
        arithmetic: self::arithmetic(arithmetic)?,
        memory,
        noise_time,
        tolerance,
        thorough,
        specs: mechanism.map(Names::read).transpose()?,
        strategies: strategy.iter().map(GivenStrategy::read).collect::<Result<_>>()?,
        ..Request::new(examples, batch_size, length(epochs, steps)?, setting)
    };
    Plan::of(py, interruptible(py, move || choose(&request))??)
}

/// Warns of a delta so large that publishing one random example in full would satisfy it.
fn warn_of_delta(py: Python<'_>, examples: usize, delta: f64) -> PyResult<()> {
    let bound = 1.0 / examples as f64;
    let warning = || {
        format!(
            "delta is {delta} but should be well below 1 / examples = {bound:.2e}: publishing one example in full, \
             drawn at random, would reach it"
        )
    };
    warn(py, (delta * (examples as f64) >= 1.0).then(warning))
}

fn length(epochs: Option<usize>, steps: Option<usize>) -> Result<Length> {
    match (epochs, steps) {
        (Some(epochs), None) => Ok(Length::Epochs(epochs)),
        (None, Some(steps)) => Ok(Length::Steps(steps)),
        (None, None) => Err(InvalidParameter::new("epochs", "absent", "given, or steps").into()),
        (Some(_), Some(steps)) => {
            Err(InvalidParameter::new("steps", steps, "left out if epochs is given").into())
        }
    }
}
