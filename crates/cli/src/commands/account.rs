//! `antinoise account`: the privacy of a noise multiplier.

use std::path::{Path, PathBuf};

use antinoise_accounting::{BlockCyclicPoisson, Bounds, Gdp, MaxBatch, MonteCarloMechanism, Sampling};
use antinoise_input::{InvalidParameter, at_least, between, in_open_unit, largest, positive};
#[cfg(feature = "ledger")]
use antinoise_ledger::Ledger;
use antinoise_mechanism::design::{Objective, StrategySpec};
use antinoise_mechanism::{Adjacency, Class, Participation, Problem, Workload};
use antinoise_plan::{Privacy, Sampler, VerifiedPlan};
use clap::Args;

#[cfg(feature = "ledger")]
use super::observed::Observed;
use super::privacy::PrivacyFigures;
use super::sampling::{SamplingOptions, refuse_replace_one};
use super::simulated::{Simulated, SimulatedPoint};
use crate::arguments::parsed;
use crate::failure::Result;
use crate::numbers::{count, real};
use crate::output;
use crate::source::load_plan;

/// Print the privacy that a noise multiplier gives.
#[derive(Debug, Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "Examples:
  antinoise account --noise-multiplier 2.23048 --delta 1e-6
  antinoise account --noise-multiplier 1 --epsilon 3
  antinoise account --noise-multiplier 1 --delta 1e-5 --sampling-rate 0.01 \\
      --steps 1000
  antinoise account --noise-multiplier 1 --delta 1e-5 --sampling-rate 0.01 \\
      --steps 1000 --bands 8
  antinoise account --noise-multiplier 1 --delta 1e-5 --sampling-rate 0.01 \\
      --steps 1000 --examples 50k --max-batch-size 620
  antinoise account --noise-multiplier 1 --delta 1e-5 --steps 1000 \\
      --fixed-batch-size 500 --examples 50k
  antinoise account --noise-multiplier 1 --delta 1e-5 --steps 1000 \\
      --random-allocation 100
  antinoise account --noise-multiplier 4 --delta 1e-5 --group-size 3
  antinoise account --noise-multiplier 1 --delta 1e-5 --sampling-rate 0.01 \\
      --steps 1000 --group-size 3
  antinoise account --noise-multiplier 4 --delta 1e-5 --balls-in-bins 8 \\
      --steps 32 --strategy blt:2
  antinoise account --mu 0.5 --delta 1e-5
  antinoise plan --examples 60k --batch-size 500 --epochs 4 --epsilon 4 \\
      --delta 1e-5 --setting poisson --out plan.toml
  antinoise account --plan plan.toml --delta 1e-6

--plan federated.toml --observed ledger.db is for the plan and the ledger of a federated run."
)]
pub struct Arguments {
    #[command(flatten)]
    noise: NoiseOptions,
    #[command(flatten)]
    point: PointOptions,
    #[command(flatten)]
    sampling: SamplingOptions,
    /// Group privacy: the number of units that are protected together, for example the examples of one user.
    /// Under Poisson sampling without bands the figures of up to 64 units are exact.
    #[arg(long, value_name = "K", value_parser = count, conflicts_with = "epsilon")]
    group_size: Option<usize>,
    /// With --plan of a federated setting: account for the participation recorded in the run's ledger, over
    /// the finished steps. The result holds after the fact, if nobody's data influenced who took part.
    #[arg(long, value_name = "LEDGER", requires = "plan", conflicts_with_all = ["noise_multiplier", "mu"])]
    observed: Option<PathBuf>,
    #[command(flatten)]
    bins: BinsOptions,
    /// How neighbouring data sets differ: zero-out, or replace-one if the sensitivity was computed under
    /// replace-one, where it is twice as large. Under zero-out, figures that also hold under add-or-remove
    /// are printed as such: those of Poisson sampling without bands, of random allocation, and of balls in
    /// bins.
    #[arg(long, default_value = "zero-out", value_parser = parsed::<Adjacency>)]
    adjacency: Adjacency,
}

/// Amount of noise.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct NoiseOptions {
    /// Noise multiplier: the standard deviation of the noise divided by the sensitivity.
    #[arg(long, value_name = "S", value_parser = real)]
    noise_multiplier: Option<f64>,
    /// Parameter of Gaussian differential privacy: 1 / noise multiplier.
    #[arg(long, value_name = "MU", value_parser = real)]
    mu: Option<f64>,
    /// Use noise, sampling and adjacency of this plan, made by `antinoise plan --out`, at its delta, or
    /// at --delta or --epsilon.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["sampling_rate", "steps", "bands", "max_batch_size", "fixed_batch_size", "random_allocation", "examples", "balls_in_bins", "strategy", "adjacency"])]
    plan: Option<PathBuf>,
}

/// Given point of the privacy curve: delta or epsilon.
#[derive(Debug, Args)]
#[group(multiple = false)]
struct PointOptions {
    /// Print epsilon at this delta.
    #[arg(long, value_name = "D", value_parser = real, required_unless_present_any = ["epsilon", "plan"])]
    delta: Option<f64>,
    /// Print delta at this epsilon.
    #[arg(long, value_name = "E", value_parser = real)]
    epsilon: Option<f64>,
}

/// Computes the privacy, by plan or by noise multiplier.
pub fn run(arguments: &Arguments) -> Result<PrivacyFigures> {
    let Arguments { adjacency, point, .. } = arguments;
    if let Some(path) = &arguments.noise.plan {
        let plan = load_plan(path)?;
        return match &arguments.observed {
            None => arguments.plan(&plan),
            Some(ledger) => arguments.observed(&plan, ledger),
        };
    }
    if let Some(bins) = arguments.bins.balls_in_bins {
        return arguments.bins(bins);
    }
    let sampling = arguments.sampling.read()?;
    let sigma = arguments.noise.read(sampling == Sampling::None)?;
    arguments.at(sigma, point.delta, sampling, *adjacency)
}

impl NoiseOptions {
    /// Noise multiplier sigma. `--mu` is refused with sampling, whose privacy depends on more than mu.
    fn read(&self, takes_mu: bool) -> Result<f64> {
        match (self.noise_multiplier, self.mu) {
            (Some(sigma), _) => Ok(positive("noise_multiplier", sigma)?),
            (None, mu) => {
                let mu = positive("mu", mu.unwrap_or(f64::NAN))?;
                if takes_mu {
                    return Ok(1.0 / mu);
                }
                let must_be = "left out: give --noise-multiplier where sampling amplifies";
                Err(InvalidParameter::new("mu", mu, must_be).into())
            }
        }
    }
}

impl PointOptions {
    fn delta(&self) -> Result<f64> {
        Ok(in_open_unit("delta", self.delta.unwrap_or(f64::NAN))?)
    }
}

/// Balls-in-bins sampling of any non-negative correlated noise.
#[derive(Debug, Args)]
struct BinsOptions {
    /// Assign every example at random to one of this many bins, which are used as batches in cyclic order.
    /// Epsilon is estimated by Monte Carlo. The noise multiplier is the standard deviation of the noise
    /// divided by the largest column norm of C.
    #[arg(long, value_name = "BINS", value_parser = count, requires_all = ["steps", "strategy"], conflicts_with_all = ["sampling_rate", "fixed_batch_size", "random_allocation", "examples", "group_size", "epsilon"])]
    balls_in_bins: Option<usize>,
    /// The mechanism, optimised for prefix sums under cyclic batches (blt:4, toeplitz, banded-toeplitz:16).
    #[arg(long, value_name = "STRATEGY", value_parser = parsed::<StrategySpec>, requires = "balls_in_bins")]
    strategy: Option<StrategySpec>,
}

impl Arguments {
    /// Report at --epsilon if it is given, else at `delta`.
    fn at(
        &self,
        sigma: f64,
        delta: Option<f64>,
        sampling: Sampling,
        adjacency: Adjacency,
    ) -> Result<PrivacyFigures> {
        if let Some(epsilon) = self.point.epsilon {
            return PrivacyFigures::at_epsilon(sigma, epsilon, sampling, adjacency);
        }
        let delta = in_open_unit("delta", delta.unwrap_or(f64::NAN))?;
        let size = at_least("group_size", self.group_size.unwrap_or(1), 1)?;
        PrivacyFigures::at_delta(sigma, delta, size as u64, sampling, adjacency)
    }

    /// Report for the noise, sampling and adjacency of a plan.
    fn plan(&self, plan: &VerifiedPlan) -> Result<PrivacyFigures> {
        if let Some(mechanism) = plan.monte_carlo()? {
            return self.simulated_plan(plan, &mechanism);
        }
        let sampling = match plan.dp_sgd_groups() {
            Some(groups) => {
                let (batch_size, examples) = (plan.batch_size as f64, plan.examples);
                let batches = BlockCyclicPoisson { bands: groups, steps: plan.steps, batch_size, examples };
                let max_batch = plan.sampler.max_batch_size().map(|size| MaxBatch { size, examples });
                Sampling::Poisson { batches, max_batch }
            }
            None => Sampling::None,
        };
        let delta = self.point.delta.or(Some(plan.privacy.delta));
        let report = self.at(plan.noise_multiplier, delta, sampling, plan.privacy.adjacency)?;
        output::warn_of_delta(report.delta(), plan.examples, plan.privacy.unit);
        Ok(report.of_plan(plan))
    }

    /// Report for a plan with a Monte Carlo accountant: its own claim at its own delta or epsilon. Elsewhere,
    /// the curve that verified the claim, a new simulation where the curve ends, or the bound without
    /// amplification, if it is smaller; a group has this bound alone.
    fn simulated_plan(&self, plan: &VerifiedPlan, mechanism: &MonteCarloMechanism) -> Result<PrivacyFigures> {
        let Privacy { epsilon, epsilon_lower, delta, failure, .. } = plan.privacy;
        let claim =
            SimulatedPoint { epsilon: Bounds { lower: epsilon_lower, upper: epsilon }, delta, failure };
        let unsampled = Gdp::from_noise_multiplier_upper(plan.noise_multiplier)?;
        let simulated = Simulated { mechanism, verified: plan.curve(), failure: failure.unwrap_or(0.0) };
        let size = self.group_size.unwrap_or(1);
        at_least("group_size", size, 1)?;
        let point = match (self.point.epsilon, in_open_unit("delta", self.point.delta.unwrap_or(delta))?) {
            (Some(at), _) if at == epsilon => claim,
            (Some(at), _) => simulated.delta(at)?.or_delta(unsampled.delta_upper(at)?),
            (None, at) if size > 1 => SimulatedPoint::of_epsilon(
                at,
                Bounds {
                    lower: plan.curve().map_or(0.0, |curve| curve.epsilon(at).lower),
                    upper: unsampled.group_upper(size as u64)?.epsilon_upper(at)?,
                },
            ),
            (None, at) if at == delta => claim,
            (None, at) => simulated.epsilon(at)?.or_epsilon(unsampled.epsilon_upper(at)?),
        };
        let of = (plan.sampler, plan.steps, plan.strategy.class().name().to_string());
        let figures = PrivacyFigures::simulated(plan.noise_multiplier, point, of)?.of_plan(plan);
        Ok(figures.for_group(size as u64))
    }

    /// Refuses a ledger, since this program was built without them.
    #[cfg(not(feature = "ledger"))]
    fn observed(&self, _: &VerifiedPlan, ledger: &Path) -> Result<PrivacyFigures> {
        let must_be = "left out: this program was built without ledgers, which the one from cargo install antinoise-cli has";
        Err(InvalidParameter::new("observed", ledger.display(), must_be).into())
    }

    /// Report for the participation that the ledger recorded.
    #[cfg(feature = "ledger")]
    fn observed(&self, plan: &VerifiedPlan, ledger: &Path) -> Result<PrivacyFigures> {
        let found = Ledger::open_begun(ledger, plan)?.observed()?;
        let privacy = plan.observed(&found.patterns)?;
        let delta = self.point.delta.or(Some(plan.privacy.delta));
        let report = self.at(privacy.noise_multiplier, delta, Sampling::None, plan.privacy.adjacency)?;
        output::warn_of_delta(report.delta(), plan.examples, plan.privacy.unit);
        Ok(report.of_observed(Observed::new(plan, &found, privacy)?))
    }

    fn bins(&self, bins: usize) -> Result<PrivacyFigures> {
        let steps = at_least("steps", self.sampling.steps.unwrap_or(0), 1)?;
        between("balls_in_bins", bins, 1, steps, "steps")?;
        refuse_replace_one(self.adjacency, "under which balls in bins are accounted for")?;
        let (sigma, delta) = (self.noise.read(false)?, self.point.delta()?);
        let problem = Problem {
            steps,
            workload: Workload::Prefix,
            participation: Participation::Cyclic { min_sep: bins, max_participations: steps.div_ceil(bins) },
            objective: Objective::Rms,
        };
        let spec = self.bins.strategy.unwrap_or_else(|| StrategySpec::new(Class::Identity));
        let encoder = spec.design(&problem)?.value.encoder()?;
        let columns = (0..steps)
            .map(|t| lower_part(encoder.column(t), t, steps))
            .collect::<Option<Vec<Vec<f64>>>>()
            .ok_or_else(|| InvalidParameter::new("strategy", spec, "one with a square lower-triangular C"))?;
        let norm = |column: &Vec<f64>| column.iter().map(|x| x * x).sum::<f64>().sqrt();
        let noise_std = sigma * largest(columns.iter().map(norm));
        let mechanism = MonteCarloMechanism::balls_in_bins(&columns, bins, noise_std)?;
        let of = (Sampler::BallsInBins { bins }, steps, spec.to_string());
        let found = Simulated { mechanism: &mechanism, verified: None, failure: 0.0 }.epsilon(delta)?;
        PrivacyFigures::simulated(sigma, found, of)
    }
}

/// Column t of a lower-triangular matrix from the diagonal down; `None` if the matrix is not lower
/// triangular.
fn lower_part(mut column: Vec<f64>, t: usize, steps: usize) -> Option<Vec<f64>> {
    let lower = column.split_off(t.min(column.len()));
    (column.iter().all(|&x| x == 0.0) && t + lower.len() == steps).then_some(lower)
}
