//! The choice among the candidates for a request.

use antinoise_input::InvalidParameter;
use antinoise_mechanism::AnyStrategy;
use antinoise_mechanism::design::StrategySpec;

use super::candidate::Candidate;
use super::trials;
use super::work::Work;
use crate::{Plan, Request, Result, VerifiedPlan};

/// Noise states of up to this many bytes count as equally small, since a model in training needs more.
const NEGLIGIBLE_STATE: u64 = 256 << 20;
/// Losses whose relative difference is at most this count as equal, whatever the request's tolerance is.
const NEGLIGIBLE_LOSS: f64 = 1e-4;

/// The result of a search: the candidates, the chosen one and its plan.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Choice {
    /// All candidates, in the order in which they were tried; the first is independent noise.
    pub candidates: Vec<Candidate>,
    /// Independent noise with the other kind of batches: Poisson (DP-SGD) if the request has cyclic batches,
    /// and cyclic if it has Poisson batches. Empty if only one kind is possible: for users, for streams, and
    /// for single passes that are too short to sample.
    pub baselines: Vec<Candidate>,
    /// Index into `candidates`.
    pub chosen: usize,
    /// The chosen candidate's plan.
    pub plan: VerifiedPlan,
    /// Mechanisms that were excluded for reasons other than their loss.
    pub rejected: Vec<Rejected>,
}

/// A mechanism that was excluded for a reason other than its loss, and the reason.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Rejected {
    /// Class and size.
    pub spec: StrategySpec,
    /// Reason for the exclusion, in a few words.
    pub reason: String,
}

impl Choice {
    /// The plan of a baseline.
    ///
    /// # Errors
    /// When no privacy claim can be made for the baseline.
    ///
    /// # Panics
    /// When `baseline` is not an index into `baselines`.
    pub fn plan_of_baseline(&self, request: &Request, baseline: usize) -> Result<VerifiedPlan> {
        self.baselines[baseline].plan(request, &|_, _| ())
    }

    /// The plan of `candidates[candidate]`, for the same request.
    ///
    /// # Errors
    /// When no privacy claim can be made for the candidate.
    ///
    /// # Panics
    /// When `candidate` is not an index into `candidates`.
    pub fn plan_of(&self, request: &Request, candidate: usize) -> Result<VerifiedPlan> {
        self.candidates[candidate].plan(request, &|_, _| ())
    }

    /// Index of the candidate of least loss within the request's limits on memory and time, whatever the size
    /// of its noise state.
    pub fn least(&self, request: &Request) -> usize {
        least(request, &self.candidates, &within(request, &self.candidates)).unwrap_or(self.chosen)
    }

    /// Indices of the Pareto-optimal candidates (no other has both a smaller loss and a smaller noise state),
    /// by increasing state.
    pub fn pareto_front(&self, request: &Request) -> Vec<usize> {
        let loss = |i: usize| loss(request, &self.candidates, i);
        let mut order: Vec<_> = (0..self.candidates.len()).collect();
        order.sort_by(|&i, &j| {
            let state = |i: usize| self.candidates[i].state_vectors;
            state(i).cmp(&state(j)).then(loss(i).total_cmp(&loss(j)))
        });
        let mut least = f64::INFINITY;
        order.retain(|&i| {
            let better = loss(i) < least;
            least = least.min(loss(i));
            better
        });
        order
    }
}

/// Compares independent noise with the mechanisms that fit the request. Among the mechanisms within the
/// limits on memory and time whose loss exceeds the least one by at most the fraction [`Request::tolerance`],
/// the one with the smallest noise state is chosen. States of up to 256 MiB count as equal; among these the
/// least loss decides.
///
/// If `request.specs` or `request.strategies` names mechanisms, one of them is chosen.
///
/// In the Poisson setting, strategies under amplified Poisson sampling compete with strategies under
/// balls-in-bins sampling, if that can be accounted for, and in cyclic batches. The plan names its sampler.
///
/// # Errors
/// When the request is not valid, or no named mechanism fits the memory and the time.
///
/// ```
/// use antinoise_plan::{Length, Request, Setting, choose};
/// let setting = Setting::Federated { min_sep: 342, max_participations: None };
/// let mut request = Request::new(342_477, 1000, Length::Steps(2052), setting);
/// let choice = choose(&request)?;
/// assert_eq!(choice.candidates[choice.chosen].spec.to_string(), "banded-toeplitz:342");
/// // With many parameters, a small noise state is worth a few percent of loss.
/// request.dim = 4_000_000;
/// let choice = choose(&request)?;
/// assert_eq!(choice.candidates[choice.chosen].spec.to_string(), "varying-blt:4");
/// # Ok::<(), antinoise_plan::Error>(())
/// ```
pub fn choose(request: &Request) -> Result<Choice> {
    choose_with(request, &|_, _| ())
}

/// As [`choose`]. `progress` is called with the seconds of work done and expected so far, both estimates.
///
/// # Errors
/// As [`choose`].
pub fn choose_with(request: &Request, progress: &(dyn Fn(f64, f64) + Sync)) -> Result<Choice> {
    request.check()?;
    let work = Work::new(progress);
    let (mut candidates, failures) = if request.names_mechanisms() {
        let specs = request.specs.as_deref().unwrap_or_default();
        (trials::named(request, specs, &request.strategies, &work)?, Vec::new())
    } else {
        trials::fitting(request, &work)?
    };
    let independent = candidates[0].clone();
    let mut baselines = baselines(request, &work);
    for candidate in candidates.iter_mut().chain(&mut baselines) {
        candidate.relative_to(&independent, request.objective);
    }
    let mut rejected: Vec<_> =
        failures.into_iter().map(|(spec, error)| Rejected { spec, reason: error.to_string() }).collect();
    let (chosen, plan) = loop {
        let chosen = chosen(request, &candidates)?;
        let plan = candidates[chosen].plan(request, &|_, _| ())?;
        if !candidates[chosen].add_rounding(&plan, request, &independent) {
            break (chosen, plan);
        }
    };
    rejected.extend(
        candidates.iter().filter_map(|c| Some(Rejected { spec: c.spec, reason: c.excess(request)? })),
    );
    Ok(Choice { candidates, baselines, chosen, plan, rejected })
}

impl Plan {
    /// Makes the plan of a given strategy: noise, sensitivity and loss are computed from its matrix. If the
    /// setting samples batches, a strategy with at most N / B bands is amplified.
    ///
    /// ```
    /// use antinoise_linear::Matrix;
    /// use antinoise_mechanism::AnyStrategy;
    /// use antinoise_plan::{Length, Plan, Request, Setting};
    /// let request = Request::new(1000, 250, Length::Epochs(1), Setting::Single);
    /// let c = Matrix::from_fn(4, 4, |i, j| 1.0 / (1.0 + i.abs_diff(j) as f64)); // not triangular
    /// let plan = Plan::of_strategy(&request, AnyStrategy::of_matrix(&c)?)?;
    /// assert_eq!((plan.strategy.class().name(), plan.steps), ("dense", 4));
    /// # Ok::<(), antinoise_plan::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the request is not valid, the strategy has another number of steps, or no privacy claim can be
    /// made for it within the request's memory and time.
    pub fn of_strategy(request: &Request, strategy: AnyStrategy) -> Result<VerifiedPlan> {
        Ok(choose(&Request { specs: None, strategies: vec![strategy], ..request.clone() })?.plan)
    }
}

/// Independent noise with the other kind of batches: sampled if the request has cyclic batches, and cyclic if
/// it has sampled ones. Empty for streams and federated settings, and if the privacy target cannot be
/// reached.
fn baselines(request: &Request, work: &Work<'_>) -> Vec<Candidate> {
    let Some(other) = request.setting.compared() else { return Vec::new() };
    trials::named(&request.under(other), &[], &[], work).unwrap_or_default()
}

/// The loss of candidate `i` that the request minimises.
fn loss(request: &Request, candidates: &[Candidate], i: usize) -> f64 {
    candidates[i].objective(request.objective)
}

/// The index of the first candidate that can be chosen: 0, independent noise, unless the request names
/// others.
fn first(request: &Request, candidates: &[Candidate]) -> usize {
    usize::from(request.names_mechanisms() && candidates.len() > 1)
}

/// The candidates that can be chosen and are within the limits.
fn within(request: &Request, candidates: &[Candidate]) -> Vec<usize> {
    let fits = |&i: &usize| candidates[i].excess(request).is_none();
    (first(request, candidates)..candidates.len()).filter(fits).collect()
}

fn least(request: &Request, candidates: &[Candidate], within: &[usize]) -> Option<usize> {
    let loss = |i: usize| loss(request, candidates, i);
    within.iter().copied().min_by(|&i, &j| loss(i).total_cmp(&loss(j)))
}

fn chosen(request: &Request, candidates: &[Candidate]) -> Result<usize> {
    let within = within(request, candidates);
    let Some(best) = least(request, candidates, &within) else {
        return Err(nothing_fits(request, candidates));
    };
    let loss = |i: usize| loss(request, candidates, i);
    let close =
        |most: f64, of: &[usize]| -> Vec<usize> { of.iter().copied().filter(|&i| loss(i) <= most).collect() };
    let state = |i: usize| candidates[i].state_bytes;
    let in_tolerance = close((1.0 + request.tolerance) * loss(best), &within);
    let least_state = in_tolerance.iter().map(|&i| state(i)).min().unwrap_or(0).max(NEGLIGIBLE_STATE);
    let small: Vec<usize> = in_tolerance.into_iter().filter(|&i| state(i) <= least_state).collect();
    let best = least(request, candidates, &small).unwrap_or(best);
    let equal = close((1.0 + NEGLIGIBLE_LOSS) * loss(best), &small);
    Ok(equal.into_iter().min_by_key(|&i| (state(i), i != best)).unwrap_or(best))
}

/// Returns the error for limits that all candidates exceed; it states the smallest sufficient limit.
fn nothing_fits(request: &Request, candidates: &[Candidate]) -> crate::Error {
    let may = &candidates[first(request, candidates)..];
    let whose =
        if request.names_mechanisms() { "of the named strategies" } else { "of the strategies tried" };
    let in_time: Vec<_> =
        may.iter().filter(|c| request.noise_time.is_none_or(|limit| c.noise_seconds <= limit)).collect();
    if in_time.is_empty() {
        let seconds = may.iter().map(|c| c.noise_seconds).fold(f64::INFINITY, f64::min);
        let must_be = format!("at least {seconds:.3} s, the estimate for the fastest {whose}");
        return InvalidParameter::new("noise_time", request.noise_time.unwrap_or(0.0), must_be).into();
    }
    let bytes = in_time.iter().map(|c| c.state_bytes).min().unwrap_or(0);
    let must_be = format!("at least {bytes} bytes, the smallest state {whose} within noise_time");
    InvalidParameter::new("memory", request.memory.unwrap_or(0), must_be).into()
}
