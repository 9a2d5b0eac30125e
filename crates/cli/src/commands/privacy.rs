//! What `account` and `calibrate` print.

use std::fmt;

use antinoise_accounting::Gdp;
use serde::Serialize;

use crate::failure::Result;

/// A privacy guarantee in every currency.
#[derive(Debug, Serialize)]
pub struct Report {
    epsilon: f64,
    epsilon_lower: f64,
    delta: f64,
    noise_multiplier: f64,
    mu: f64,
    rho: f64,
    adjacency: String,
    accountant: &'static str,
}

impl Report {
    /// The guarantee of one Gaussian mechanism at this delta.
    pub fn of_gdp(gdp: Gdp, noise_multiplier: f64, delta: f64, adjacency: String) -> Result<Self> {
        Ok(Self {
            epsilon: gdp.epsilon_upper(delta)?,
            epsilon_lower: gdp.epsilon_lower(delta)?,
            delta,
            noise_multiplier,
            mu: gdp.mu(),
            rho: gdp.rho(),
            adjacency,
            accountant: "gdp",
        })
    }

    /// The guarantee at this epsilon.
    pub fn at_epsilon(gdp: Gdp, noise_multiplier: f64, epsilon: f64, adjacency: String) -> Result<Self> {
        Ok(Self {
            epsilon,
            epsilon_lower: epsilon,
            delta: gdp.delta_upper(epsilon)?,
            noise_multiplier,
            mu: gdp.mu(),
            rho: gdp.rho(),
            adjacency,
            accountant: "gdp",
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "epsilon           {:.10} (at least {:.10})", self.epsilon, self.epsilon_lower)?;
        writeln!(f, "delta             {:e}", self.delta)?;
        writeln!(f, "noise multiplier  {:.10}", self.noise_multiplier)?;
        writeln!(f, "mu (GDP)          {:.10}", self.mu)?;
        writeln!(f, "rho (zCDP)        {:.10}", self.rho)?;
        writeln!(f, "adjacency         {}", self.adjacency)?;
        writeln!(f, "accountant        {}", self.accountant)
    }
}
