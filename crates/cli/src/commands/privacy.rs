//! Output of `account` and `calibrate`: a privacy guarantee.

use std::fmt;

use antinoise_accounting::{Bounds, Gdp, Sampling, three_digits_up};
use antinoise_input::{short_down, short_up};
use antinoise_mechanism::Adjacency;
use antinoise_plan::{Plan, Sampler, neighbours};
use serde::Serialize;

use super::observed::Observed;
use super::simulated::SimulatedPoint;
use crate::failure::Result;

/// A privacy guarantee as (epsilon, delta), mu and rho, and its mechanism.
#[derive(Debug, Serialize)]
pub struct PrivacyFigures {
    epsilon: f64,
    epsilon_lower: f64,
    delta: f64,
    noise_multiplier: f64,
    /// mu of all steps together; null under amplification by sampling, which has no exact mu.
    mu: Option<f64>,
    rho: Option<f64>,
    sampling_rate: Option<f64>,
    steps: Option<usize>,
    bands: Option<usize>,
    /// The size at which batches are cut.
    max_batch_size: Option<usize>,
    /// The size of all batches, which are drawn from `examples` examples without replacement.
    fixed_batch_size: Option<usize>,
    examples: Option<usize>,
    /// Number of steps in each of which an example takes part once, by random allocation.
    random_allocation: Option<usize>,
    /// Probability that the figures of a statistical accountant do not hold.
    failure: Option<f64>,
    /// Number of bins for balls in bins, with `strategy`.
    bins: Option<usize>,
    /// Minimum separation for b-min-sep sampling, with `strategy`.
    min_sep: Option<usize>,
    strategy: Option<String>,
    group_size: u64,
    adjacency: String,
    accountant: &'static str,
    /// Participation recorded by a ledger, for which the figures hold.
    observed: Option<Observed>,
}

impl PrivacyFigures {
    /// The delta that is stated.
    pub fn delta(&self) -> f64 {
        self.delta
    }

    /// The figures, marked as those of the participation `observed`.
    #[cfg(feature = "ledger")]
    pub fn of_observed(self, observed: Observed) -> Self {
        Self { observed: Some(observed), ..self }
    }

    /// Epsilon at this delta for a group of `size` units.
    pub fn at_delta(
        sigma: f64,
        delta: f64,
        size: u64,
        sampling: Sampling,
        adjacency: Adjacency,
    ) -> Result<Self> {
        let epsilon = sampling.epsilon(sigma, delta, size, neighbours(adjacency))?;
        let report = Self::new(epsilon, delta, sigma, sampling, adjacency)?;
        let group = (sampling == Sampling::None)
            .then(|| Gdp::from_noise_multiplier_upper(sigma)?.group_upper(size))
            .transpose()?;
        Ok(Self { group_size: size, mu: group.map(Gdp::mu), rho: group.map(Gdp::rho_upper), ..report })
    }

    /// Delta at this epsilon.
    pub fn at_epsilon(sigma: f64, epsilon: f64, sampling: Sampling, adjacency: Adjacency) -> Result<Self> {
        let neighbours = neighbours(adjacency);
        let delta = sampling.delta(sigma, epsilon, neighbours)?.upper;
        // Delta is rounded up, so that the smallest epsilon for it may be below the given one.
        let lower = match delta > 0.0 && delta < 1.0 {
            true => sampling.epsilon(sigma, delta, 1, neighbours)?.lower.min(epsilon),
            false => 0.0,
        };
        Self::new(Bounds { lower, upper: epsilon }, delta, sigma, sampling, adjacency)
    }

    /// A point of the privacy curve by the statistical accountant of the sampler, or without amplification
    /// where that has no failure.
    pub fn simulated(
        sigma: f64,
        SimulatedPoint { epsilon, delta, failure }: SimulatedPoint,
        (sampler, steps, strategy): (Sampler, usize, String),
    ) -> Result<Self> {
        let report = Self::new(epsilon, delta, sigma, Sampling::None, Adjacency::ZeroOut)?;
        let spacing = |is_exact: bool| {
            sampler.spacing().filter(|spacing| spacing.is_exact == is_exact).map(|spacing| spacing.steps)
        };
        Ok(Self {
            mu: None,
            rho: None,
            steps: Some(steps),
            failure,
            bins: spacing(true),
            min_sep: spacing(false),
            strategy: Some(strategy),
            adjacency: "add-or-remove".into(),
            accountant: if failure.is_some() { sampler.name() } else { report.accountant },
            ..report
        })
    }

    /// The figures, marked as those of a group of `size` units.
    pub fn for_group(self, size: u64) -> Self {
        Self { group_size: size, ..self }
    }

    /// The figures, with the adjacency of the plan.
    pub fn of_plan(self, plan: &Plan) -> Self {
        Self { adjacency: plan.privacy.adjacency.to_string(), ..self }
    }

    fn new(
        epsilon: Bounds,
        delta: f64,
        sigma: f64,
        sampling: Sampling,
        adjacency: Adjacency,
    ) -> Result<Self> {
        let gdp =
            (sampling == Sampling::None).then(|| Gdp::from_noise_multiplier_upper(sigma)).transpose()?;
        let (mut poisson, mut max_batch, mut fixed, mut allocated) = (None, None, None, None);
        let steps = match sampling {
            Sampling::None => None,
            Sampling::Poisson { batches, max_batch: most } => {
                (poisson, max_batch) = (Some(batches), most);
                Some(batches.steps)
            }
            Sampling::FixedSize(batches) => {
                fixed = Some(batches);
                Some(batches.steps)
            }
            Sampling::RandomAllocation { epoch_steps, epochs } => {
                allocated = Some(epoch_steps);
                Some(epoch_steps * epochs)
            }
        };
        let bands = poisson.map(|batches| batches.bands);
        let holds_without_example = bands == Some(1) || allocated.is_some();
        Ok(Self {
            epsilon: epsilon.upper,
            epsilon_lower: epsilon.lower,
            delta,
            noise_multiplier: sigma,
            mu: gdp.map(Gdp::mu),
            rho: gdp.map(Gdp::rho_upper),
            sampling_rate: poisson.map(|batches| batches.batch_size / batches.examples as f64),
            steps,
            bands,
            max_batch_size: max_batch.map(|most| most.size),
            fixed_batch_size: fixed.map(|batches| batches.batch_size),
            examples: fixed.map(|batches| batches.examples),
            random_allocation: allocated,
            failure: None,
            bins: None,
            min_sep: None,
            strategy: None,
            group_size: 1,
            // With several bands, examples are assigned to groups, and the assignment must not depend on
            // which examples are present: zero-out, not add-or-remove.
            adjacency: if holds_without_example && adjacency == Adjacency::ZeroOut {
                "add-or-remove".into()
            } else {
                adjacency.to_string()
            },
            accountant: if gdp.is_some() { "gdp" } else { "pld" },
            observed: None,
        })
    }
}

impl fmt::Display for PrivacyFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_of_this_accountant = self.bands.is_some_and(|bands| bands > 1) || self.strategy.is_some();
        let of = if is_of_this_accountant { "this accountant: " } else { "" };
        writeln!(
            f,
            "epsilon           {} ({of}not below {})",
            short_up(self.epsilon, 10),
            short_down(self.epsilon_lower, 10)
        )?;
        writeln!(f, "delta             {}", short_up(self.delta, 6))?;
        writeln!(f, "noise multiplier  {}", self.noise_multiplier)?;
        if let (Some(mu), Some(rho)) = (self.mu, self.rho) {
            writeln!(f, "mu (GDP)          {}", short_up(mu, 10))?;
            writeln!(f, "rho (zCDP)        {}", short_up(rho, 10))?;
        }
        if let (Some(rate), Some(steps)) = (self.sampling_rate, self.steps) {
            writeln!(f, "sampling          Poisson at rate {rate}, {steps} steps")?;
        }
        if let (Some(size), Some(examples), Some(steps)) = (self.fixed_batch_size, self.examples, self.steps)
        {
            writeln!(
                f,
                "sampling          {size} of {examples} examples without replacement, {steps} steps"
            )?;
        }
        if let (Some(epoch), Some(steps)) = (self.random_allocation, self.steps) {
            writeln!(f, "sampling          one step in every {epoch} by random allocation, {steps} steps")?;
        }
        if let Some(bands) = self.bands.filter(|&bands| bands > 1) {
            writeln!(
                f,
                "bands             {bands}, block-cyclic, at {bands} times that rate in a group's turn"
            )?;
        }
        if let Some(size) = self.max_batch_size {
            writeln!(f, "maximum batch     {size}, at which batches are cut; delta includes the cost")?;
        }
        if let (Some(steps), Some(strategy)) = (self.steps, &self.strategy) {
            if let Some(bins) = self.bins {
                writeln!(f, "sampling          {bins} bins, {steps} steps")?;
            }
            if let Some(min_sep) = self.min_sep {
                writeln!(f, "sampling          turns at least {min_sep} apart, {steps} steps")?;
            }
            writeln!(f, "strategy          {strategy}")?;
        }
        if self.group_size > 1 {
            writeln!(f, "unit              a group of {}", self.group_size)?;
        }
        if let Some(failure) = self.failure {
            writeln!(
                f,
                "by sampling       wrong with probability {} at most; delta includes this probability",
                three_digits_up(failure)
            )?;
        }
        writeln!(f, "adjacency         {}", self.adjacency)?;
        writeln!(f, "accountant        {}", self.accountant)?;
        self.observed.as_ref().map_or(Ok(()), |observed| observed.fmt(f))
    }
}
