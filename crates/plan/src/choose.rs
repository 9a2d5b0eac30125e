//! Candidates for a request, and the choice among them.

use antinoise_accounting::{BlockCyclicPoisson, gaussian_noise_multiplier_upper};
use antinoise_input::InvalidParameter;
use antinoise_mechanism::loss::{self, Loss};
use antinoise_mechanism::optimize::{Objective, Solution, Status};
use antinoise_mechanism::strategy::StrategySpec;
use antinoise_mechanism::{Adjacency, AnyStrategy, Class, Participation, PrivacyUnit, Problem};
use rayon::prelude::*;

use crate::{ReleaseKind, Request, Result, Schedule, Scheme, Setting, VerifiedPlan};

/// Most bands and buffers that are tried when none are named: 5000 bands over 80,000 steps are designed and accounted in half a
/// minute on two cores. With as many bands as groups, sampling is never worse than batches in turn.
const MOST_BANDS: usize = 1 << 14;
const ORDERS: std::ops::RangeInclusive<usize> = 1..=4;

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
}

impl Candidate {
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
        let batch_size = schedule.scheme.sampler().expected_batch_size(request.examples, request.batch_size);
        let scale = sigma * request.clip_norm / batch_size;
        let recursion = strategy.recursion()?;
        let vectors = match request.release {
            ReleaseKind::Grid => recursion.one_seed_a_step(schedule.steps)?.state_vectors() as u64,
            ReleaseKind::PlainFloatingPoint => recursion.state_vectors() as u64,
        };
        let bytes = vectors.saturating_mul(request.release.bytes_per_coordinate());
        Ok(Self {
            spec,
            schedule,
            noise_multiplier: sigma,
            max_loss: loss.max_loss * scale,
            rms_loss: loss.rms_loss * scale,
            relative_to_independent: 1.0,
            state_bytes: bytes.saturating_mul(request.dim as u64),
            strategy,
            status,
            loss,
        })
    }

    pub(crate) fn relative_to(&mut self, independent: &Self, objective: Objective) {
        self.relative_to_independent = self.objective(objective) / independent.objective(objective);
    }

    /// Whether sampling amplifies its privacy.
    pub fn is_amplified(&self) -> bool {
        matches!(self.schedule.scheme, Scheme::Amplified { .. })
    }

    /// The loss that `objective` names.
    pub fn objective(&self, objective: Objective) -> f64 {
        match objective {
            Objective::Max => self.max_loss,
            Objective::Rms => self.rms_loss,
        }
    }
}

/// The candidates in the order they were tried, the chosen one's index and its plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Independent noise first.
    pub candidates: Vec<Candidate>,
    /// Independent noise as it would be used instead, in batches that are formed otherwise: with sampling that
    /// amplifies (DP-SGD) beside cyclic batches, without beside Poisson batches. None where only one of them can be
    /// had: for users, for single passes that are too short to sample, and under replace-one.
    pub references: Vec<Candidate>,
    /// Index into `candidates`.
    pub chosen: usize,
    /// The chosen candidate's plan.
    pub plan: VerifiedPlan,
}

impl Choice {
    /// The plan of a reference.
    ///
    /// # Errors
    /// When its claim cannot be made.
    pub fn plan_of_reference(&self, request: &Request, reference: usize) -> Result<VerifiedPlan> {
        plan_of(request, &self.references[reference])
    }

    /// The plan of another candidate of the same request.
    ///
    /// # Errors
    /// When its claim cannot be made.
    pub fn plan_of(&self, request: &Request, candidate: usize) -> Result<VerifiedPlan> {
        plan_of(request, &self.candidates[candidate])
    }
}

fn plan_of(request: &Request, candidate: &Candidate) -> Result<VerifiedPlan> {
    VerifiedPlan::new(request, &candidate.schedule, candidate.strategy.clone(), candidate.noise_multiplier)
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
            sampling.noise_multiplier_upper(request.epsilon, request.delta)?
        }
        Scheme::Unamplified { .. } => gaussian_noise_multiplier_upper(request.epsilon, request.delta)?,
    })
}

/// Compares independent noise with the mechanisms that fit the request and picks the least loss among those
/// within the memory.
///
/// When `request.specs` names mechanisms, the least loss among *them* is picked, so that a user who names
/// one gets it.
///
/// # Errors
/// When the request is not valid, or no named mechanism fits the memory.
///
/// ```
/// use antinoise_plan::{Length, Request, Setting, choose};
/// let choice = choose(&Request::new(60_000, 500, Length::Epochs(4), Setting::Cyclic))?;
/// let best = &choice.candidates[choice.chosen];
/// assert_eq!(best.spec.to_string(), "banded-toeplitz:120");
/// assert!(best.relative_to_independent < 0.2);
/// # Ok::<(), antinoise_plan::Error>(())
/// ```
pub fn choose(request: &Request) -> Result<Choice> {
    let schedule = request.schedule()?;
    refuse_replace_one(request)?;
    let mut specs = vec![StrategySpec::new(Class::Identity)];
    let named = request.specs.clone().unwrap_or_else(|| specs_for(request, &schedule));
    specs.extend(named.into_iter().filter(|spec| spec.class != Class::Identity));
    let mut candidates =
        specs.into_par_iter().map(|spec| candidate(request, &schedule, spec)).collect::<Result<Vec<_>>>()?;
    let independent = candidates[0].clone();
    for candidate in &mut candidates {
        candidate.relative_to(&independent, request.objective);
    }
    let chosen = least(request, &candidates)?;
    let plan = plan_of(request, &candidates[chosen])?;
    let mut references = references(request);
    references.iter_mut().for_each(|reference| reference.relative_to(&independent, request.objective));
    Ok(Choice { candidates, references, chosen, plan })
}

/// Independent noise in the other setting of a data centre; none where its privacy cannot be had.
fn references(request: &Request) -> Vec<Candidate> {
    let other = match request.setting {
        Setting::Cyclic | Setting::Single => Setting::Poisson,
        Setting::Poisson => Setting::Cyclic,
        Setting::Federated { .. } => return Vec::new(),
    };
    if request.unit == PrivacyUnit::User || request.adjacency == Adjacency::ReplaceOne {
        return Vec::new();
    }
    let request = request.under(other);
    let found = request.schedule().and_then(|s| candidate(&request, &s, StrategySpec::new(Class::Identity)));
    found.into_iter().collect()
}

fn least(request: &Request, candidates: &[Candidate]) -> Result<usize> {
    let names_another = candidates.len() > 1 && request.specs.is_some();
    let fits = |c: &Candidate| request.memory.is_none_or(|memory| c.state_bytes <= memory);
    (usize::from(names_another)..candidates.len())
        .filter(|&i| fits(&candidates[i]))
        .min_by(|&i, &j| {
            let loss = |i: usize| candidates[i].objective(request.objective);
            loss(i).total_cmp(&loss(j))
        })
        .ok_or_else(|| {
            let needed = candidates[1..].iter().map(|c| c.state_bytes).min().unwrap_or(0);
            let must_be = format!("at least {needed} bytes, the state of the named strategies' smallest");
            let memory = request.memory.unwrap_or(0);
            InvalidParameter::new("memory", memory, must_be).into()
        })
}

/// Sampling amplifies under zero-out; for replace-one there is no theorem here.
pub(crate) fn refuse_replace_one(request: &Request) -> Result<()> {
    if request.setting == Setting::Poisson && request.adjacency == Adjacency::ReplaceOne {
        let must_be = "zero-out in the Poisson setting, whose amplification is proved for it";
        return Err(InvalidParameter::new("adjacency", request.adjacency, must_be).into());
    }
    Ok(())
}

fn candidate(request: &Request, schedule: &Schedule, spec: StrategySpec) -> Result<Candidate> {
    let amplified = request.setting == Setting::Poisson && is_banded(spec.class);
    let participation =
        if amplified { Participation::Single } else { schedule.scheme.participation().clone() };
    let design = designed(request, schedule.steps, participation, spec)?;
    let schedule = match amplified {
        true => schedule.amplified(design.value.encoder()?.bandwidth()),
        false => schedule.clone(),
    };
    Candidate::calibrated(request, schedule, spec, design)
}

/// The classes whose noise sampling amplifies by a theorem.
fn is_banded(class: Class) -> bool {
    matches!(class, Class::Identity | Class::BandedToeplitz | Class::Banded)
}

/// The spec's strategy for the request's workload and objective.
pub(crate) fn designed(
    request: &Request,
    steps: usize,
    participation: Participation,
    spec: StrategySpec,
) -> Result<Solution<AnyStrategy>> {
    let workload = request.workload.clone();
    let problem = Problem { steps, workload, participation, objective: request.objective };
    Ok(spec.design(&problem)?)
}

/// The powers of 2 below `most`, from `first` on, and `most` itself.
pub(crate) fn powers_up_to(first: usize, most: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(first), |bands| Some(2 * bands))
        .take_while(move |&bands| bands < most)
        .chain((most >= first).then_some(most))
}

/// Banded Toeplitz at the powers of 2 up to the separation and at the separation itself, and BLTs. Where sampling
/// amplifies, up to the groups that a batch allows, and no BLTs: they have no bands.
fn specs_for(request: &Request, schedule: &Schedule) -> Vec<StrategySpec> {
    let banded = |bands| StrategySpec { bands: Some(bands), ..StrategySpec::new(Class::BandedToeplitz) };
    if request.setting == Setting::Poisson {
        let most = (request.examples / request.batch_size).min(schedule.steps).min(MOST_BANDS);
        return powers_up_to(2, most).map(banded).collect();
    }
    let (b, _) = schedule.scheme.participation().separation(schedule.steps);
    let most = match schedule.scheme.participation() {
        Participation::FullBatch => schedule.steps.min(64),
        _ => b.min(MOST_BANDS),
    };
    let blt = ORDERS.map(|order| StrategySpec { order: Some(order), ..StrategySpec::new(Class::Blt) });
    powers_up_to(2, most).map(banded).chain(blt).collect()
}
