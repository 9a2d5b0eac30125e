//! `antinoise calibrate`: the noise multiplier that a privacy target needs.

use antinoise_accounting::{Gdp, noise_multiplier_for};
use antinoise_mechanism::Adjacency;
use clap::Args;

use super::privacy::Report;
use crate::arguments::parsed;
use crate::failure::Result;

/// Print the least noise multiplier that meets a privacy target.
#[derive(Debug, Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "Example:
  antinoise calibrate --epsilon 2 --delta 1e-6"
)]
pub struct Arguments {
    /// Target epsilon.
    #[arg(long, value_name = "E")]
    epsilon: f64,
    /// Target delta.
    #[arg(long, value_name = "D")]
    delta: f64,
    /// Which datasets are compared: zero-out, or replace-one for a sensitivity that was computed under it.
    #[arg(long, default_value = "zero-out", value_parser = parsed::<Adjacency>)]
    adjacency: Adjacency,
}

/// Calibrates.
pub fn run(arguments: &Arguments) -> Result<Report> {
    antinoise_input::positive("epsilon", arguments.epsilon)?;
    let delta = antinoise_input::in_open_unit("delta", arguments.delta)?;
    let sigma = noise_multiplier_for(arguments.epsilon, delta)?;
    Report::of_gdp(Gdp::from_noise_multiplier(sigma)?, sigma, delta, arguments.adjacency.to_string())
}
