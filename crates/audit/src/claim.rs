//! What is said of a mechanism, as numbers: what the audit holds it to.

use antinoise_input::positive;
use antinoise_mechanism::{Adjacency, Participation, Strategy};
use antinoise_plan::Plan;

use crate::{Error, Release};

/// What is said: these releases are G + C^-1 Z, Z of independent normals of standard deviation `noise_std`, and hide
/// any unit of the schema as well as N(0, 1) hides a shift by `mu`.
///
/// ```
/// use antinoise_audit::{Claim, Release};
/// use antinoise_mechanism::{Adjacency, Participation, Problem, Workload, optimize::Objective, strategy::Recipe};
/// let problem = Problem {
///     steps: 16,
///     workload: Workload::Prefix,
///     participation: Participation::Single,
///     objective: Objective::Max,
/// };
/// let strategy = "blt:2".parse::<Recipe>()?.design(&problem)?.value;
/// let claim = Claim::of_strategy(strategy, Participation::Single, Adjacency::ZeroOut, 2.0, Release::Plain)?;
/// assert_eq!(claim.mu, 0.5);
/// # Ok::<(), antinoise_audit::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Claim {
    /// C.
    pub strategy: Strategy,
    /// Pi.
    pub participation: Participation,
    /// Which datasets are compared.
    pub adjacency: Adjacency,
    /// Most l2 norm of one unit's contribution to a sum.
    pub clip_norm: f64,
    /// Standard deviation of seed noise, before anything that the release adds for itself.
    pub noise_std: f64,
    /// The privacy that is claimed: mu-GDP.
    pub mu: f64,
    /// How sums and noise are added.
    pub release: Release,
}

impl Claim {
    /// What `plan` says of its mechanism: 1/sigma-GDP. Of a plan whose sampling amplifies that is the claim about one
    /// participation of one unit, whose steps are known: the sampler and its accountant are not audited.
    ///
    /// # Errors
    /// When the plan does not verify.
    pub fn of_plan(plan: &Plan, release: Release) -> Result<Self, Error> {
        plan.verify()?;
        Ok(Self {
            strategy: plan.strategy.clone(),
            participation: plan.participation.clone(),
            adjacency: plan.privacy.adjacency,
            clip_norm: plan.clip_norm,
            noise_std: plan.noise_std(),
            mu: 1.0 / plan.noise_multiplier,
            release,
        })
    }

    /// What is said of `strategy` with seed noise of `noise_multiplier` times its sensitivity, for clip norm 1.
    ///
    /// # Errors
    /// When the multiplier is not positive, or the schema does not fit the strategy.
    pub fn of_strategy(
        strategy: Strategy,
        participation: Participation,
        adjacency: Adjacency,
        noise_multiplier: f64,
        release: Release,
    ) -> Result<Self, Error> {
        let sensitivity = strategy.mechanism().sensitivity(&participation)?.under(adjacency);
        let mu = 1.0 / positive("noise_multiplier", noise_multiplier)?;
        let noise_std = noise_multiplier * sensitivity.value * SINGLE_PRECISION_MARGIN;
        Ok(Self { strategy, participation, adjacency, clip_norm: 1.0, noise_std, mu, release })
    }
}

/// As in a plan: coefficients in single precision are off by up to 2^-24 each.
const SINGLE_PRECISION_MARGIN: f64 = 1.0 + 1e-6;
