//! `antinoise account`: the privacy of a noise multiplier.

use antinoise_input::{InvalidParameter, in_open_unit, positive};
use antinoise_mechanism::Adjacency;
use clap::Args;

use super::privacy::{Report, Sampling, SamplingOptions};
use crate::arguments::parsed;
use crate::failure::Result;

/// Print the privacy that a noise multiplier gives.
#[derive(Debug, Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "Examples:
  antinoise account --noise-multiplier 2.23048 --delta 1e-6
  antinoise account --noise-multiplier 1 --epsilon 3
  antinoise account --noise-multiplier 1 --delta 1e-5 --sampling-rate 0.01 --steps 1000
  antinoise account --mu 0.5 --delta 1e-5"
)]
pub struct Arguments {
    #[command(flatten)]
    noise: NoiseOptions,
    #[command(flatten)]
    point: PointOptions,
    #[command(flatten)]
    sampling: SamplingOptions,
    /// Which datasets are compared: zero-out, or replace-one for a sensitivity that was computed under it.
    #[arg(long, default_value = "zero-out", value_parser = parsed::<Adjacency>)]
    adjacency: Adjacency,
}

/// How much noise there is.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct NoiseOptions {
    /// Noise standard deviation over sensitivity.
    #[arg(long, value_name = "S")]
    noise_multiplier: Option<f64>,
    /// Gaussian differential privacy parameter, the noise multiplier's reciprocal.
    #[arg(long, value_name = "MU")]
    mu: Option<f64>,
}

/// The point of the privacy curve that is given.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct PointOptions {
    /// Print epsilon at this delta.
    #[arg(long, value_name = "D")]
    delta: Option<f64>,
    /// Print delta at this epsilon.
    #[arg(long, value_name = "E")]
    epsilon: Option<f64>,
}

/// Accounts.
pub fn run(arguments: &Arguments) -> Result<Report> {
    let sampling = arguments.sampling.read(arguments.adjacency)?;
    let noise_multiplier = match (arguments.noise.noise_multiplier, arguments.noise.mu) {
        (Some(sigma), _) => positive("noise_multiplier", sigma)?,
        (None, mu) => {
            let mu = positive("mu", mu.unwrap_or(f64::NAN))?;
            if sampling != Sampling::None {
                let must_be = "left out: give --noise-multiplier with --sampling-rate";
                return Err(InvalidParameter::new("mu", mu, must_be).into());
            }
            1.0 / mu
        }
    };
    match (arguments.point.epsilon, arguments.point.delta) {
        (Some(epsilon), _) => Report::at_epsilon(noise_multiplier, epsilon, sampling, arguments.adjacency),
        (None, delta) => {
            let delta = in_open_unit("delta", delta.unwrap_or(f64::NAN))?;
            Report::at_delta(noise_multiplier, delta, sampling, arguments.adjacency)
        }
    }
}
