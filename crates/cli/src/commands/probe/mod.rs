//! `antinoise probe`: what a training on public data remembers of the noise of each step.

mod arguments;
mod growths;
mod weights;

use std::fmt;
use std::path::PathBuf;

use antinoise_mechanism::Workload;
use antinoise_study::load;
use antinoise_train::probe::Probe;
use serde::Serialize;

pub use arguments::Arguments;
use arguments::By;
use growths::Growths;
use weights::Weights;

use crate::failure::{Failure, Result};
use crate::progress::Progress;
use crate::signals::Stop;

/// Output of `antinoise probe`.
#[derive(Debug, Serialize)]
pub struct Probed {
    /// The data that were probed.
    data: String,
    /// Number of steps of a training.
    steps: usize,
    #[serde(flatten)]
    found: Found,
    workload: Workload,
    out: Option<PathBuf>,
}

/// What weights follow from.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Found {
    Growths(Growths),
    Weights(Weights),
}

/// Probes the training and writes the workload.
pub fn run(arguments: &Arguments) -> Result<Probed> {
    arguments.check_way()?;
    let (out, figure) = arguments.overwriting.out_and_plot(&arguments.out, &arguments.plot)?;
    let table = arguments.table.table(&arguments.data)?;
    let dataset = load(&arguments.data, table.as_ref(), None)?;
    let model = arguments.model.build(&dataset)?;
    let probe = arguments.probe(&model, &dataset);
    probe.equal_weights(arguments.prefix_share)?;
    let (found, workload) = match arguments.by {
        By::Trainings => by_trainings(arguments, &probe)?,
        By::Spectrum => by_spectrum(arguments, &probe)?,
    };
    if let Some(out) = &out {
        out.write(arguments.saved(&workload, probe.steps)?.as_bytes())?;
    }
    if let Some(figure) = &figure {
        let svg = match &found {
            Found::Growths(growths) => growths.drawn(),
            Found::Weights(weights) => weights.drawn(),
        };
        figure.write(svg?.as_bytes())?;
    }
    let data = arguments.data.clone();
    Ok(Probed { data, steps: probe.steps, found, workload, out: arguments.out.clone() })
}

fn by_trainings(arguments: &Arguments, probe: &Probe<'_>) -> Result<(Found, Workload)> {
    let stop = Stop::on_signals()?;
    let progress = Progress::new("probing", "trainings", probe.trainings(arguments.probes()) as u64);
    let found = probe.growths(arguments.probes(), stop.asked(), || progress.advance(1))?;
    drop(progress);
    let growths = found.ok_or_else(|| stopped(&stop))?;
    let workload = probe.workload(&growths, arguments.prefix_share)?;
    Ok((Found::Growths(Growths::new(growths, &workload, probe.steps)?), workload))
}

fn by_spectrum(arguments: &Arguments, probe: &Probe<'_>) -> Result<(Found, Workload)> {
    let stop = Stop::on_signals()?;
    let products = arguments.repeats.saturating_mul(arguments.products());
    let progress = Progress::new("probing", "products", products as u64);
    let found = probe.spectrum(arguments.products(), stop.asked(), || progress.advance(1))?;
    drop(progress);
    let spectrum = found.ok_or_else(|| stopped(&stop))?;
    let workload = probe.workload_of_spectrum(&spectrum, arguments.prefix_share)?;
    Ok((Found::Weights(Weights::new(spectrum, &workload, probe)), workload))
}

fn stopped(stop: &Stop) -> Failure {
    Failure::stopped("stopped: nothing is saved", stop.status())
}

impl fmt::Display for Probed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.found {
            Found::Growths(growths) => write!(f, "{growths}")?,
            Found::Weights(weights) => write!(f, "{weights}")?,
        }
        writeln!(f, "NOT PRIVATE: a function of {}, which must be public.", self.data)?;
        match &self.out {
            Some(out) => write!(f, "Design for it: --workload learned:{}", out.display()),
            None => write!(f, "--out FILE saves the workload, for --workload learned:FILE"),
        }
    }
}
