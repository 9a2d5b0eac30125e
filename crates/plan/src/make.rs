//! A plan from a request and a strategy.

use antinoise_accounting::Bracket;
use antinoise_mechanism::AnyStrategy;

use crate::min_sep::Simulated;
use crate::verify::VERSION;
use crate::{Plan, Privacy, Release, ReleaseKind, Request, Result, Schedule, VerifiedPlan};

impl VerifiedPlan {
    /// The plan that runs `strategy` on `schedule` with noise multiplier `noise_multiplier`.
    pub(crate) fn new(
        request: &Request,
        schedule: &Schedule,
        strategy: AnyStrategy,
        noise_multiplier: f64,
    ) -> Result<Self> {
        let sensitivity = strategy.sensitivity(schedule.scheme.participation())?;
        let (stated, sensitivity) = (sensitivity.value, sensitivity.under(request.adjacency));
        let noise = request.release.noise(&strategy.recursion()?, schedule.steps)?;
        let release = match request.release {
            ReleaseKind::Grid => {
                // Rounding, which the release's own noise covers later, less than doubles the noise.
                let std_per_clip_norm = 2.0 * noise_multiplier * sensitivity.value;
                Release::on_grid(request.clip_norm, request.dim, std_per_clip_norm, &noise)?
            }
            ReleaseKind::PlainFloatingPoint => Release::PlainFloatingPoint,
        };
        let mut plan = Plan {
            version: VERSION,
            examples: request.examples,
            batch_size: request.batch_size,
            steps: schedule.steps,
            clip_norm: request.clip_norm,
            noise_multiplier,
            rounding_factor: 1.0,
            objective: request.objective,
            privacy: Privacy {
                epsilon: f64::MAX,
                epsilon_lower: 0.0,
                delta: request.delta,
                unit: request.unit,
                adjacency: request.adjacency,
                accountant: schedule.scheme.accountant(),
                failure: schedule.scheme.accountant().failure(),
            },
            release,
            sampler: schedule.scheme.sampler(),
            participation: schedule.scheme.participation().clone(),
            workload: request.workload.clone(),
            sensitivity,
            strategy,
        };
        plan.rounding_factor = plan.needed_rounding_factor(stated, &noise)?;
        let Bracket { lower, upper } = match plan.simulated(&schedule.scheme)? {
            Some(mechanism) => plan.simulated_bracket(&mechanism, request.epsilon)?,
            None => plan.account(&schedule.scheme)?,
        };
        (plan.privacy.epsilon, plan.privacy.epsilon_lower) = (upper, lower);
        plan.verify()
    }
}

/// Parts of epsilon that are tried as its lower end.
const TIGHT: [f64; 4] = [0.98, 0.95, 0.9, 0.8];

impl Plan {
    /// `epsilon`, which verifying the plan is to show, and how far below it the truth is not.
    fn simulated_bracket(&self, mechanism: &Simulated, epsilon: f64) -> Result<Bracket> {
        for lower in TIGHT.map(|part| part * epsilon) {
            // As far above delta as other samples are likely to be.
            if mechanism.claimed_delta_lower(lower)? > 1.2 * self.privacy.delta {
                return Ok(Bracket { lower, upper: epsilon });
            }
        }
        Ok(Bracket { lower: 0.0, upper: epsilon })
    }
}
