//! `antinoise account`: the privacy of a noise multiplier.

use antinoise_accounting::Gdp;
use antinoise_mechanism::Adjacency;
use clap::Args;

use super::privacy::Report;
use crate::arguments::parsed;
use crate::failure::Result;

/// Print the privacy that a noise multiplier gives.
#[derive(Debug, Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "Examples:
  antinoise account --noise-multiplier 2.23048 --delta 1e-6
  antinoise account --noise-multiplier 1 --epsilon 3
  antinoise account --mu 0.5 --delta 1e-5"
)]
pub struct Arguments {
    #[command(flatten)]
    noise: NoiseOptions,
    #[command(flatten)]
    point: PointOptions,
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
    let (gdp, noise_multiplier) = match (arguments.noise.noise_multiplier, arguments.noise.mu) {
        (Some(sigma), _) => (Gdp::from_noise_multiplier(sigma)?, sigma),
        (None, mu) => {
            let mu = antinoise_input::positive("mu", mu.unwrap_or(f64::NAN))?;
            (Gdp::new(mu)?, 1.0 / mu)
        }
    };
    let adjacency = arguments.adjacency.to_string();
    match (arguments.point.epsilon, arguments.point.delta) {
        (Some(epsilon), _) => Report::at_epsilon(gdp, noise_multiplier, epsilon, adjacency),
        (None, delta) => {
            let delta = antinoise_input::in_open_unit("delta", delta.unwrap_or(f64::NAN))?;
            Report::of_gdp(gdp, noise_multiplier, delta, adjacency)
        }
    }
}
