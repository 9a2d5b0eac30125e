//! The claim about a mechanism, as numbers, which the audit tests.

use antinoise_input::positive;
use antinoise_mechanism::{Adjacency, AnyStrategy, Grid, Participation};
use antinoise_plan::{ReleaseKind, SUM_ALLOWANCE, VerifiedPlan};

use crate::Error;

/// The claim: the releases are G + C^-1 Z, Z of independent normals of standard deviation `noise_std`; no unit moves
/// a sum G by more than `widened_clip_norm`; and the run is `mu`-GDP for any unit of the schema.
///
/// ```
/// use antinoise_audit::Claim;
/// use antinoise_mechanism::{Adjacency, Participation, Problem, Workload, optimize::Objective, strategy::StrategySpec};
/// use antinoise_plan::ReleaseKind;
/// let problem = Problem {
///     steps: 16,
///     workload: Workload::Prefix,
///     participation: Participation::Single,
///     objective: Objective::Max,
/// };
/// let strategy = "blt:2".parse::<StrategySpec>()?.design(&problem)?.value;
/// let claim = Claim::of_strategy(strategy, Participation::Single, Adjacency::ZeroOut, 2.0, ReleaseKind::Grid)?;
/// assert_eq!(claim.mu, 0.5);
/// # Ok::<(), antinoise_audit::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Claim {
    /// C.
    pub strategy: AnyStrategy,
    /// Pi.
    pub participation: Participation,
    /// Which datasets are compared.
    pub adjacency: Adjacency,
    /// The l2 norm that gradients are clipped to.
    pub clip_norm: f64,
    /// The most that one example moves a sum, in l2 norm: the clip norm and what rounding adds.
    pub widened_clip_norm: f64,
    /// Standard deviation of seed noise.
    pub noise_std: f64,
    /// The privacy that is claimed: mu-GDP.
    pub mu: f64,
    /// The grid that sums and noise are rounded to; without one they are added in floating point.
    pub grid: Option<Grid>,
}

/// Coordinates that the grid of a strategy without a plan is made for.
const DIM: usize = 1 << 20;
/// What that grid may add to the clip norm, and what coefficients in single precision may add to the sensitivity.
const GRID_INCREASE: f64 = 1.0 / (1u64 << 11) as f64;
const SINGLE_PRECISION_MARGIN: f64 = 1.0 + 1e-6;

impl Claim {
    /// The claim of `plan` about its mechanism: 1/sigma-GDP. For a plan whose sampling amplifies, it is the claim about one
    /// participation at a known step: the sampler and its accountant are not audited.
    ///
    /// # Errors
    /// When its grid has no power of two for a spacing, which no verified plan's has.
    pub fn of_plan(plan: &VerifiedPlan) -> Result<Self, Error> {
        Ok(Self {
            strategy: plan.strategy.clone(),
            participation: plan.participation.clone(),
            adjacency: plan.privacy.adjacency,
            clip_norm: plan.clip_norm,
            widened_clip_norm: plan.widened_clip_norm(),
            noise_std: plan.noise_std(),
            mu: 1.0 / plan.noise_multiplier,
            grid: plan.release.grid()?,
        })
    }

    /// The claim about `strategy` with seed noise of `noise_multiplier` times its sensitivity, for clip norm 1 and, on a
    /// grid, up to 2^20 coordinates.
    ///
    /// # Errors
    /// When the multiplier is not positive, or the schema is not valid for the strategy.
    pub fn of_strategy(
        strategy: AnyStrategy,
        participation: Participation,
        adjacency: Adjacency,
        noise_multiplier: f64,
        release: ReleaseKind,
    ) -> Result<Self, Error> {
        let sensitivity = strategy.sensitivity(&participation)?.under(adjacency);
        let mu = 1.0 / positive("noise_multiplier", noise_multiplier)?;
        let summed = 1.0 + SUM_ALLOWANCE;
        let (grid, widened_clip_norm) = match release {
            ReleaseKind::Grid => {
                let grid = Grid::for_clip_norm(1.0, DIM, GRID_INCREASE)?;
                (Some(grid), grid.clip_norm(summed, DIM)?)
            }
            ReleaseKind::PlainFloatingPoint => (None, summed),
        };
        let noise_std = noise_multiplier * sensitivity.value * SINGLE_PRECISION_MARGIN * widened_clip_norm;
        Ok(Self {
            strategy,
            participation,
            adjacency,
            clip_norm: 1.0,
            widened_clip_norm,
            noise_std,
            mu,
            grid,
        })
    }
}
