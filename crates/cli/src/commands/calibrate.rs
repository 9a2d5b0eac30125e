//! `antinoise calibrate`: the noise multiplier, the steps or the sampling rate that a privacy target needs.

use antinoise_accounting::{Sampling, calibrate};
use antinoise_input::{InvalidParameter, at_least, in_open_unit, positive};
use antinoise_mechanism::Adjacency;
use antinoise_plan::neighbours;
use clap::Args;

use super::privacy::PrivacyFigures;
use super::sampling::{SamplingOptions, checked_rate, poisson, refuse_replace_one};
use crate::arguments::parsed;
use crate::failure::Result;
use crate::numbers::real;

/// Print the smallest noise multiplier that meets a privacy target, or the largest number of steps or
/// sampling rate.
#[derive(Debug, Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "Examples:
  antinoise calibrate --epsilon 2 --delta 1e-6
  antinoise calibrate --epsilon 2 --delta 1e-6 --sampling-rate 0.01 \\
      --steps 1000
  antinoise calibrate --epsilon 2 --delta 1e-6 --sampling-rate 0.01 \\
      --steps 1000 --bands 8
  antinoise calibrate --epsilon 2 --delta 1e-6 --sampling-rate 0.01 \\
      --steps 1000 --adjacency replace-one
  antinoise calibrate --epsilon 2 --delta 1e-6 --steps 1000 \\
      --fixed-batch-size 500 --examples 50k
  antinoise calibrate --epsilon 2 --delta 1e-6 --steps 1000 \\
      --random-allocation 100
  antinoise calibrate --epsilon 2 --delta 1e-6 --noise-multiplier 1 \\
      --sampling-rate 0.01
  antinoise calibrate --epsilon 2 --delta 1e-6 --noise-multiplier 1 \\
      --steps 1000"
)]
pub struct Arguments {
    /// Target epsilon.
    #[arg(long, value_name = "E", value_parser = real)]
    epsilon: f64,
    /// Target delta.
    #[arg(long, value_name = "D", value_parser = real)]
    delta: f64,
    /// Instead, find the largest number of steps for this noise and --sampling-rate, or the highest sampling
    /// rate for this noise and --steps.
    #[arg(long, value_name = "S", value_parser = real)]
    noise_multiplier: Option<f64>,
    #[command(flatten)]
    sampling: SamplingOptions,
    /// How neighbouring data sets differ: zero-out, or replace-one if the sensitivity was computed under
    /// replace-one, where it is twice as large.
    #[arg(long, default_value = "zero-out", value_parser = parsed::<Adjacency>)]
    adjacency: Adjacency,
}

/// Finds the missing one of noise multiplier, steps and sampling rate.
pub fn run(arguments: &Arguments) -> Result<PrivacyFigures> {
    let epsilon = positive("epsilon", arguments.epsilon)?;
    let delta = in_open_unit("delta", arguments.delta)?;
    let (sigma, sampling) = match arguments.noise_multiplier {
        Some(sigma) => (positive("noise_multiplier", sigma)?, arguments.missing(sigma)?),
        None => {
            let sampling = arguments.sampling.read()?;
            (sampling.noise_multiplier_upper(epsilon, delta, neighbours(arguments.adjacency))?, sampling)
        }
    };
    PrivacyFigures::at_delta(sigma, delta, 1, sampling, arguments.adjacency)
}

impl Arguments {
    /// The sampling; of the number of steps and the sampling rate, the one that is not given is computed.
    fn missing(&self, sigma: f64) -> Result<Sampling> {
        refuse_replace_one(self.adjacency, "under which steps and sampling rates are searched for")?;
        let SamplingOptions { bands, max_batch_size, fixed_batch_size, random_allocation, .. } =
            self.sampling;
        let without = [
            ("bands", bands),
            ("max_batch_size", max_batch_size),
            ("fixed_batch_size", fixed_batch_size),
            ("random_allocation", random_allocation),
        ];
        if let Some((name, got)) = without.into_iter().find_map(|(name, got)| Some((name, got?))) {
            return Err(InvalidParameter::new(name, got, "left out with --noise-multiplier").into());
        }
        let (epsilon, delta) = (self.epsilon, self.delta);
        let (rate, steps) = match (self.sampling.sampling_rate, self.sampling.steps) {
            (Some(rate), None) => {
                let rate = checked_rate(rate)?;
                (rate, calibrate::steps_lower(sigma, rate, epsilon, delta)? as usize)
            }
            (None, Some(steps)) => {
                at_least("steps", steps, 1)?;
                (calibrate::sampling_rate_lower(sigma, steps as u64, epsilon, delta)?, steps)
            }
            _ => {
                let must_be = "left out, or given with either --sampling-rate or --steps to find the other";
                return Err(InvalidParameter::new("noise_multiplier", sigma, must_be).into());
            }
        };
        Ok(Sampling::Poisson { batches: poisson(rate, steps, 1), max_batch: None })
    }
}
