//! `antinoise probe`: what a training on public data remembers of the noise of each step.

use std::fmt;
use std::path::PathBuf;

use antinoise_chart::{Axis, Chart, LineStyle, Series};
use antinoise_input::{printable, short};
use antinoise_mechanism::Workload;
use antinoise_study::{ModelName, load};
use antinoise_train::optimizer::{Decay, OptimizerConfig, Schedule, UpdateRule};
use antinoise_train::probe::{Growth, Probe};
use clap::Args;
use serde::Serialize;

use super::train::TableOptions;
use crate::arguments::one_of;
use crate::destination::Overwriting;
use crate::failure::{Failure, Result};
use crate::numbers::{count, real};
use crate::output;
use crate::plot;
use crate::progress::Progress;
use crate::signals::Stop;

/// Measure on public data what a training remembers of the noise of each step, and fit a workload to it.
///
/// Trains with independent noise, adds the noise of one step once more, with both signs, and measures how
/// much the final loss grows. Near an optimum that growth is a sum of the squared responses of the last
/// iterate, over the curvatures of the loss: the fitted weights say which curvatures matter for this model,
/// learning rate and schedule. `--workload learned:FILE` designs for them, where `--workload last-iterate`
/// gives all curvatures the same weight.
///
/// NOT PRIVATE: use data that are public, and like the private ones.
#[derive(Debug, Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "Examples:
  antinoise probe --learning-rate 0.1 --batch-size 96 --steps 150 \\
      --noise-multiplier 8 --repeats 8 --probes 8 --out learned.toml
  antinoise loss --strategy dense --steps 150 \\
      --participation cyclic:15,10 --workload learned:learned.toml"
)]
pub struct Arguments {
    /// Public data to train on, as for `antinoise train`.
    #[arg(long, default_value = "digits")]
    data: String,
    #[command(flatten)]
    table: TableOptions,
    /// Model to train.
    #[arg(long, value_parser = one_of(ModelName::ALL), default_value = "mlp")]
    model: ModelName,
    /// Number of examples in a batch.
    #[arg(long, value_name = "B", value_parser = count)]
    batch_size: usize,
    /// Number of steps; with --epochs, it follows from them.
    #[arg(long, value_name = "N", value_parser = count, required_unless_present = "epochs", conflicts_with = "epochs")]
    steps: Option<usize>,
    /// Passes over the data.
    #[arg(long, value_name = "K", value_parser = count)]
    epochs: Option<usize>,
    /// Learning rate of SGD, as of the private training.
    #[arg(long, value_name = "RATE", value_parser = real)]
    learning_rate: f64,
    /// Momentum of SGD.
    #[arg(long, value_name = "BETA", default_value = "0.9", value_parser = real)]
    momentum: f64,
    /// How the learning rate falls, as for `antinoise train`.
    #[arg(long, default_value = "constant")]
    schedule: Decay,
    /// Number of first steps over which the learning rate rises to the full one.
    #[arg(long, value_name = "N", default_value = "0", value_parser = count)]
    warm_up: usize,
    /// Decoupled weight decay, as for `antinoise train`.
    #[arg(long, value_name = "LAMBDA", default_value = "0", value_parser = real)]
    weight_decay: f64,
    /// Norm to which the gradient of each example is clipped.
    #[arg(long, value_name = "C", default_value = "1", value_parser = real)]
    clip_norm: f64,
    /// Standard deviation of the noise in each coordinate of a step's sum, in clip norms.
    #[arg(long, value_name = "SIGMA", default_value = "1", value_parser = real)]
    noise_multiplier: f64,
    /// Number of probed steps, evenly spaced.
    #[arg(long, value_name = "P", default_value = "16", value_parser = count)]
    probes: usize,
    /// Number of trainings with different starts, batches and noise, in each of which all steps are probed.
    #[arg(long, value_name = "R", default_value = "4", value_parser = count)]
    repeats: usize,
    /// Squared error of prefix sums over that of the last iterate, for independent noise.
    #[arg(long, value_name = "SHARE", default_value = "0.05", value_parser = real)]
    prefix_share: f64,
    /// Seed of the trainings, which are not private.
    #[arg(long, value_name = "SEED", default_value = "1")]
    seed: u64,
    /// Save the workload to this file, for --workload learned:FILE.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Draw the measured and the fitted growth to this file, an SVG.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    overwriting: Overwriting,
}

/// Output of `antinoise probe`.
#[derive(Debug, Serialize)]
pub struct Probed {
    /// The data that were probed.
    data: String,
    /// Number of steps of a training.
    steps: usize,
    /// Measured growth of the final loss with noise at single steps.
    growths: Vec<Growth>,
    /// Growth at these steps by the fitted weights.
    fitted: Vec<f64>,
    workload: Workload,
    out: Option<PathBuf>,
}

/// Probes the training and fits the weights.
pub fn run(arguments: &Arguments) -> Result<Probed> {
    let (out, figure) = arguments.overwriting.out_and_plot(&arguments.out, &arguments.plot)?;
    let table = arguments.table.table(&arguments.data)?;
    let dataset = load(&arguments.data, table.as_ref(), None)?;
    let model = arguments.model.build(&dataset)?;
    let rule = UpdateRule::Sgd { learning_rate: arguments.learning_rate, momentum: arguments.momentum };
    let schedule = Schedule { warm_up: arguments.warm_up, decay: arguments.schedule };
    let probe = Probe {
        model: &model,
        dataset: &dataset,
        optimizer: OptimizerConfig { schedule, weight_decay: arguments.weight_decay, ..rule.into() },
        batch_size: arguments.batch_size,
        steps: arguments.steps(dataset.train.len()),
        clip_norm: arguments.clip_norm,
        noise_multiplier: arguments.noise_multiplier,
        repeats: arguments.repeats,
        seed: arguments.seed,
    };
    probe.equal_weights(arguments.prefix_share)?;
    let stop = Stop::on_signals()?;
    let progress = Progress::new("probing", "trainings", probe.trainings(arguments.probes) as u64);
    let found = probe.growths(arguments.probes, stop.asked(), || progress.advance(1))?;
    drop(progress);
    let growths = found.ok_or_else(|| Failure::stopped("stopped: nothing is saved", stop.status()))?;
    let workload = probe.workload(&growths, arguments.prefix_share)?;
    let curve = fitted(&workload, &growths, probe.steps)?;
    let fitted = growths.iter().map(|growth| curve[growth.step]).collect();
    if let Some(out) = &out {
        out.write(arguments.saved(&workload, probe.steps)?.as_bytes())?;
    }
    if let Some(figure) = &figure {
        figure.write(drawn(&growths, &curve)?.as_bytes())?;
    }
    let data = arguments.data.clone();
    Ok(Probed { data, steps: probe.steps, growths, fitted, workload, out: arguments.out.clone() })
}

impl Arguments {
    /// The number of steps over `examples` examples, those of a cyclic plan.
    fn steps(&self, examples: usize) -> usize {
        let of_epoch = (examples / self.batch_size.max(1)).max(1);
        self.steps.unwrap_or_else(|| of_epoch.saturating_mul(self.epochs.unwrap_or(1)))
    }

    /// The file of the workload: TOML, which says what was probed.
    fn saved(&self, workload: &Workload, steps: usize) -> Result<String> {
        let Self { data, model, batch_size, learning_rate, noise_multiplier, repeats, seed, .. } = self;
        let workload = toml::to_string(workload).map_err(Failure::other)?;
        Ok(format!(
            "# NOT PRIVATE: measured by antinoise probe on {}.\n# Model {}, {steps} steps of batches of \
             {batch_size}, learning rate {learning_rate}, noise multiplier {noise_multiplier}, {repeats} repeats, \
             seed {seed}.\n{workload}",
            printable(data),
            ModelName::ALL.iter().find(|(name, ..)| name == model).map_or("", |(_, name, _)| name),
        ))
    }
}

/// The growth at each step by the fitted weights: the rows of a workload are scaled, and so is their sum of
/// squares, to the measured growths by least squares.
fn fitted(workload: &Workload, growths: &[Growth], steps: usize) -> Result<Vec<f64>> {
    let rows = workload.responses(steps)?;
    let squares: Vec<f64> = (0..steps).map(|step| rows.iter().map(|u| u[step].powi(2)).sum()).collect();
    let at = |growth: &Growth| squares[growth.step];
    let product: f64 = growths.iter().map(|growth| at(growth) * growth.mean).sum();
    let factor = product / growths.iter().map(|growth| at(growth).powi(2)).sum::<f64>();
    Ok(squares.iter().map(|square| factor * square).collect())
}

fn drawn(growths: &[Growth], fitted: &[f64]) -> Result<String> {
    let measured = growths.iter().map(|growth| (growth.step as f64 + 1.0, growth.mean));
    plot::file(vec![vec![
        Chart {
            title: "What training remembers of a step's noise".into(),
            x: Axis::linear("step of the noise").whole().covering(1.0),
            y: Axis::linear("growth of the final test loss").covering(0.0),
            series: vec![
                Series::new("measured", LineStyle::Points, measured),
                Series::new("fitted", LineStyle::Line, (1..).map(f64::from).zip(fitted.iter().copied())),
            ],
        }
        .into(),
    ]])
}

impl fmt::Display for Probed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Growth of the final test loss with noise at one of {} steps:\n", self.steps)?;
        let row = |(growth, fitted): (&Growth, &f64)| {
            let error = if growth.error.is_nan() { "-".into() } else { short(growth.error, 2) };
            vec![(growth.step + 1).to_string(), short(growth.mean, 3), error, short(*fitted, 3)]
        };
        let rows: Vec<Vec<String>> = self.growths.iter().zip(&self.fitted).map(row).collect();
        writeln!(f, "{}", output::table(&["step", "growth", "standard error", "fitted"], &rows))?;
        let size = |of: &dyn Fn(&Growth) -> f64| self.growths.iter().map(|g| of(g).powi(2)).sum::<f64>();
        if size(&|growth| growth.error) > 0.25 * size(&|growth| growth.mean) {
            let chance =
                "Standard errors are more than half as large as the growths: the fit is mostly chance.";
            writeln!(f, "{chance}\nUse more --repeats or a larger --noise-multiplier.\n")?;
        }
        writeln!(f, "NOT PRIVATE: a function of {}, which must be public.", self.data)?;
        match &self.out {
            Some(out) => write!(f, "Design for it: --workload learned:{}", out.display()),
            None => write!(f, "--out FILE saves the workload, for --workload learned:FILE"),
        }
    }
}
