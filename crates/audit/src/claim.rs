//! The claim about a mechanism, which an audit tests.

use antinoise_input::positive;
use antinoise_mechanism::{Adjacency, AnyStrategy, Grid, Participation};
use antinoise_plan::{ArithmeticKind, CLIP_ROUNDING, VerifiedPlan};

use crate::Error;

/// The claim: the noisy sums are G + C^-1 Z, where Z is independent normals of standard deviation
/// `noise_std`; the l2 sensitivity of a sum G to one unit is at most `widened_clip_norm`; and the run is
/// `mu`-GDP for every unit of the schema.
///
/// ```
/// use antinoise_audit::Claim;
/// use antinoise_mechanism::{Adjacency, Participation, Problem, Workload, design::{Objective, StrategySpec}};
/// use antinoise_plan::ArithmeticKind;
/// let problem = Problem {
///     steps: 16,
///     workload: Workload::Prefix,
///     participation: Participation::Single,
///     objective: Objective::Max,
/// };
/// let strategy = "blt:2".parse::<StrategySpec>()?.design(&problem)?.value;
/// let claim = Claim::of_strategy(strategy, Participation::Single, Adjacency::ZeroOut, 2.0, ArithmeticKind::Grid)?;
/// assert_eq!(claim.mu, 0.5);
/// # Ok::<(), antinoise_audit::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Claim {
    /// The strategy C.
    pub strategy: AnyStrategy,
    /// The participation schema Pi.
    pub participation: Participation,
    /// How neighbouring data sets differ.
    pub adjacency: Adjacency,
    /// The l2 norm to which gradients are clipped.
    pub clip_norm: f64,
    /// An upper bound on the l2 norm of the change of a sum by one example: the clip norm plus rounding
    /// errors.
    pub widened_clip_norm: f64,
    /// The standard deviation of seed noise.
    pub noise_std: f64,
    /// The claimed privacy: mu-GDP.
    pub mu: f64,
    /// The grid to which sums and noise are rounded; `None` for sums in floating point.
    pub grid: Option<Grid>,
}

/// Number of coordinates for which the grid of a strategy without a plan is made.
const DIM: usize = 1 << 20;
/// Bounds on the relative increase of the clip norm by that grid, and of the sensitivity by storing
/// coefficients in single precision.
const GRID_INCREASE: f64 = 1.0 / (1u64 << 11) as f64;
const SINGLE_PRECISION_MARGIN: f64 = 1.0 + 1e-6;

impl Claim {
    /// The claim of `plan` about its mechanism, which is mu-GDP with mu = 1/sigma. For a plan with
    /// amplification by sampling, it is the claim about a single participation at a known step: the sampler
    /// and its accountant are not audited.
    ///
    /// # Errors
    /// If the plan's grid is invalid, which is never the case for verified plans.
    pub fn of_plan(plan: &VerifiedPlan) -> Result<Self, Error> {
        Ok(Self {
            strategy: plan.strategy.clone(),
            participation: plan.participation.clone(),
            adjacency: plan.privacy.adjacency,
            clip_norm: plan.clip_norm,
            widened_clip_norm: plan.widened_clip_norm(),
            noise_std: plan.noise_std(),
            mu: 1.0 / plan.noise_multiplier,
            grid: plan.arithmetic.grid()?,
        })
    }

    /// The claim about `strategy` with seed noise of standard deviation `noise_multiplier` times its
    /// sensitivity, for clip norm 1 and, on a grid, for up to 2^20 coordinates.
    ///
    /// # Errors
    /// If the multiplier is not positive, or the schema is invalid for the strategy.
    pub fn of_strategy(
        strategy: AnyStrategy,
        participation: Participation,
        adjacency: Adjacency,
        noise_multiplier: f64,
        arithmetic: ArithmeticKind,
    ) -> Result<Self, Error> {
        let sensitivity = strategy.sensitivity(&participation)?.under(adjacency);
        let mu = 1.0 / positive("noise_multiplier", noise_multiplier)?;
        let summed = 1.0 + CLIP_ROUNDING;
        let (grid, widened_clip_norm) = match arithmetic {
            ArithmeticKind::Grid => {
                let grid = Grid::for_clip_norm(1.0, DIM, GRID_INCREASE)?;
                (Some(grid), grid.clip_norm(summed, DIM)?)
            }
            ArithmeticKind::PlainFloatingPoint => (None, summed),
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
