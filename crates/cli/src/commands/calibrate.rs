//! `antinoise calibrate`: the noise multiplier that a privacy target needs.

use antinoise_accounting::{calibrate, noise_multiplier_for};
use antinoise_input::{in_open_unit, positive};
use antinoise_mechanism::Adjacency;
use clap::Args;

use super::privacy::{Report, Sampling, SamplingOptions};
use crate::arguments::parsed;
use crate::failure::Result;

/// Print the least noise multiplier that meets a privacy target.
#[derive(Debug, Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "Examples:
  antinoise calibrate --epsilon 2 --delta 1e-6
  antinoise calibrate --epsilon 2 --delta 1e-6 --sampling-rate 0.01 --steps 1000"
)]
pub struct Arguments {
    /// Target epsilon.
    #[arg(long, value_name = "E")]
    epsilon: f64,
    /// Target delta.
    #[arg(long, value_name = "D")]
    delta: f64,
    #[command(flatten)]
    sampling: SamplingOptions,
    /// Which datasets are compared: zero-out, or replace-one for a sensitivity that was computed under it.
    #[arg(long, default_value = "zero-out", value_parser = parsed::<Adjacency>)]
    adjacency: Adjacency,
}

/// Calibrates.
pub fn run(arguments: &Arguments) -> Result<Report> {
    let epsilon = positive("epsilon", arguments.epsilon)?;
    let delta = in_open_unit("delta", arguments.delta)?;
    let sampling = arguments.sampling.read(arguments.adjacency)?;
    let sigma = match sampling {
        Sampling::None => noise_multiplier_for(epsilon, delta)?,
        Sampling::Poisson { rate, steps } => calibrate::noise_multiplier(rate, steps, epsilon, delta)?,
    };
    Report::at_delta(sigma, delta, sampling, arguments.adjacency)
}
