//! `antinoise bands`: loss by number of bands, with and without amplification by sampling.

mod figure;
mod report;

use std::path::PathBuf;

use antinoise_input::InvalidParameter;
use antinoise_mechanism::design::{Objective, StrategySpec};
use antinoise_mechanism::{PrivacyUnit, Workload};
use antinoise_plan::{Length, Request, Setting, default_bands, sweep_bands, unamplified_candidates};
use clap::Args;

use crate::arguments::{LengthOptions, parsed, workload};
use crate::destination::Overwriting;
use crate::failure::Result;
use crate::numbers::{count, real};
use crate::output;
use crate::progress::Progress;
use report::{BandSweep, Target};

/// Print the noise and the loss for each number of bands, with and without amplification by sampling.
///
/// Few bands allow more amplification (one band is DP-SGD); many bands allow more correlation (examples /
/// batch size bands are the multi-epoch mechanism). Strategies are banded Toeplitz. Amplified batches are
/// block-cyclic Poisson samples; the others are cyclic batches.
#[derive(Debug, Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "Examples:
  antinoise bands --examples 2048000 --batch-size 1000 --epochs 8 \\
      --epsilon 1,4,8 --delta 1e-8 --plot bands.svg
  antinoise bands --examples 4096 --batch-size 16,64,256,1024 --steps 2048 \\
      --epsilon 1,10 --delta 1e-6 --objective max --plot batches.svg
  antinoise bands --examples 60000 --batch-size 500 --epochs 4 --epsilon 2 \\
      --delta 1e-5 --against blt:4,tree"
)]
pub struct Arguments {
    /// Number of examples.
    #[arg(long, value_name = "N", value_parser = count)]
    examples: usize,
    /// Expected number of examples in a batch; several, separated by commas, need --steps.
    #[arg(long, value_name = "B", value_parser = count, value_delimiter = ',', required = true)]
    batch_size: Vec<usize>,
    #[command(flatten)]
    length: LengthOptions,
    /// Target epsilons, separated by commas.
    #[arg(long, value_name = "E", value_delimiter = ',', required = true, value_parser = real)]
    epsilon: Vec<f64>,
    /// Target delta.
    #[arg(long, value_name = "D", value_parser = real)]
    delta: f64,
    /// Numbers of bands, separated by commas [default: powers of 2 up to examples / batch size or 4096].
    #[arg(long, value_name = "LIST", value_parser = count, value_delimiter = ',')]
    bands: Vec<usize>,
    /// Other mechanisms to compare with, without amplification, separated by commas (blt:4, tree, dense+x4).
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parsed::<StrategySpec>)]
    against: Vec<StrategySpec>,
    /// Workload, as for `antinoise loss`.
    #[arg(long, default_value = "prefix", value_parser = workload)]
    workload: Workload,
    /// Loss to minimise and compare: max or rms.
    #[arg(long, default_value = "rms", value_parser = parsed::<Objective>)]
    objective: Objective,
    /// Draw the losses to this SVG file.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    overwriting: Overwriting,
}

/// Designs a strategy for each number of bands and calibrates it for each target.
pub fn run(arguments: &Arguments) -> Result<BandSweep> {
    let plot = arguments.overwriting.figure("plot", &arguments.plot)?;
    let requests = arguments.requests()?;
    let bands = match &arguments.bands[..] {
        [] => default_bands(requests.iter().min_by_key(|request| request.batch_size).expect("one at least"))?,
        named => named.to_vec(),
    };
    let fewest = bands.iter().copied().min().unwrap_or(1);
    let largest = arguments.batch_size.iter().copied().max().unwrap_or(1);
    if fewest.saturating_mul(largest) > arguments.examples {
        let most = format!("at most examples / batch_size = {}", arguments.examples / largest);
        return Err(InvalidParameter::new("bands", fewest, most).into());
    }
    let progress = Progress::endless(&format!("designing {} numbers of bands", bands.len()));
    let mut targets = Vec::new();
    for (request, rows) in requests.iter().zip(sweep_bands(&requests, &bands)?) {
        targets.push(Target::new(request, &rows, &unamplified_candidates(request, &arguments.against)?));
    }
    drop(progress);
    output::warn_of_delta(arguments.delta, arguments.examples, PrivacyUnit::Example);
    let report = BandSweep {
        examples: arguments.examples,
        steps: requests[0].schedule()?.steps,
        delta: arguments.delta,
        objective: arguments.objective,
        targets,
    };
    if let Some(plot) = &plot {
        plot.write(report.figure()?.as_bytes())?;
    }
    Ok(report)
}

impl Arguments {
    /// A request for each batch size and epsilon, in that order.
    fn requests(&self) -> Result<Vec<Request>> {
        let length = self.length.length();
        if matches!(length, Length::Epochs(_)) && self.batch_size.len() > 1 {
            let must_be = "one number with --epochs: several batch sizes use the same strategies, so that the number of \
                           steps must be given by --steps";
            let got = self.batch_size.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
            return Err(InvalidParameter::new("batch_size", got, must_be).into());
        }
        let mut requests = Vec::new();
        for &batch_size in &self.batch_size {
            for &epsilon in &self.epsilon {
                let request = Request {
                    epsilon,
                    delta: self.delta,
                    workload: self.workload.clone(),
                    objective: self.objective,
                    ..Request::new(self.examples, batch_size, length, Setting::Poisson)
                };
                request.schedule()?;
                requests.push(request);
            }
        }
        Ok(requests)
    }
}
