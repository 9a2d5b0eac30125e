//! Which mechanisms are tried for a request.

use antinoise_input::InvalidParameter;
use antinoise_mechanism::optimize::Objective;
use antinoise_mechanism::strategy::StrategySpec;
use antinoise_mechanism::{Adjacency, Class, Participation};
use rayon::prelude::*;

use crate::candidate::Candidate;
use crate::{Request, Result, Schedule, Setting, bins};

/// Most bands that are tried when none are named: 5000 bands over 80,000 steps are designed and accounted in half a minute on
/// two cores. With as many bands as groups, sampling is never worse than batches in turn.
const MOST_BANDS: usize = 1 << 14;
/// Most buffers. More than six hardly ever lower a loss.
const ORDERS: std::ops::RangeInclusive<usize> = 1..=8;
/// The share of its loss that a BLT must win by another buffer.
const IDLE: f64 = 1e-4;
/// Most steps for which a dense strategy is optimised: 15 s on two busy cores. Beyond, two runs of such strategies.
const MOST_DENSE_STEPS: usize = 1280;
/// The same for the worst step's loss, whose optimum is found in more rounds.
const MOST_DENSE_STEPS_FOR_MAX: usize = 160;
/// Most steps for trees, whose rows are written out.
const MOST_TREE_STEPS: usize = 1 << 14;
/// Most of n^2 x bands for which every entry of the bands is optimised, or columns are scaled to norm 1: 10 s on two busy
/// cores.
const MOST_FREE_ENTRIES: usize = 200_000_000;
/// Coefficients of banded inverses, which can do without state, where memory is short.
const INVERSE_BANDS: [usize; 4] = [4, 8, 16, 32];
/// The steps over which a banded inverse is designed in seconds.
const MOST_INVERSE_STEPS: usize = 1 << 14;

/// A mechanism that could not be designed or calibrated, and why.
pub(crate) type Failure = (StrategySpec, crate::Error);

/// What is tried: its spec, and whether examples are sampled anew for each of its turns.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Trial {
    spec: StrategySpec,
    amplified: bool,
}

/// The mechanisms that the request names, after independent noise.
pub(crate) fn named(request: &Request, specs: &[StrategySpec]) -> Result<Vec<Candidate>> {
    if request.setting == Setting::BMinSep {
        return in_min_sep(request, specs);
    }
    let others = specs.iter().filter(|spec| spec.class != Class::Identity);
    let all: Vec<_> = std::iter::once(&StrategySpec::new(Class::Identity)).chain(others).copied().collect();
    let trial = |&spec| Trial { spec, amplified: request.setting == Setting::Poisson && is_banded(spec) };
    let made = all.par_iter().map(|spec| candidate(request, trial(spec))).collect::<Result<Vec<_>>>()?;
    Ok(made.into_iter().map(|found| in_bins(request, &found, f64::INFINITY).unwrap_or(found)).collect())
}

/// Poisson batches of independent noise, which nobody sits out, and `specs`, which must have bands, under b-min-sep sampling.
fn in_min_sep(request: &Request, specs: &[StrategySpec]) -> Result<Vec<Candidate>> {
    let schedule = request.schedule()?;
    let independent = Candidate::amplified(request, &schedule, StrategySpec::new(Class::Identity))?;
    let mut found = vec![independent];
    for spec in specs.iter().filter(|spec| spec.class != Class::Identity) {
        if !is_banded(*spec) {
            let must_be =
                "one with bands, which b-min-sep sampling needs (identity, banded-toeplitz:B, banded:B)";
            return Err(InvalidParameter::new("strategy", spec, must_be).into());
        }
        let banded = Candidate::amplified(request, &schedule, *spec)?;
        found.push(banded.in_min_sep(request)?.shown(request)?);
    }
    Ok(found)
}

/// b-min-sep sampling for the number of Toeplitz bands that is best under block-cyclic Poisson sampling, and for twice as many.
fn fitting_min_sep(request: &Request) -> Result<(Vec<Candidate>, Vec<Failure>)> {
    let most = most_bands(request, &unsampled(request).schedule()?);
    let trials: Vec<_> = ladder(most).map(|b| Trial { spec: toeplitz(b), amplified: true }).collect();
    let (tried, failures) = all(request, &trials);
    let best = least(&tried, request.objective, true).and_then(|best| best.spec.bands);
    let bands = best.into_iter().flat_map(|best| [best, 2 * best]).filter(|&bands| bands <= most);
    let specs: Vec<_> = bands.map(toeplitz).collect();
    Ok((in_min_sep(request, &specs)?, failures))
}

/// The same in bins, with the noise that its claim was shown for, where that needs less and its loss is at most `most`.
fn in_bins(request: &Request, cyclic: &Candidate, most: f64) -> Option<Candidate> {
    let bins = request.examples / request.batch_size;
    let may = request.setting == Setting::Poisson && request.adjacency == Adjacency::ZeroOut;
    if !may || cyclic.is_amplified() || !bins::is_affordable(bins, cyclic.schedule.steps) {
        return None;
    }
    let sought = cyclic.in_bins(request, bins).ok()?;
    if sought.objective(request.objective) > most {
        return None;
    }
    let found = sought.shown(request).ok()?;
    (found.noise_multiplier < cyclic.noise_multiplier).then_some(found)
}

/// Of those in cyclic batches, puts the best BLT and the best of the others that can be in bins where they may then be chosen: to
/// show a claim takes seconds.
fn put_in_bins(request: &Request, found: &mut [Candidate]) {
    let mut order: Vec<_> = (0..found.len()).collect();
    order.sort_by(|&i, &j| {
        let loss = |i: usize| found[i].objective(request.objective);
        loss(i).total_cmp(&loss(j))
    });
    let least = order.first().map_or(f64::INFINITY, |&i| found[i].objective(request.objective));
    let most = least * (1.0 + request.tolerance);
    for is_blt in [true, false] {
        let of = order.iter().filter(|&&i| (found[i].spec.class == Class::Blt) == is_blt);
        if let Some((i, better)) = of.filter_map(|&i| Some((i, in_bins(request, &found[i], most)?))).next() {
            found[i] = better;
        }
    }
}

/// Those that fit the request, independent noise first: at first few numbers of Toeplitz bands, then between the best of them,
/// and with every entry free; dense strategies, BLTs and trees. And those that could not be made.
pub(crate) fn fitting(request: &Request) -> Result<(Vec<Candidate>, Vec<Failure>)> {
    if request.setting == Setting::BMinSep {
        return fitting_min_sep(request);
    }
    let sampled = request.setting == Setting::Poisson;
    let independent =
        candidate(request, Trial { spec: StrategySpec::new(Class::Identity), amplified: sampled })?;
    let unsampled = unsampled(request).schedule()?;
    let most = most_bands(request, &unsampled);
    let mut trials: Vec<_> = ladder(most).map(|b| Trial { spec: toeplitz(b), amplified: sampled }).collect();
    trials
        .extend(other_classes(request, &unsampled).into_iter().map(|spec| Trial { spec, amplified: false }));
    let (mut first, mut failures) = all(request, &trials);
    drop_idle_buffers(&mut first, request.objective);
    let (second, more) = all(request, &refined(request, unsampled.steps, most, &first));
    failures.extend(more);
    if request.thorough {
        put_in_bins(request, &mut first);
    }
    Ok((std::iter::once(independent).chain(first).chain(second).collect(), failures))
}

/// What is tried after `first`: numbers of Toeplitz bands near the best of them, up to `most`, and its better forms.
fn refined(request: &Request, steps: usize, most: usize, first: &[Candidate]) -> Vec<Trial> {
    let amplified = request.setting == Setting::Poisson;
    let Some(best) = least(first, request.objective, amplified) else { return Vec::new() };
    let bands = best.spec.bands.unwrap_or(1);
    let near = if amplified { near(bands, most) } else { Vec::new() };
    let untried = near.into_iter().map(toeplitz).filter(|spec| first.iter().all(|c| c.spec != *spec));
    let forms = if request.thorough { best_forms(bands, steps) } else { Vec::new() };
    untried.chain(forms).map(|spec| Trial { spec, amplified }).collect()
}

/// The request where nothing is sampled.
fn unsampled(request: &Request) -> Request {
    match request.setting {
        Setting::Poisson | Setting::BMinSep => request.under(Setting::Cyclic),
        _ => request.clone(),
    }
}

fn all(request: &Request, trials: &[Trial]) -> (Vec<Candidate>, Vec<Failure>) {
    let made: Vec<_> = trials.par_iter().map(|&trial| (trial.spec, candidate(request, trial))).collect();
    let (mut found, mut failures) = (Vec::new(), Vec::new());
    for (spec, made) in made {
        match made {
            Ok(candidate) => found.push(candidate),
            Err(why) => failures.push((spec, why)),
        }
    }
    (found, failures)
}

fn candidate(request: &Request, trial: Trial) -> Result<Candidate> {
    match trial.amplified {
        true => Candidate::amplified(request, &request.schedule()?, trial.spec),
        false => {
            let request = unsampled(request);
            Candidate::designed(&request, request.schedule()?, trial.spec)
        }
    }
}

/// Drops BLTs that a buffer more makes better by less than a ten-thousandth.
fn drop_idle_buffers(found: &mut Vec<Candidate>, objective: Objective) {
    let mut least = f64::INFINITY;
    found.retain(|c| {
        let keeps = c.spec.class != Class::Blt || c.objective(objective) < (1.0 - IDLE) * least;
        if c.spec.class == Class::Blt {
            least = least.min(c.objective(objective));
        }
        keeps
    });
}

/// The Toeplitz bands of least loss among them.
fn least(found: &[Candidate], objective: Objective, amplified: bool) -> Option<&Candidate> {
    let banded = |c: &&Candidate| c.spec.class == Class::BandedToeplitz && c.is_amplified() == amplified;
    found.iter().filter(banded).min_by(|x, y| x.objective(objective).total_cmp(&y.objective(objective)))
}

/// The classes whose noise sampling amplifies by a theorem. One that restarts has blocks with as many bands.
fn is_banded(spec: StrategySpec) -> bool {
    matches!(spec.class, Class::Identity | Class::BandedToeplitz | Class::Banded)
}

fn toeplitz(bands: usize) -> StrategySpec {
    StrategySpec { bands: Some(bands), ..StrategySpec::new(Class::BandedToeplitz) }
}

/// Up to the separation, or the groups that a batch allows: columns of a unit's participations are then orthogonal.
fn most_bands(request: &Request, unsampled: &Schedule) -> usize {
    let b = unsampled.scheme.participation().separation(unsampled.steps).min_sep;
    let is_sampled = matches!(request.setting, Setting::Poisson | Setting::BMinSep);
    let groups = if is_sampled { request.examples / request.batch_size } else { b };
    groups.min(unsampled.steps).min(MOST_BANDS)
}

/// The powers of 2 below `most`, from `first` on, and `most` itself.
pub(crate) fn powers_up_to(first: usize, most: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(first), |bands| Some(2 * bands))
        .take_while(move |&bands| bands < most)
        .chain((most >= first).then_some(most))
}

/// Numbers of bands to start from: powers of 2 up to 64, then of 4, and `most`. Long bands over many steps take seconds each.
fn ladder(most: usize) -> impl Iterator<Item = usize> {
    let next = |&bands: &usize| Some(if bands < 64 { 2 * bands } else { 4 * bands });
    std::iter::successors(Some(2), next)
        .take_while(move |&bands| bands < most && (bands < 64 || bands <= most / 2))
        .chain((most >= 2).then_some(most))
}

/// Half to twice the bands, in steps of the root of 2: where sampling amplifies, the best number lies in between.
fn near(bands: usize, most: usize) -> Vec<usize> {
    let factors = [0.5, 0.5f64.sqrt(), 2f64.sqrt(), 2.0];
    let scaled = factors.map(|factor| (factor * bands as f64).round() as usize);
    scaled.into_iter().filter(|&b| b > 1 && b <= most).collect()
}

/// Bands with columns of norm 1, and with every entry free: a few percent better than Toeplitz ones, over few enough steps. As
/// many bands as steps are a dense strategy.
fn best_forms(bands: usize, steps: usize) -> Vec<StrategySpec> {
    let work = steps.saturating_mul(steps).saturating_mul(bands);
    if bands < 2 || bands >= steps || work > MOST_FREE_ENTRIES {
        return Vec::new();
    }
    let free = StrategySpec { bands: Some(bands), ..StrategySpec::new(Class::Banded) };
    vec![StrategySpec { column_normalize: true, ..toeplitz(bands) }, free]
}

/// BLTs, dense strategies where they can be optimised, trees to compare with, banded inverses where memory is short.
fn other_classes(request: &Request, unsampled: &Schedule) -> Vec<StrategySpec> {
    let (steps, participation) = (unsampled.steps, unsampled.scheme.participation());
    let sized = |class, bands| StrategySpec { bands: Some(bands), ..StrategySpec::new(class) };
    let mut specs: Vec<_> =
        ORDERS.map(|order| StrategySpec { order: Some(order), ..StrategySpec::new(Class::Blt) }).collect();
    // At least b steps apart, no dense strategy is known to beat bands with every entry free.
    if request.thorough && !matches!(participation, Participation::MinSep { .. }) {
        let most =
            if request.objective == Objective::Max { MOST_DENSE_STEPS_FOR_MAX } else { MOST_DENSE_STEPS };
        let runs = steps.div_ceil(most);
        let restarts = (runs > 1).then_some(runs);
        specs.extend((runs <= 2).then_some(StrategySpec { restarts, ..StrategySpec::new(Class::Dense) }));
    }
    if steps <= MOST_TREE_STEPS {
        let participations = participation.separation(steps).max_participations;
        let restarts = (participations > 1).then_some(participations);
        specs.push(StrategySpec { restarts, ..StrategySpec::new(Class::HonakerFull) });
    }
    if request.memory.is_some() && steps <= MOST_INVERSE_STEPS {
        specs.extend(INVERSE_BANDS.iter().filter(|&&b| b < steps).map(|&b| sized(Class::BandedInverse, b)));
    }
    specs
}
