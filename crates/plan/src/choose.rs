//! Candidates for a request, and the choice among them.

use antinoise_accounting::noise_multiplier_for;
use antinoise_mechanism::loss::{self, Loss};
use antinoise_mechanism::optimize::Objective;
use antinoise_mechanism::strategy::Recipe;
use antinoise_mechanism::{Class, Participation, Problem, Strategy};
use rayon::prelude::*;

use crate::{Plan, Request, Result, Schedule};

/// Most bands and buffers that are tried when none are named.
const MOST_BANDS: usize = 1024;
const ORDERS: std::ops::RangeInclusive<usize> = 1..=4;
/// Bytes of one stored coordinate of noise.
const BYTES_PER_COORDINATE: u64 = 4;

/// One mechanism for the request, calibrated.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Class and size.
    pub recipe: Recipe,
    /// C.
    pub strategy: Strategy,
    /// sigma.
    pub noise_multiplier: f64,
    /// Errors and losses for noise of standard deviation 1 and sensitivity 1.
    pub loss: Loss,
    /// Standard deviation of the worst query of the mean gradient: max loss x sigma x clip norm / B.
    pub max_loss: f64,
    /// Root mean square over queries of the same.
    pub rms_loss: f64,
    /// The objective's loss over that of independent noise.
    pub relative_to_independent: f64,
    /// Bytes of noise state for the model's dimension.
    pub state_bytes: u64,
}

impl Candidate {
    fn objective(&self, objective: Objective) -> f64 {
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
    /// Index into `candidates`.
    pub chosen: usize,
    /// The chosen candidate's plan.
    pub plan: Plan,
}

impl Choice {
    /// The plan of another candidate of the same request.
    ///
    /// # Errors
    /// When its claim cannot be made.
    pub fn plan_of(&self, request: &Request, candidate: usize) -> Result<Plan> {
        plan_of(request, &request.schedule()?, &self.candidates[candidate])
    }
}

fn plan_of(request: &Request, schedule: &Schedule, candidate: &Candidate) -> Result<Plan> {
    Plan::new(request, schedule, candidate.strategy.clone(), candidate.noise_multiplier)
}

/// Compares independent noise with the mechanisms that fit the request and picks the least loss among those
/// within the memory.
///
/// When `request.recipes` names mechanisms, the least loss among *them* is picked, so that a user who names
/// one gets it.
///
/// # Errors
/// When the request is not valid, or no named mechanism fits the memory.
///
/// ```
/// use antinoise_plan::{Length, Request, Setting, choose};
/// let choice = choose(&Request::new(60_000, 500, Length::Epochs(4), Setting::Cyclic))?;
/// let best = &choice.candidates[choice.chosen];
/// assert_eq!(best.recipe.to_string(), "banded-toeplitz:120");
/// assert!(best.relative_to_independent < 0.2);
/// # Ok::<(), antinoise_plan::Error>(())
/// ```
pub fn choose(request: &Request) -> Result<Choice> {
    let schedule = request.schedule()?;
    let sigma = noise_multiplier_for(request.epsilon, request.delta)?;
    let mut recipes = vec![Recipe::new(Class::Identity)];
    let named = request.recipes.clone().unwrap_or_else(|| recipes_for(&schedule));
    recipes.extend(named.into_iter().filter(|recipe| recipe.class != Class::Identity));
    let mut candidates = recipes
        .into_par_iter()
        .map(|recipe| candidate(request, &schedule, recipe, sigma))
        .collect::<Result<Vec<_>>>()?;
    let independent = candidates[0].objective(request.objective);
    for candidate in &mut candidates {
        candidate.relative_to_independent = candidate.objective(request.objective) / independent;
    }
    let chosen = least(request, &candidates)?;
    let plan = plan_of(request, &schedule, &candidates[chosen])?;
    Ok(Choice { candidates, chosen, plan })
}

fn least(request: &Request, candidates: &[Candidate]) -> Result<usize> {
    let names_another = candidates.len() > 1 && request.recipes.is_some();
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
            antinoise_input::InvalidParameter::new("memory", memory, must_be).into()
        })
}

fn candidate(request: &Request, schedule: &Schedule, recipe: Recipe, sigma: f64) -> Result<Candidate> {
    let problem = Problem {
        steps: schedule.steps,
        workload: request.workload.clone(),
        participation: schedule.participation.clone(),
        objective: request.objective,
    };
    let strategy = recipe.design(&problem)?.value;
    let loss = loss::of(&strategy, &problem.workload, &problem.participation, request.adjacency)?;
    let scale = sigma * request.clip_norm
        / schedule.sampler.expected_batch_size(request.examples, request.batch_size);
    let vectors = strategy.mechanism().recursion()?.state_vectors() as u64;
    Ok(Candidate {
        recipe,
        noise_multiplier: sigma,
        max_loss: loss.max_loss * scale,
        rms_loss: loss.rms_loss * scale,
        relative_to_independent: 1.0,
        state_bytes: vectors.saturating_mul(request.dim as u64).saturating_mul(BYTES_PER_COORDINATE),
        strategy,
        loss,
    })
}

/// Banded Toeplitz at the powers of 2 up to the separation and at the separation itself, and BLTs.
fn recipes_for(schedule: &Schedule) -> Vec<Recipe> {
    let (b, _) = schedule.participation.separation(schedule.steps);
    let most = match schedule.participation {
        Participation::FullBatch => schedule.steps.min(64),
        _ => b.min(MOST_BANDS),
    };
    let mut bands: Vec<usize> =
        std::iter::successors(Some(2), |bands| Some(2 * bands)).take_while(|&bands| bands < most).collect();
    bands.extend((most > 1).then_some(most));
    let banded =
        bands.into_iter().map(|bands| Recipe { bands: Some(bands), ..Recipe::new(Class::BandedToeplitz) });
    let blt = ORDERS.map(|order| Recipe { order: Some(order), ..Recipe::new(Class::Blt) });
    banded.chain(blt).collect()
}
