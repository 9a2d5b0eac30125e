//! The mechanisms that a search tries for a request.

use antinoise_input::InvalidParameter;
use antinoise_mechanism::design::{Objective, StrategySpec};
use antinoise_mechanism::strategy::VaryingBlt;
use antinoise_mechanism::{Adjacency, AnyStrategy, Class, Participation, Separation, Workload};
use rayon::prelude::*;

use super::buffers;
use super::candidate::Candidate;
use super::work::{B_MIN_SEP, CERTIFICATE, Work, expected};
use crate::verified::Progress;
use crate::{Request, Result, Schedule, Setting, monte_carlo};

/// Maximum number of bands in a search. Designing 5000 bands over 80,000 steps and computing their privacy
/// takes half a minute on two cores. With as many bands as groups, Poisson sampling is never worse than
/// cyclic batches.
const MAX_BANDS: usize = 1 << 14;
/// Maximum number of steps of a dense strategy, whose design then takes 15 s on two busy cores. Longer runs
/// restart a dense strategy once.
const MAX_DENSE_STEPS: usize = 1280;
/// As [`MAX_DENSE_STEPS`], for the max loss, whose solver needs more iterations.
const MAX_DENSE_STEPS_FOR_MAX: usize = 160;
/// As [`MAX_DENSE_STEPS_FOR_MAX`], for prefix sums and few participations, where the solver takes about 20
/// iterations: one to three seconds.
const MAX_DENSE_STEPS_FOR_MAX_OF_PREFIX: usize = 640;
/// As [`MAX_DENSE_STEPS`], for min-sep schemas with several participations, whose worst patterns are searched
/// for.
const MAX_DENSE_STEPS_OF_MIN_SEP: usize = 64;
/// Maximum number of participations for [`MAX_DENSE_STEPS_FOR_MAX_OF_PREFIX`].
const FEW_PARTICIPATIONS: usize = 4;
/// Maximum number of steps of trees, whose rows are held in memory.
const MAX_TREE_STEPS: usize = 1 << 14;
/// Maximum n^2 x bands for which all entries of the bands are optimised, or columns are scaled to norm 1;
/// this then takes 10 s on two busy cores.
const MAX_FREE_ENTRIES: usize = 200_000_000;
/// As [`MAX_FREE_ENTRIES`], for numbers of bands near the best one of Toeplitz strategies.
const MAX_FREE_ENTRIES_NEAR: usize = 10_000_000;
/// Largest number of steps for which the columns of a BLT are scaled to norm 1.
const MAX_NORMALIZED_BLT_STEPS: usize = 1 << 14;
/// Numbers of bands of banded inverses, whose noise state is small, for requests with a memory limit; and the
/// number of them that are designed in a tenth of a second.
const INVERSE_BANDS: [usize; 4] = [4, 8, 16, 32];
const QUICK_INVERSE_BANDS: usize = 2;
/// Degrees of rational strategies for requests with a memory limit and several participations, and the
/// largest number of steps for which they are designed in seconds.
const RATIONAL_ORDERS: [usize; 3] = [2, 4, 8];
const MAX_RATIONAL_STEPS: usize = 4096;
/// Numbers of buffers of BLTs whose weights vary by step, of which the first is for models whose size is
/// known, and the largest number of steps for which they are designed within 8 s on a busy core.
const VARYING_ORDERS: [usize; 2] = [2, 4];
const MAX_VARYING_STEPS: usize = 4096;
/// As [`MAX_VARYING_STEPS`], for the max loss, which is minimised with five exponents in turn, and for the
/// last iterate, which has many rows.
const MAX_VARYING_STEPS_OF_LONG_DESIGNS: usize = 2048;
/// Largest number of steps for which a banded inverse is designed in seconds.
const MAX_INVERSE_STEPS: usize = 1 << 14;

/// A mechanism that could not be designed or calibrated, and the error.
pub(crate) type Failure = (StrategySpec, crate::Error);

/// A mechanism to try: its spec, and whether block-cyclic Poisson sampling amplifies it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Trial {
    spec: StrategySpec,
    amplified: bool,
}

/// The candidates of `specs` and `given`, preceded by independent noise.
pub(super) fn named(
    request: &Request,
    specs: &[StrategySpec],
    given: &[AnyStrategy],
    work: &Work<'_>,
) -> Result<Vec<Candidate>> {
    if request.setting == Setting::BMinSep {
        return with_b_min_sep(request, specs, given, work);
    }
    let unsampled = unsampled(request).schedule()?;
    let given = given.par_iter().map(|strategy| Candidate::given(request, &unsampled, strategy));
    let others = specs.iter().filter(|spec| spec.class != Class::Identity);
    let all: Vec<_> = std::iter::once(&StrategySpec::new(Class::Identity)).chain(others).copied().collect();
    let trial = |&spec| Trial { spec, amplified: request.setting == Setting::Poisson && is_banded(spec) };
    work.expect(CERTIFICATE * given.len() as f64);
    all.iter().for_each(|spec| work.expect(CERTIFICATE + expected(*spec, unsampled.steps)));
    let made = all.par_iter().map(|spec| {
        let made = candidate(request, trial(spec));
        work.did(expected(*spec, unsampled.steps));
        made
    });
    let made = made.chain(given).collect::<Result<Vec<_>>>()?;
    let certified = made.into_iter().map(|found| {
        work.sampled(CERTIFICATE, |drawn| {
            with_balls_in_bins(request, &found, f64::INFINITY, drawn).unwrap_or(found)
        })
    });
    Ok(certified.collect())
}

/// The candidates of `specs` and `given`, which must be banded, under b-min-sep sampling, preceded by
/// independent noise under Poisson sampling.
fn with_b_min_sep(
    request: &Request,
    specs: &[StrategySpec],
    given: &[AnyStrategy],
    work: &Work<'_>,
) -> Result<Vec<Candidate>> {
    let schedule = request.schedule()?;
    let independent = Candidate::with_poisson(request, &schedule, StrategySpec::new(Class::Identity))?;
    let mut found = vec![independent];
    let others: Vec<_> = specs.iter().filter(|spec| spec.class != Class::Identity).collect();
    work.expect((others.len() + given.len()) as f64 * B_MIN_SEP);
    let simulated = |banded: Candidate| {
        work.sampled(B_MIN_SEP, |drawn| banded.with_b_min_sep(request)?.certified(request, drawn))
    };
    for spec in others {
        if !is_banded(*spec) {
            let must_be =
                "one with bands, which b-min-sep sampling needs (identity, banded-toeplitz:B, banded:B)";
            return Err(InvalidParameter::new("strategy", spec, must_be).into());
        }
        let banded = Candidate::with_poisson(request, &schedule, *spec)?;
        found.push(simulated(banded)?);
    }
    for strategy in given {
        let banded = Candidate::given(request, &schedule, strategy)?;
        if !banded.is_amplified() {
            let must_be = "one with at most N / B bands, for N examples in batches of B, which b-min-sep sampling needs";
            return Err(InvalidParameter::new("strategy", banded.name(), must_be).into());
        }
        found.push(simulated(banded)?);
    }
    Ok(found)
}

/// Candidates under b-min-sep sampling, and the mechanisms that failed. The numbers of Toeplitz bands are the
/// best one under block-cyclic Poisson sampling and twice that number.
fn fitting_min_sep(request: &Request, work: &Work<'_>) -> Result<(Vec<Candidate>, Vec<Failure>)> {
    let unsampled = unsampled(request).schedule()?;
    let most = most_bands(request, &unsampled);
    let trials: Vec<_> = ladder(most).map(|b| Trial { spec: toeplitz(b), amplified: true }).collect();
    let (tried, failures) = all(request, unsampled.steps, &trials, work);
    let best =
        best_of(Class::BandedToeplitz, &tried, request.objective, true).and_then(|best| best.spec.bands);
    let bands = best.into_iter().flat_map(|best| [best, 2 * best]).filter(|&bands| bands <= most);
    let specs: Vec<_> = bands.map(toeplitz).collect();
    Ok((with_b_min_sep(request, &specs, &[], work)?, failures))
}

/// The C of `cyclic` under balls-in-bins sampling with certified noise, if it then needs less noise and its
/// loss is at most `max_loss`.
fn with_balls_in_bins(
    request: &Request,
    cyclic: &Candidate,
    max_loss: f64,
    drawn: &Progress<'_>,
) -> Option<Candidate> {
    let bins = request.examples / request.batch_size;
    if !may_be_in_bins(request, cyclic.schedule.steps) || cyclic.is_amplified() {
        return None;
    }
    let estimated = cyclic.with_balls_in_bins(request, bins).ok()?;
    if estimated.objective(request.objective) > max_loss {
        return None;
    }
    let found = estimated.certified(request, drawn).ok()?;
    (found.noise_multiplier < cyclic.noise_multiplier).then_some(found)
}

/// Whether examples may be put in bins, and the accountant then takes seconds. The sizes of bins are random,
/// and the proof for batches that are cut is that of Poisson sampling.
fn may_be_in_bins(request: &Request, steps: usize) -> bool {
    request.setting == Setting::Poisson
        && request.adjacency == Adjacency::ZeroOut
        && request.max_batch_size.is_none()
        && monte_carlo::is_affordable(request.examples / request.batch_size, steps)
}

/// Computes the noise of the best cyclic BLT, and of the best other candidate, again under balls-in-bins
/// sampling, if they could then be chosen. There are only two, since certifying a claim takes seconds.
fn amplify_best_by_bins(request: &Request, found: &mut [Candidate], work: &Work<'_>) {
    work.expect(2.0 * CERTIFICATE);
    let mut order: Vec<_> = (0..found.len()).collect();
    order.sort_by(|&i, &j| {
        let loss = |i: usize| found[i].objective(request.objective);
        loss(i).total_cmp(&loss(j))
    });
    let least = order.first().map_or(f64::INFINITY, |&i| found[i].objective(request.objective));
    let max_loss = least * (1.0 + request.tolerance);
    for is_blt in [true, false] {
        let mut of = order.iter().filter(|&&i| (found[i].spec.class == Class::Blt) == is_blt);
        let better = work.sampled(CERTIFICATE, |drawn| {
            of.find_map(|&i| Some((i, with_balls_in_bins(request, &found[i], max_loss, drawn)?)))
        });
        if let Some((i, better)) = better {
            found[i] = better;
        }
    }
}

/// Toeplitz bands that end where a unit comes back, under balls-in-bins sampling, if they could be chosen.
fn bands_in_bins(
    request: &Request,
    unsampled: &Schedule,
    bands: usize,
    found: &[Candidate],
    work: &Work<'_>,
) -> Option<Candidate> {
    if bands < 2 || !may_be_in_bins(request, unsampled.steps) {
        return None;
    }
    work.expect(CERTIFICATE);
    let least = found.iter().map(|c| c.objective(request.objective)).fold(f64::INFINITY, f64::min);
    work.sampled(CERTIFICATE, |drawn| {
        let cyclic = Candidate::designed(request, unsampled.clone(), toeplitz(bands)).ok()?;
        with_balls_in_bins(request, &cyclic, least * (1.0 + request.tolerance), drawn)
    })
}

/// The candidates that fit the request, with independent noise first, and the mechanisms that failed.
/// Toeplitz strategies are tried with a few numbers of bands, then with numbers near the best of them and
/// with every entry free; dense strategies, BLTs and trees are added.
pub(super) fn fitting(request: &Request, work: &Work<'_>) -> Result<(Vec<Candidate>, Vec<Failure>)> {
    let sampled = match request.setting {
        Setting::BMinSep => return fitting_min_sep(request, work),
        Setting::Poisson => true,
        Setting::Cyclic
        | Setting::Shuffled
        | Setting::Single
        | Setting::Stream
        | Setting::Federated { .. } => false,
    };
    let independent =
        candidate(request, Trial { spec: StrategySpec::new(Class::Identity), amplified: sampled })?;
    let unsampled = unsampled(request).schedule()?;
    let most = most_bands(request, &unsampled);
    let mut bands: Vec<usize> = ladder(most).collect();
    let in_memory = bands_in_memory(request).filter(|b| (2..=most).contains(b) && !bands.contains(b));
    bands.extend(in_memory);
    let mut trials: Vec<_> =
        bands.into_iter().map(|b| Trial { spec: toeplitz(b), amplified: sampled }).collect();
    trials
        .extend(other_classes(request, &unsampled).into_iter().map(|spec| Trial { spec, amplified: false }));
    let (mut first, mut failures) = all(request, unsampled.steps, &trials, work);
    buffers::drop_idle(&mut first, request.objective);
    let (second, more) =
        all(request, unsampled.steps, &refined(request, unsampled.steps, most, &first), work);
    failures.extend(more);
    let mut found: Vec<_> = std::iter::once(independent).chain(first).chain(second).collect();
    if request.thorough {
        amplify_best_by_bins(request, &mut found[1..], work);
        found.extend(bands_in_bins(request, &unsampled, most, &found, work));
    }
    Ok((found, failures))
}

/// The trials that follow `first`: numbers of Toeplitz bands near the best one within the limits, up to
/// `most`; strategies with these numbers of bands whose design takes longer; and BLTs with columns of norm 1.
fn refined(request: &Request, steps: usize, most: usize, first: &[Candidate]) -> Vec<Trial> {
    let amplified = request.setting == Setting::Poisson;
    let (mut bands, mut unamplified) = (Vec::new(), Vec::new());
    if let Some(b) = best_bands(request, first, amplified) {
        let near = if amplified { near(b, most) } else { Vec::new() };
        if request.thorough {
            bands.extend(best_forms(b, steps, MAX_FREE_ENTRIES));
            bands.extend(near.iter().flat_map(|&b| best_forms(b, steps, MAX_FREE_ENTRIES_NEAR)));
        }
        bands.extend(near.into_iter().map(toeplitz).filter(|spec| first.iter().all(|c| c.spec != *spec)));
    }
    if request.thorough && steps <= MAX_NORMALIZED_BLT_STEPS {
        let blts = first.iter().map(|c| c.spec).filter(|spec| spec.class == Class::Blt);
        unamplified.extend(blts.map(|spec| StrategySpec { column_normalize: true, ..spec }));
    }
    let trials = |specs: Vec<_>, amplified| specs.into_iter().map(move |spec| Trial { spec, amplified });
    trials(bands, amplified).chain(trials(unamplified, false)).collect()
}

/// The number of bands of the best Toeplitz candidate within the limits on memory and time, or of the best
/// one if none is.
fn best_bands(request: &Request, found: &[Candidate], amplified: bool) -> Option<usize> {
    let best = |found: &mut dyn Iterator<Item = _>| {
        best_of(Class::BandedToeplitz, found, request.objective, amplified)?.spec.bands
    };
    let within = &mut found.iter().filter(|c| c.excess(request).is_none());
    best(within).or_else(|| best(&mut found.iter()))
}

/// The same request with cyclic instead of sampled batches.
fn unsampled(request: &Request) -> Request {
    if request.setting.is_sampled() { request.under(Setting::Cyclic) } else { request.clone() }
}

/// The candidates of `trials`, and the mechanisms that failed. More and more BLT buffers are tried until
/// [`buffers::MAX_IDLE`] in a row gain nothing.
fn all(request: &Request, steps: usize, trials: &[Trial], work: &Work<'_>) -> (Vec<Candidate>, Vec<Failure>) {
    let seconds = |trial: &Trial| expected(trial.spec, steps);
    work.expect(trials.iter().map(seconds).sum());
    let tried = |ladder: &[Trial]| {
        let (mut made, mut least, mut idle) = (Vec::new(), f64::INFINITY, 0);
        for trial in ladder {
            if idle < buffers::MAX_IDLE {
                let found = candidate(request, *trial);
                let loss = found.as_ref().map_or(f64::INFINITY, |found| found.objective(request.objective));
                idle = if buffers::gains(loss, least) { 0 } else { idle + 1 };
                least = least.min(loss);
                made.push((trial.spec, found));
            }
            work.did(seconds(trial));
        }
        made
    };
    let ladders: Vec<_> =
        trials.chunk_by(|first, second| buffers::is_next(first.spec, second.spec)).collect();
    let made: Vec<_> = ladders.into_par_iter().map(tried).collect();
    let (mut found, mut failures) = (Vec::new(), Vec::new());
    for (spec, made) in made.into_iter().flatten() {
        match made {
            Ok(candidate) => found.push(candidate),
            Err(error) => failures.push((spec, error)),
        }
    }
    (found, failures)
}

fn candidate(request: &Request, trial: Trial) -> Result<Candidate> {
    match trial.amplified {
        true => Candidate::with_poisson(request, &request.schedule()?, trial.spec),
        false => {
            let request = unsampled(request);
            Candidate::designed(&request, request.schedule()?, trial.spec)
        }
    }
}

/// The candidate of `class` of least loss in `found`.
fn best_of<'a>(
    class: Class,
    found: impl IntoIterator<Item = &'a Candidate>,
    objective: Objective,
    amplified: bool,
) -> Option<&'a Candidate> {
    let of_class = |c: &&Candidate| c.spec.class == class && c.is_amplified() == amplified;
    found
        .into_iter()
        .filter(of_class)
        .min_by(|x, y| x.objective(objective).total_cmp(&y.objective(objective)))
}

/// Whether the class is banded, so that Poisson sampling amplifies privacy. A restarted strategy has the
/// bands of its block.
fn is_banded(spec: StrategySpec) -> bool {
    matches!(spec.class, Class::Identity | Class::BandedToeplitz | Class::Banded)
}

fn toeplitz(bands: usize) -> StrategySpec {
    StrategySpec { bands: Some(bands), ..StrategySpec::new(Class::BandedToeplitz) }
}

/// The maximum useful number of bands: the separation, or the number of disjoint batches. Up to this number,
/// the columns of a unit's participations are orthogonal.
fn most_bands(request: &Request, unsampled: &Schedule) -> usize {
    let b = unsampled.participation.separation(unsampled.steps).min_sep;
    let groups = if request.setting.is_sampled() { request.examples / request.batch_size } else { b };
    groups.min(unsampled.steps).min(MAX_BANDS)
}

/// The powers of 2 below `most`, from `first` on, and `most` itself.
pub(crate) fn powers_up_to(first: usize, most: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(first), |bands| Some(2 * bands))
        .take_while(move |&bands| bands < most)
        .chain((most >= first).then_some(most))
}

/// The first numbers of bands to try: powers of 2 up to 64, then powers of 4, and `most`. With many bands and
/// steps, each takes seconds.
fn ladder(most: usize) -> impl Iterator<Item = usize> {
    let next = |&bands: &usize| Some(if bands < 64 { 2 * bands } else { 4 * bands });
    std::iter::successors(Some(2), next)
        .take_while(move |&bands| bands < most && (bands < 64 || bands <= most / 2))
        .chain((most >= 2).then_some(most))
}

/// Numbers from half of `bands` to twice `bands`, by factors of sqrt(2), between which the optimum lies under
/// amplification.
fn near(bands: usize, most: usize) -> Vec<usize> {
    let factors = [0.5, 0.5f64.sqrt(), 2f64.sqrt(), 2.0];
    let scaled = factors.map(|factor| (factor * bands as f64).round() as usize);
    scaled.into_iter().filter(|&b| b > 1 && b <= most).collect()
}

/// Banded specs with columns of norm 1, and with every entry free. They are a few percent better than
/// Toeplitz bands, but their design time limits the number of steps. None if there are as many bands as
/// steps, which would be a dense strategy.
fn best_forms(bands: usize, steps: usize, most_work: usize) -> Vec<StrategySpec> {
    let work = steps.saturating_mul(steps).saturating_mul(bands);
    if bands < 2 || bands >= steps || work > most_work {
        return Vec::new();
    }
    let free = StrategySpec { bands: Some(bands), ..StrategySpec::new(Class::Banded) };
    vec![StrategySpec { column_normalize: true, ..toeplitz(bands) }, free]
}

/// The number of bands whose noise state takes all of the memory; `None` without a limit.
fn bands_in_memory(request: &Request) -> Option<usize> {
    let vector = request.arithmetic.bytes_per_coordinate().saturating_mul(request.dim as u64).max(1);
    Some(usize::try_from(request.memory? / vector).ok()?.saturating_add(1))
}

/// The number of steps up to which a dense strategy is designed in seconds.
fn max_dense_steps(request: &Request, participation: &Participation, steps: usize) -> usize {
    let separation = participation.separation(steps);
    if matches!(participation, Participation::MinSep { .. }) && separation.max_participations > 1 {
        return MAX_DENSE_STEPS_OF_MIN_SEP;
    }
    let is_fast = request.workload == Workload::Prefix && separation.max_participations <= FEW_PARTICIPATIONS;
    match request.objective {
        Objective::Rms => MAX_DENSE_STEPS,
        Objective::Max if is_fast => MAX_DENSE_STEPS_FOR_MAX_OF_PREFIX,
        Objective::Max => MAX_DENSE_STEPS_FOR_MAX,
    }
}

/// `blts`, and BLTs, dense strategies of up to `most_dense` steps and trees that restart in each epoch, whose
/// columns of different epochs are orthogonal.
fn with_restarts(
    blts: Vec<StrategySpec>,
    steps: usize,
    epoch_steps: usize,
    most_dense: usize,
) -> Vec<StrategySpec> {
    if !steps.is_multiple_of(epoch_steps) {
        return blts;
    }
    let mut classes = blts.clone();
    classes.extend((epoch_steps <= most_dense).then_some(StrategySpec::new(Class::Dense)));
    classes.extend((epoch_steps <= MAX_TREE_STEPS).then_some(StrategySpec::new(Class::HonakerFull)));
    let restarts = Some(steps / epoch_steps);
    blts.into_iter().chain(classes.into_iter().map(|spec| StrategySpec { restarts, ..spec })).collect()
}

/// Whether BLTs whose weights vary by step are designed in seconds, and better than other BLTs. Under a
/// min-sep schema that ends before the last step they are not, as the design is for disjoint patterns.
fn may_vary(request: &Request, participation: &Participation, steps: usize) -> bool {
    let Separation { min_sep, max_participations } = participation.separation(steps);
    let ends = max_participations > 1 && min_sep.saturating_mul(max_participations) < steps;
    if ends && matches!(participation, Participation::MinSep { .. }) {
        return false;
    }
    let is_long =
        request.objective == Objective::Max || matches!(request.workload, Workload::LastIterate { .. });
    let most = if is_long { MAX_VARYING_STEPS_OF_LONG_DESIGNS } else { MAX_VARYING_STEPS };
    steps <= most && VaryingBlt::is_optimised_for(&request.workload, steps).unwrap_or(false)
}

/// Specs of BLTs; of BLTs whose weights vary, dense strategies and trees for few enough steps; and of banded
/// inverses and rational strategies if memory is limited.
fn other_classes(request: &Request, unsampled: &Schedule) -> Vec<StrategySpec> {
    let (steps, participation) = (unsampled.steps, &unsampled.participation);
    let sized = |class, bands| StrategySpec { bands: Some(bands), ..StrategySpec::new(class) };
    let of_order = |class, order| StrategySpec { order: Some(order), ..StrategySpec::new(class) };
    let mut specs: Vec<_> = buffers::NUMBERS.map(|order| of_order(Class::Blt, order)).collect();
    if let Some(epoch_steps) = participation.epoch_steps() {
        return with_restarts(
            specs,
            steps,
            epoch_steps,
            max_dense_steps(request, &Participation::Single, epoch_steps),
        );
    }
    // With several participations in any steps, every set of steps is a pattern, and the search for the worst
    // ones takes longest.
    let any_steps = matches!(participation, Participation::MinSep { min_sep: 1, max_participations: 2.. });
    if request.thorough && !any_steps {
        let runs = steps.div_ceil(max_dense_steps(request, participation, steps));
        let restarts = (runs > 1).then_some(runs);
        specs.extend((runs <= 2).then_some(StrategySpec { restarts, ..StrategySpec::new(Class::Dense) }));
    }
    if request.thorough && may_vary(request, participation, steps) {
        let orders = if request.dim == 0 { &VARYING_ORDERS[1..] } else { &VARYING_ORDERS };
        specs.extend(orders.iter().map(|&order| of_order(Class::VaryingBlt, order)));
    }
    if steps <= MAX_TREE_STEPS {
        let participations = participation.separation(steps).max_participations;
        let restarts = (participations > 1).then_some(participations);
        specs.push(StrategySpec { restarts, ..StrategySpec::new(Class::HonakerFull) });
    }
    if let Some(most) = bands_in_memory(request).filter(|_| steps <= MAX_INVERSE_STEPS) {
        let tried = if request.thorough { INVERSE_BANDS.len() } else { QUICK_INVERSE_BANDS };
        let fitting = INVERSE_BANDS.iter().take(tried).filter(|&&b| b < steps && b <= most);
        specs.extend(fitting.map(|&b| sized(Class::BandedInverse, b)));
    }
    let comes_again = participation.separation(steps).max_participations > 1;
    if request.memory.is_some() && request.thorough && comes_again && steps <= MAX_RATIONAL_STEPS {
        specs.extend(RATIONAL_ORDERS.map(|order| of_order(Class::Rational, order)));
    }
    specs
}
