//! Candidates: mechanisms that are designed for a request, with the noise that the privacy target needs, and
//! their costs.

use antinoise_accounting::gaussian_noise_multiplier_upper;
use antinoise_input::InvalidParameter;
use antinoise_mechanism::design::{Objective, Solution, Status, StrategySpec};
use antinoise_mechanism::loss::Loss;
use antinoise_mechanism::{Adjacency, AnyStrategy, Participation, Problem, Recursion};

use crate::plan::{neighbours, sampling};
use crate::verified::Progress;
use crate::{ArithmeticKind, Error, Figure, Request, Result, Schedule, VerifiedPlan, monte_carlo};

/// Maximum number of retries, each with [`NOISE_INCREMENT`] more noise, if Monte Carlo does not certify a
/// claim.
const MAX_RETRIES: u32 = 20;
const NOISE_INCREMENT: f64 = 0.005;
/// Relative increase of the noise for rounding errors that losses leave out.
const NEGLIGIBLE_ROUNDING: f64 = 1e-3;

/// A mechanism for a request, with calibrated noise.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Candidate {
    /// Class and size of the strategy.
    pub spec: StrategySpec,
    /// The strategy C.
    pub strategy: AnyStrategy,
    /// Whether C is one of [`Request::strategies`], not designed for the request.
    pub is_given: bool,
    /// How the design of C ended.
    pub status: Status,
    /// Sampler and schema. Amplified Poisson sampling has as many groups as C has bands.
    pub schedule: Schedule,
    /// The noise multiplier sigma.
    pub noise_multiplier: f64,
    /// Errors and losses at noise multiplier 1.
    pub unit_loss: Loss,
    /// Maximum standard deviation of a query's noise, for mean gradients: unit max loss x sigma x clip norm /
    /// B. It does not include the widening of the clip norm, which is a two-thousandth on a grid and the same
    /// for all candidates.
    pub max_loss: f64,
    /// Root mean square of the standard deviations of all queries' noise, for mean gradients: unit RMS loss x
    /// sigma x clip norm / B.
    pub rms_loss: f64,
    /// The loss that the request minimises, divided by that of independent noise.
    pub relative_to_independent: f64,
    /// Vectors of the model's dimension in the noise state.
    pub state_vectors: usize,
    /// Bytes of noise state for the model's dimension.
    pub state_bytes: u64,
    /// Estimated seconds of one core for one step's noise in the model's dimension.
    pub noise_seconds: f64,
    /// The plan for which Monte Carlo certified the noise multiplier.
    certified: Option<Box<VerifiedPlan>>,
    /// The part of the noise that covers rounding errors and is in the losses; 1 where it is negligible.
    rounding_factor: f64,
}

impl Candidate {
    /// Designs the best strategy of `spec` for `schedule`, and calibrates the least noise for the request's
    /// privacy target.
    pub(crate) fn designed(request: &Request, schedule: Schedule, spec: StrategySpec) -> Result<Self> {
        let design = design(request, schedule.steps, schedule.participation.clone(), spec)?;
        Self::calibrated(request, schedule, spec, design)
    }

    /// Designs the best banded strategy of `spec` under block-cyclic Poisson sampling, with as many groups as
    /// bands.
    pub(crate) fn with_poisson(request: &Request, schedule: &Schedule, spec: StrategySpec) -> Result<Self> {
        let design = design(request, schedule.steps, Participation::Single, spec)?;
        let schedule = request.sampled(schedule, design.value.encoder()?.bandwidth())?;
        Self::calibrated(request, schedule, spec, design)
    }

    /// Calibrates the least noise for `design` on `schedule` and the request's privacy target.
    pub(crate) fn calibrated(
        request: &Request,
        schedule: Schedule,
        spec: StrategySpec,
        design: Solution<AnyStrategy>,
    ) -> Result<Self> {
        let Solution { value: strategy, status, .. } = design;
        let sigma = noise_multiplier_upper(request, &schedule)?;
        let unit_loss = strategy.loss(&request.workload, &schedule.participation, request.adjacency)?;
        let scale = sigma * request.clip_norm / batch_size(request, &schedule);
        let recursion = match request.arithmetic {
            ArithmeticKind::Grid => strategy.recursion()?.with_one_seed_per_step(schedule.steps)?,
            ArithmeticKind::PlainFloatingPoint => strategy.recursion()?,
        };
        let vector = request.arithmetic.bytes_per_coordinate().saturating_mul(request.dim as u64);
        Ok(Self {
            spec,
            noise_multiplier: sigma,
            max_loss: unit_loss.max_loss * scale,
            rms_loss: unit_loss.rms_loss * scale,
            relative_to_independent: 1.0,
            state_vectors: recursion.state_vectors(),
            state_bytes: vector.saturating_mul(recursion.state_vectors() as u64),
            noise_seconds: 1e-9 * nanoseconds(&recursion, schedule.steps) * request.dim as f64,
            schedule,
            strategy,
            is_given: false,
            status,
            unit_loss,
            certified: None,
            rounding_factor: 1.0,
        })
    }

    /// Calibrates a strategy that the request gives. Its sampler is block-cyclic Poisson sampling if batches
    /// are sampled and C has at most as many bands as there are disjoint batches; otherwise it is that of
    /// `unsampled`.
    pub(crate) fn given(request: &Request, unsampled: &Schedule, strategy: &AnyStrategy) -> Result<Self> {
        strategy.check()?;
        let steps = unsampled.steps;
        if strategy.steps() != steps {
            let must_be = format!("{steps}, the steps of the plan");
            return Err(InvalidParameter::new("strategy's steps", strategy.steps(), must_be).into());
        }
        let bands = strategy.encoder()?.bandwidth().max(strategy.recursion()?.bandwidth(steps));
        let is_sampled = request.setting.is_sampled() && bands <= request.examples / request.batch_size;
        let schedule =
            if is_sampled { request.sampled(&request.schedule()?, bands)? } else { unsampled.clone() };
        let design = Solution::closed_form(strategy.clone());
        let found = Self::calibrated(request, schedule, StrategySpec::of(strategy)?, design)?;
        Ok(Self { is_given: true, ..found })
    }

    /// Names the candidate: its class and size, and whether the request gave the strategy.
    ///
    /// ```
    /// # use antinoise_plan::{Length, Request, Setting, choose};
    /// let choice = choose(&Request::new(1000, 50, Length::Epochs(2), Setting::Cyclic))?;
    /// assert_eq!(choice.candidates[0].name(), "identity");
    /// # Ok::<(), antinoise_plan::Error>(())
    /// ```
    pub fn name(&self) -> String {
        if self.is_given { format!("{} (given)", self.spec) } else { self.spec.to_string() }
    }

    /// The candidate's C under balls-in-bins sampling with `bins` bins, with an estimate of the noise
    /// multiplier.
    pub(crate) fn with_balls_in_bins(&self, request: &Request, bins: usize) -> Result<Self> {
        let schedule = self.schedule.with_balls_in_bins(bins);
        let noise = monte_carlo_noise(request, &schedule, &self.strategy, &self.unit_loss)?;
        Ok(Self { schedule, ..self.clone() }.with_noise_multiplier(noise))
    }

    /// The candidate's C under b-min-sep sampling, whose `min_sep` is the number of bands of C, with an
    /// estimate of the noise multiplier.
    pub(crate) fn with_b_min_sep(&self, request: &Request) -> Result<Self> {
        if request.adjacency != Adjacency::ZeroOut {
            let must_be = "zero-out, under which b-min-sep is accounted for";
            return Err(InvalidParameter::new("adjacency", request.adjacency, must_be).into());
        }
        let schedule = self.schedule.with_b_min_sep(self.strategy.encoder()?.bandwidth());
        let unit_loss = self.strategy.loss(&request.workload, &schedule.participation, request.adjacency)?;
        let noise_multiplier = monte_carlo_noise(request, &schedule, &self.strategy, &unit_loss)?;
        let scale = noise_multiplier * request.clip_norm / batch_size(request, &schedule);
        let (max_loss, rms_loss) = (unit_loss.max_loss * scale, unit_loss.rms_loss * scale);
        let certified = None;
        Ok(Self { schedule, noise_multiplier, max_loss, rms_loss, unit_loss, certified, ..self.clone() })
    }

    /// The candidate with the noise multiplier of its certified plan in place of the estimate. `progress` is
    /// called with the number of samples drawn so far, and of all.
    pub(crate) fn certified(self, request: &Request, progress: &Progress<'_>) -> Result<Self> {
        let plan = self.plan(request, progress)?;
        let noise_multiplier = plan.noise_multiplier;
        Ok(Self { certified: Some(Box::new(plan)), ..self.with_noise_multiplier(noise_multiplier) })
    }

    fn with_noise_multiplier(self, noise_multiplier: f64) -> Self {
        let times = noise_multiplier / self.noise_multiplier;
        let (max_loss, rms_loss) = (self.max_loss * times, self.rms_loss * times);
        Self { noise_multiplier, max_loss, rms_loss, certified: None, ..self }
    }

    /// Adds to the losses the noise that covers rounding errors in the candidate's `plan`, unless it is
    /// negligible or was added before. Returns whether it did.
    pub(crate) fn add_rounding(
        &mut self,
        plan: &VerifiedPlan,
        request: &Request,
        independent: &Self,
    ) -> bool {
        let factor = plan.rounding_factor / self.rounding_factor;
        if factor <= 1.0 + NEGLIGIBLE_ROUNDING {
            return false;
        }
        self.rounding_factor = plan.rounding_factor;
        (self.max_loss, self.rms_loss) = (self.max_loss * factor, self.rms_loss * factor);
        self.relative_to(independent, request.objective);
        true
    }

    pub(crate) fn relative_to(&mut self, independent: &Self, objective: Objective) {
        self.relative_to_independent = self.objective(objective) / independent.objective(objective);
    }

    /// Whether sampling amplifies privacy.
    pub fn is_amplified(&self) -> bool {
        self.schedule.is_amplified()
    }

    /// The expected number of per-example gradients of a run: steps x expected batch size.
    pub fn gradients(&self, request: &Request) -> f64 {
        self.schedule.steps as f64 * batch_size(request, &self.schedule)
    }

    /// Describes the limit of the request on memory or time that the candidate exceeds, if any.
    pub(crate) fn excess(&self, request: &Request) -> Option<String> {
        let (bytes, seconds) = (self.state_bytes, self.noise_seconds);
        if let Some(memory) = request.memory.filter(|&memory| bytes > memory) {
            return Some(format!("its noise state, {bytes} bytes, is above the limit, {memory} bytes"));
        }
        let limit = request.noise_time.filter(|&limit| seconds > limit)?;
        Some(format!("its noise takes about {seconds:.2} s a step, above the limit, {limit} s"))
    }

    /// The candidate's loss for an objective.
    pub fn objective(&self, objective: Objective) -> f64 {
        match objective {
            Objective::Max => self.max_loss,
            Objective::Rms => self.rms_loss,
        }
    }

    /// Makes the candidate's plan. Certifying a Monte Carlo claim may need slightly more noise than the
    /// estimate.
    pub(crate) fn plan(&self, request: &Request, progress: &Progress<'_>) -> Result<VerifiedPlan> {
        if let Some(plan) = &self.certified {
            return Ok((**plan).clone());
        }
        let plan = |sigma| VerifiedPlan::new(request, &self.schedule, self.strategy.clone(), sigma, progress);
        let mut found = plan(self.noise_multiplier);
        if self.schedule.accountant().failure_probability().is_none() {
            return found;
        }
        for retry in 1..=MAX_RETRIES {
            if !matches!(found, Err(Error::Unsound { what: Figure::Epsilon, .. })) {
                break;
            }
            found = plan(self.noise_multiplier * (1.0 + NOISE_INCREMENT * f64::from(retry)));
        }
        found
    }
}

/// The spec's strategy for the request's workload and objective.
pub(crate) fn design(
    request: &Request,
    steps: usize,
    participation: Participation,
    spec: StrategySpec,
) -> Result<Solution<AnyStrategy>> {
    let workload = request.workload.clone();
    let problem = Problem { steps, workload, participation, objective: request.objective };
    Ok(spec.design(&problem)?)
}

/// The number by which noisy sums are divided. Cyclic batches can be larger than requested, since together
/// they have all examples.
fn batch_size(request: &Request, schedule: &Schedule) -> f64 {
    schedule.sampler.expected_batch_size(request.examples, request.batch_size)
}

/// An estimate of the noise multiplier for which Monte Carlo certifies the request's privacy on `schedule`.
fn monte_carlo_noise(
    request: &Request,
    schedule: &Schedule,
    strategy: &AnyStrategy,
    unit_loss: &Loss,
) -> Result<f64> {
    let (batches, sensitivity) = ((request.batch_size, request.examples), unit_loss.sensitivity.value);
    match monte_carlo::mechanism(&strategy.encoder()?, schedule.sampler, batches, sensitivity)? {
        Some(mechanism) => Ok(mechanism.noise_scale_for(request.epsilon, request.delta)?),
        None => noise_multiplier_upper(request, schedule),
    }
}

/// The least noise multiplier for the request's privacy target; for Monte Carlo accountants, that of the
/// mechanism without amplification.
fn noise_multiplier_upper(request: &Request, schedule: &Schedule) -> Result<f64> {
    Ok(match schedule.accountant().dp_sgd_groups(schedule.sampler) {
        Some(groups) => {
            let sizes = (request.batch_size, request.examples);
            let sampling = sampling(schedule.sampler, groups, schedule.steps, sizes);
            let neighbours = neighbours(request.adjacency);
            sampling.noise_multiplier_upper(request.epsilon, request.delta, neighbours)?
        }
        None => gaussian_noise_multiplier_upper(request.epsilon, request.delta)?,
    })
}

/// An estimate of the nanoseconds that one core takes for the noise of one coordinate in one step, on a grid.
/// It is an order of magnitude for the choice of a mechanism, fitted to streams on one machine: 2.2 ns for
/// independent noise, 12 ns for 120 bands, and 38 ns for the 600 weights of an average row of a dense
/// strategy over 1200 steps.
fn nanoseconds(recursion: &Recursion, steps: usize) -> f64 {
    const SEED: f64 = 2.0;
    const PAST_VECTOR: f64 = 0.08;
    const WEIGHT: f64 = 0.06;
    match recursion {
        Recursion::SeedCombination { rows } => {
            let weights: usize = rows.iter().map(Vec::len).sum();
            SEED + WEIGHT * weights as f64 / rows.len().max(1) as f64
        }
        Recursion::Scaled { inner, .. } => nanoseconds(inner, steps),
        Recursion::Restarted { inner, period } => nanoseconds(inner, steps.min(*period)),
        other => SEED + PAST_VECTOR * other.state_vectors().min(steps) as f64,
    }
}
