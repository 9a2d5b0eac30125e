//! What `account` and `calibrate` share: sampling, and what they print.

use std::fmt;

use antinoise_accounting::{Bracket, Composition, Gdp, SampledGaussian};
use antinoise_input::{InvalidParameter, at_least};
use antinoise_mechanism::Adjacency;
use clap::Args;
use serde::Serialize;

use crate::arguments::count;
use crate::failure::Result;

/// Poisson sampling, which amplifies.
#[derive(Debug, Args)]
pub struct SamplingOptions {
    /// Probability that an example joins a step's batch, on its own (Poisson); needs --steps.
    #[arg(long, value_name = "Q", requires = "steps")]
    sampling_rate: Option<f64>,
    /// Steps that are sampled; needs --sampling-rate.
    #[arg(long, value_name = "N", value_parser = count, requires = "sampling_rate")]
    steps: Option<usize>,
}

/// How examples come to a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sampling {
    /// No amplification: one Gaussian mechanism.
    None,
    /// `steps` steps, each on a Poisson sample.
    Poisson { rate: f64, steps: u64 },
}

impl SamplingOptions {
    /// The sampling, under an adjacency for which amplification is a theorem.
    pub fn read(&self, adjacency: Adjacency) -> Result<Sampling> {
        let (Some(rate), Some(steps)) = (self.sampling_rate, self.steps) else {
            return Ok(Sampling::None);
        };
        at_least("steps", steps, 1)?;
        if !(rate > 0.0 && rate <= 1.0) {
            return Err(
                InvalidParameter::new("sampling_rate", format!("{rate:?}"), "above 0 and at most 1").into()
            );
        }
        if adjacency == Adjacency::ReplaceOne {
            let must_be = "zero-out with --sampling-rate: amplification is accounted for examples that are there or not";
            return Err(InvalidParameter::new("adjacency", adjacency, must_be).into());
        }
        Ok(Sampling::Poisson { rate, steps: steps as u64 })
    }
}

/// A privacy guarantee in every currency.
#[derive(Debug, Serialize)]
pub struct Report {
    epsilon: f64,
    epsilon_lower: f64,
    delta: f64,
    noise_multiplier: f64,
    /// Of the whole without sampling; null where sampling amplifies, which has no exact mu.
    mu: Option<f64>,
    rho: Option<f64>,
    sampling_rate: Option<f64>,
    steps: Option<u64>,
    adjacency: String,
    accountant: &'static str,
}

impl Report {
    /// Epsilon at this delta.
    pub fn at_delta(sigma: f64, delta: f64, sampling: Sampling, adjacency: Adjacency) -> Result<Self> {
        let epsilon = match sampling {
            Sampling::None => {
                let gdp = Gdp::from_noise_multiplier(sigma)?;
                Bracket { lower: gdp.epsilon_lower(delta)?, upper: gdp.epsilon_upper(delta)? }
            }
            Sampling::Poisson { rate, steps } => composition(sigma, rate, steps)?.epsilon(delta)?,
        };
        Self::new(epsilon, delta, sigma, sampling, adjacency)
    }

    /// Delta at this epsilon.
    pub fn at_epsilon(sigma: f64, epsilon: f64, sampling: Sampling, adjacency: Adjacency) -> Result<Self> {
        let delta = match sampling {
            Sampling::None => Gdp::from_noise_multiplier(sigma)?.delta_upper(epsilon)?,
            Sampling::Poisson { rate, steps } => composition(sigma, rate, steps)?.delta(epsilon)?.upper,
        };
        Self::new(Bracket { lower: epsilon, upper: epsilon }, delta, sigma, sampling, adjacency)
    }

    fn new(
        epsilon: Bracket,
        delta: f64,
        sigma: f64,
        sampling: Sampling,
        adjacency: Adjacency,
    ) -> Result<Self> {
        let (gdp, rate, steps) = match sampling {
            Sampling::None => (Some(Gdp::from_noise_multiplier(sigma)?), None, None),
            Sampling::Poisson { rate, steps } => (None, Some(rate), Some(steps)),
        };
        Ok(Self {
            epsilon: epsilon.upper,
            epsilon_lower: epsilon.lower,
            delta,
            noise_multiplier: sigma,
            mu: gdp.map(Gdp::mu),
            rho: gdp.map(Gdp::rho),
            sampling_rate: rate,
            steps,
            adjacency: if gdp.is_some() { adjacency.to_string() } else { "add-or-remove".into() },
            accountant: if gdp.is_some() { "gdp" } else { "pld" },
        })
    }
}

fn composition(sigma: f64, rate: f64, steps: u64) -> Result<Composition> {
    Ok(Composition::new([SampledGaussian::new(sigma, rate, steps)?])?)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "epsilon           {:.10} (at least {:.10})", self.epsilon, self.epsilon_lower)?;
        writeln!(f, "delta             {:e}", self.delta)?;
        writeln!(f, "noise multiplier  {:.10}", self.noise_multiplier)?;
        if let (Some(mu), Some(rho)) = (self.mu, self.rho) {
            writeln!(f, "mu (GDP)          {mu:.10}")?;
            writeln!(f, "rho (zCDP)        {rho:.10}")?;
        }
        if let (Some(rate), Some(steps)) = (self.sampling_rate, self.steps) {
            writeln!(f, "sampling          Poisson at rate {rate}, {steps} steps")?;
        }
        writeln!(f, "adjacency         {}", self.adjacency)?;
        writeln!(f, "accountant        {}", self.accountant)
    }
}
