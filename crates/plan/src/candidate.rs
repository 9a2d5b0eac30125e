//! One mechanism for a request: its design, the noise that its privacy needs and what it costs.

use antinoise_accounting::{BlockCyclicPoisson, gaussian_noise_multiplier_upper};
use antinoise_input::InvalidParameter;
use antinoise_mechanism::loss::{self, Loss};
use antinoise_mechanism::optimize::{Objective, Solution, Status};
use antinoise_mechanism::strategy::StrategySpec;
use antinoise_mechanism::{Adjacency, AnyStrategy, Participation, Problem, Recursion};

use crate::{Error, Figure, ReleaseKind, Request, Result, Schedule, Scheme, VerifiedPlan, bins, min_sep};

/// How often half a percent more noise is tried for a claim that sampling does not show.
const MORE_NOISE: u32 = 20;

/// One mechanism for the request, calibrated.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Class and size.
    pub spec: StrategySpec,
    /// C.
    pub strategy: AnyStrategy,
    /// How the design of C ended.
    pub status: Status,
    /// The sampler and the schema that go with it: sampling that amplifies has a group for each band.
    pub schedule: Schedule,
    /// sigma.
    pub noise_multiplier: f64,
    /// Errors and losses for noise of standard deviation 1 and sensitivity 1.
    pub loss: Loss,
    /// Standard deviation of the worst query of the mean gradient: max loss x sigma x clip norm / B. What rounding adds
    /// to the clip norm, a two-thousandth on a grid, is left out: it is the same for all.
    pub max_loss: f64,
    /// Root mean square over queries of the same.
    pub rms_loss: f64,
    /// The objective's loss over that of independent noise.
    pub relative_to_independent: f64,
    /// Bytes of noise state for the model's dimension.
    pub state_bytes: u64,
    /// Estimated seconds of one core for a step's noise of the model's dimension.
    pub noise_seconds: f64,
}

impl Candidate {
    /// The best strategy of `spec` on `schedule`, with the least noise that the request's privacy allows.
    pub(crate) fn designed(request: &Request, schedule: Schedule, spec: StrategySpec) -> Result<Self> {
        let design = design(request, schedule.steps, schedule.scheme.participation().clone(), spec)?;
        Self::calibrated(request, schedule, spec, design)
    }

    /// The best banded strategy of `spec` where every example joins the turns of its group, a group for each band.
    pub(crate) fn amplified(request: &Request, schedule: &Schedule, spec: StrategySpec) -> Result<Self> {
        let design = design(request, schedule.steps, Participation::Single, spec)?;
        let schedule = schedule.amplified(design.value.encoder()?.bandwidth());
        Self::calibrated(request, schedule, spec, design)
    }

    /// A design on `schedule`, with the least noise that the request's privacy allows.
    pub(crate) fn calibrated(
        request: &Request,
        schedule: Schedule,
        spec: StrategySpec,
        design: Solution<AnyStrategy>,
    ) -> Result<Self> {
        let Solution { value: strategy, status, .. } = design;
        let sigma = noise_multiplier_upper(request, &schedule)?;
        let loss =
            loss::of(&strategy, &request.workload, schedule.scheme.participation(), request.adjacency)?;
        let scale = sigma * request.clip_norm / batch_size(request, &schedule);
        let recursion = match request.release {
            ReleaseKind::Grid => strategy.recursion()?.with_one_seed_per_step(schedule.steps)?,
            ReleaseKind::PlainFloatingPoint => strategy.recursion()?,
        };
        let vector = request.release.bytes_per_coordinate().saturating_mul(request.dim as u64);
        Ok(Self {
            spec,
            noise_multiplier: sigma,
            max_loss: loss.max_loss * scale,
            rms_loss: loss.rms_loss * scale,
            relative_to_independent: 1.0,
            state_bytes: vector.saturating_mul(recursion.state_vectors() as u64),
            noise_seconds: 1e-9 * nanoseconds(&recursion, schedule.steps) * request.dim as f64,
            schedule,
            strategy,
            status,
            loss,
        })
    }

    /// The same C where each example has one of `bins` bins that nobody knows, in place of batches that take turns.
    pub(crate) fn in_bins(&self, request: &Request, bins: usize) -> Result<Self> {
        let participation = self.schedule.scheme.participation().clone();
        let sensitivity = self.loss.sensitivity.value;
        let mechanism = bins::mechanism(&self.strategy.encoder()?, bins, sensitivity)?;
        let noise_multiplier = mechanism.noise_factor(request.epsilon, request.delta)?;
        let scheme = Scheme::BallsInBins { bins, participation };
        let schedule = Schedule { steps: self.schedule.steps, scheme };
        Ok(Self { schedule, ..self.clone() }.with_noise_multiplier(noise_multiplier))
    }

    /// The same C where an example that took part sits out as many steps as C has bands but one.
    pub(crate) fn in_min_sep(&self, request: &Request) -> Result<Self> {
        if request.adjacency != Adjacency::ZeroOut {
            let must_be = "zero-out, under which b-min-sep is accounted for";
            return Err(InvalidParameter::new("adjacency", request.adjacency, must_be).into());
        }
        let (encoder, steps) = (self.strategy.encoder()?, self.schedule.steps);
        let min_sep = encoder.bandwidth();
        let scheme = Scheme::min_sep(min_sep, steps);
        let loss = loss::of(&self.strategy, &request.workload, scheme.participation(), request.adjacency)?;
        let sampled = (request.batch_size, request.examples);
        let mechanism = min_sep::mechanism(&encoder, min_sep, sampled, loss.sensitivity.value)?;
        let noise_multiplier = mechanism.noise_factor(request.epsilon, request.delta)?;
        let schedule = Schedule { steps, scheme };
        let scale = noise_multiplier * request.clip_norm / batch_size(request, &schedule);
        let (max_loss, rms_loss) = (loss.max_loss * scale, loss.rms_loss * scale);
        Ok(Self { schedule, noise_multiplier, max_loss, rms_loss, loss, ..self.clone() })
    }

    /// The same with the noise that its claim was shown for.
    pub(crate) fn shown(self, request: &Request) -> Result<Self> {
        // What is told is what was shown.
        let shown = self.plan(request)?.noise_multiplier;
        Ok(self.with_noise_multiplier(shown))
    }

    fn with_noise_multiplier(self, noise_multiplier: f64) -> Self {
        let times = noise_multiplier / self.noise_multiplier;
        let (max_loss, rms_loss) = (self.max_loss * times, self.rms_loss * times);
        Self { noise_multiplier, max_loss, rms_loss, ..self }
    }

    pub(crate) fn relative_to(&mut self, independent: &Self, objective: Objective) {
        self.relative_to_independent = self.objective(objective) / independent.objective(objective);
    }

    /// Whether sampling amplifies its privacy.
    pub fn is_amplified(&self) -> bool {
        self.schedule.scheme.is_amplified()
    }

    /// Gradients of examples that it needs in all, expected: steps x expected batch size.
    pub fn gradients(&self, request: &Request) -> f64 {
        self.schedule.steps as f64 * batch_size(request, &self.schedule)
    }

    /// The loss that `objective` names.
    pub fn objective(&self, objective: Objective) -> f64 {
        match objective {
            Objective::Max => self.max_loss,
            Objective::Rms => self.rms_loss,
        }
    }

    /// Its plan.
    pub(crate) fn plan(&self, request: &Request) -> Result<VerifiedPlan> {
        let plan = |sigma| VerifiedPlan::new(request, &self.schedule, self.strategy.clone(), sigma);
        let found = plan(self.noise_multiplier);
        if !self.schedule.scheme.is_simulated() {
            return found;
        }
        // The claim's own samples may ask for a little more.
        (1..=MORE_NOISE).map(|times| 1.0 + 0.005 * f64::from(times)).fold(
            found,
            |found, factor| match found {
                Err(Error::Unsound { what: Figure::Epsilon, .. }) => plan(self.noise_multiplier * factor),
                other => other,
            },
        )
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

/// What the noisy sum is divided by. Batches in turn share out all examples: they may be larger than what is asked for.
fn batch_size(request: &Request, schedule: &Schedule) -> f64 {
    schedule.scheme.sampler().expected_batch_size(request.examples, request.batch_size)
}

fn noise_multiplier_upper(request: &Request, schedule: &Schedule) -> Result<f64> {
    Ok(match schedule.scheme {
        Scheme::Amplified { groups } => {
            let batch_size = request.batch_size as f64;
            let sampling = BlockCyclicPoisson {
                bands: groups,
                steps: schedule.steps,
                batch_size,
                examples: request.examples,
            };
            match request.adjacency {
                Adjacency::ZeroOut => sampling.noise_multiplier_upper(request.epsilon, request.delta)?,
                // (epsilon, delta) under zero-out is (2 epsilon, (1 + e^epsilon) delta), at half the noise over sensitivity.
                Adjacency::ReplaceOne => {
                    let epsilon = 0.5 * request.epsilon;
                    let delta = request.delta / (1.0 + epsilon.exp()) * (1.0 - 1e-5);
                    0.5 * sampling.noise_multiplier_upper(epsilon, delta)?
                }
            }
        }
        // Calibrated beside the design, by `Candidate::in_bins` and `Candidate::in_min_sep`.
        Scheme::Unamplified { .. } | Scheme::BallsInBins { .. } | Scheme::BMinSep { .. } => {
            gaussian_noise_multiplier_upper(request.epsilon, request.delta)?
        }
    })
}

/// Estimated nanoseconds of one core for a coordinate's noise of one step, on a grid: 2.2 for independent noise, 12 for 120
/// bands, and 38 for the 600 weights of an average row of a dense strategy over 1200 steps, as streams of such plans took
/// them on one machine. An order of magnitude, by which to choose.
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
