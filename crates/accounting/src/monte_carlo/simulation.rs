//! Importance sampling of a dominating pair: delta, epsilon, certified claims, and the noise for a privacy
//! target.

use antinoise_input::{in_open_unit, largest, non_negative, positive};

use sha2::{Digest, Sha256};

use super::{Direction, MonteCarlo, PILOT, Source, StatisticalDelta, Tally, half_width};
use crate::root::crossing;
use crate::{Bounds, Error, Gdp, Result, gaussian_noise_multiplier_upper};

/// Purposes of random streams. The tests of a sequence of epsilons use `FIGURE`, `FIGURE + 1`, ....
const FOR_PROPOSAL: u8 = 0;
const FOR_PILOT: u8 = 1;
const FIGURE: u8 = 2;

/// Bound on the change of a mean that comes from truncating the tails of normals at 8.5 standard deviations,
/// relative to the largest possible sample.
const TAILS: f64 = 1e-12;

/// The epsilons that are tested, relative to the pilot's suggestion, in order.
const LADDER: [f64; 9] = [1.01, 1.02, 1.03, 1.05, 1.07, 1.1, 1.2, 1.5, 2.0];

/// Tolerance of the pilot's suggestion, relative to the epsilon without amplification.
const SUGGESTION: f64 = 1e-3;
/// Maximum |ln(delta / target)| that the search for the suggestion uses; of larger values it uses only the
/// sign.
const FAR: f64 = 8.0;

/// Failure probability of one certified figure.
pub(crate) const CLAIM_FAILURE: f64 = 1e-20;
/// Target half-widths of confidence intervals, relative to the estimate: for the delta of a claim, and for
/// the lower bound that shows how tight the claim is.
const CLAIM_PRECISION: f64 = 0.05;
const ROUGH_PRECISION: f64 = 0.5;
/// Upper bound on the relative rounding error of a figure.
const EVALUATION: f64 = 1e-9;
/// Tolerance of the noise search, in ln(noise).
const TOLERANCE: f64 = 5e-4;
/// Step by which the search for a noise scale decreases ln(noise), from the noise without amplification.
const NOISE_STEP: f64 = 0.25;
/// Maximum number of these steps.
const MAX_NOISE_STEPS: usize = 40;

/// A dominating pair with several proposal distributions, whose importance weights are bounded.
pub(crate) trait Simulation: Sync {
    /// A proposal distribution.
    type Proposal: Clone;

    /// Whether both directions are sampled to the same half-width, that of the direction with the larger
    /// delta; otherwise each has its own half-width, relative to its delta.
    const SHARES_PRECISION: bool;
    /// Maximum number of samples of a claim in each direction.
    const MAX_CLAIM_SAMPLES: usize;
    /// Domain-separation label of the samples of this pair's claims.
    const CLAIM: &'static str;

    /// All numbers on which the pair's figures depend.
    fn numbers(&self) -> impl Iterator<Item = f64>;

    /// The largest norm of a mean, in units of the noise: `mu` of the unamplified mechanism.
    fn largest_norm(&self) -> f64;

    /// Candidate proposals for `epsilon`; at least one.
    fn proposals(&self, direction: Direction, epsilon: f64) -> Vec<Self::Proposal>;

    /// An upper bound on the weighted sample `(1 - e^{epsilon - loss})_+`.
    fn largest_sample(&self, direction: Direction, epsilon: f64, proposal: &Self::Proposal) -> f64;

    /// The sums over `count` weighted samples, which do not depend on the number of threads.
    fn tally(
        &self,
        direction: Direction,
        epsilon: f64,
        proposal: &Self::Proposal,
        count: usize,
        source: &Source,
    ) -> Tally;

    /// A function from ln(noise scale) to the predicted upper limit of a claim at `epsilon`, as
    /// [`predicted_upper`] predicts it for noise multiplied by that scale.
    fn upper_by_noise(&self, epsilon: f64) -> impl Fn(f64) -> f64;
}

/// The logarithm of the maximum over d >= 0 of `(1 - e^-d) e^{-tilt d}`, where d is the loss minus epsilon.
pub(crate) fn ln_largest_excess(tilt: f64) -> f64 {
    if tilt > 0.0 { -tilt * (1.0 / tilt).ln_1p() - tilt.ln_1p() } else { 0.0 }
}

/// Returns the proposal with the smallest predicted upper confidence limit; `tally` draws samples from a
/// proposal.
fn best_proposal<P: Simulation>(
    pair: &P,
    direction: Direction,
    epsilon: f64,
    settings: &MonteCarlo,
    tally: impl Fn(&P::Proposal) -> Tally,
) -> P::Proposal {
    let upper = |proposal: &P::Proposal| {
        let (tally, largest) = (tally(proposal), pair.largest_sample(direction, epsilon, proposal));
        let samples = tally.rescaled_to(settings.samples(&tally, largest));
        tally.mean() + half_width(&samples, largest, 0.25 * settings.failure_probability)
    };
    let mut tried =
        pair.proposals(direction, epsilon).into_iter().map(|proposal| (upper(&proposal), proposal));
    let first = tried.next().expect("a simulation has a proposal");
    tried.fold(first, |best, next| if next.0 < best.0 { next } else { best }).1
}

/// Returns the best proposal, chosen from separate small samples of `source`.
fn proposal<P: Simulation>(
    pair: &P,
    direction: Direction,
    epsilon: f64,
    settings: &MonteCarlo,
    source: &Source,
) -> P::Proposal {
    let source = source.for_purpose(FOR_PROPOSAL);
    best_proposal(pair, direction, epsilon, settings, |proposal| {
        pair.tally(direction, epsilon, proposal, PILOT / 8, &source)
    })
}

/// Estimates delta at `epsilon`, from samples of the settings' seed.
pub(crate) fn delta(pair: &impl Simulation, epsilon: f64, settings: &MonteCarlo) -> Result<StatisticalDelta> {
    let epsilon = non_negative("epsilon", epsilon)?;
    settings.check()?;
    Ok(measure(pair, epsilon, settings, (&Source::of_seed(settings.seed), FIGURE)))
}

/// Estimates delta at `epsilon`, from the samples of a source for a purpose.
fn measure(
    pair: &impl Simulation,
    epsilon: f64,
    settings: &MonteCarlo,
    (source, purpose): (&Source, u8),
) -> StatisticalDelta {
    Pilots::new(pair, epsilon, settings, source, |mean| settings.precision * mean)
        .figure(pair, source, purpose)
}

/// Small samples (pilots) in both directions, which decide the proposals and the numbers of samples of a
/// figure.
struct Pilots<'a, P: Simulation> {
    epsilon: f64,
    settings: &'a MonteCarlo,
    directions: [PilotRun<P::Proposal>; 2],
}

/// Direction, proposal, tally of the pilot, largest sample, and number of samples of the figure.
type PilotRun<P> = (Direction, P, Tally, f64, usize);

impl<'a, P: Simulation> Pilots<'a, P> {
    /// Runs the pilots. `target` maps a pilot's mean to the wanted half-width of the figure's confidence
    /// interval.
    fn new(
        pair: &P,
        epsilon: f64,
        settings: &'a MonteCarlo,
        source: &Source,
        target: impl Fn(f64) -> f64,
    ) -> Self {
        let pilots = Direction::BOTH.map(|direction| {
            let proposal = proposal(pair, direction, epsilon, settings, source);
            let pilot = pair.tally(direction, epsilon, &proposal, PILOT, &source.for_purpose(FOR_PILOT));
            (direction, proposal, pilot)
        });
        let worse = pilots[0].2.mean().max(pilots[1].2.mean());
        let directions = pilots.map(|(direction, proposal, pilot)| {
            let largest = pair.largest_sample(direction, epsilon, &proposal);
            let mean = if P::SHARES_PRECISION { worse } else { pilot.mean() };
            let samples = settings.samples_for(target(mean), &pilot, largest);
            (direction, proposal, pilot, largest, samples)
        });
        Self { epsilon, settings, directions }
    }

    /// The figure that the pilots predict.
    fn predicted(&self) -> StatisticalDelta {
        let interval = |(_, _, pilot, largest, samples): &PilotRun<P::Proposal>| {
            self.interval(&pilot.rescaled_to(*samples), *largest)
        };
        let [remove, add] = &self.directions;
        StatisticalDelta::max_of([interval(remove), interval(add)], self.settings.failure_probability)
    }

    /// The figure, from the samples of `source` for `purpose`.
    fn figure(&self, pair: &P, source: &Source, purpose: u8) -> StatisticalDelta {
        let source = source.for_purpose(purpose);
        let interval = |(direction, proposal, _, largest, samples): &PilotRun<P::Proposal>| {
            self.interval(&pair.tally(*direction, self.epsilon, proposal, *samples, &source), *largest)
        };
        let [remove, add] = &self.directions;
        StatisticalDelta::max_of([interval(remove), interval(add)], self.settings.failure_probability)
    }

    /// Mean, half-width of its confidence interval and samples of a tally.
    fn interval(&self, tally: &Tally, largest: f64) -> (f64, f64, usize) {
        // A quarter of the failure probability for each side of each direction.
        let width = half_width(tally, largest, 0.25 * self.settings.failure_probability) + TAILS * largest;
        (tally.mean(), width, tally.count)
    }
}

/// Bounds on epsilon at `delta`, each of which holds with probability `1 - failure_probability`; `delta`
/// includes the failure.
///
/// A pilot suggests an epsilon. For the upper bound, increasing epsilons above it are tested until one
/// passes; for the lower bound, decreasing ones below it. The tests share the failure probability.
pub(crate) fn epsilon(pair: &impl Simulation, delta: f64, settings: &MonteCarlo) -> Result<Bounds> {
    let delta = in_open_unit("delta", delta)?;
    settings.check()?;
    let suggested = suggest(pair, delta, settings);
    let failure = settings.failure_probability;
    let upper = LADDER.map(|factor| suggested * factor);
    let upper = climb(pair, delta, settings, upper, |at| at.upper + failure <= delta);
    let upper = upper.ok_or_else(|| Error::OutOfReach {
        parameter: "epsilon",
        reason: "sampling does not resolve this delta; lower the failure probability or raise max_samples"
            .into(),
    })?;
    let lower = LADDER.map(|factor| suggested / factor);
    let lower = climb(pair, delta, settings, lower, |at| at.lower >= delta);
    Ok(Bounds { lower: lower.unwrap_or(0.0), upper })
}

/// Returns the first epsilon of `ladder` that passes `test`. An epsilon that its pilot predicts to fail is
/// skipped. Each other one is tested on fresh samples, enough to distinguish the pilot's delta from `delta`.
fn climb(
    pair: &impl Simulation,
    delta: f64,
    settings: &MonteCarlo,
    ladder: [f64; LADDER.len()],
    test: impl Fn(&StatisticalDelta) -> bool,
) -> Option<f64> {
    let source = Source::of_seed(settings.seed);
    let share = settings.failure_probability / LADDER.len() as f64;
    let each = MonteCarlo { failure_probability: share, ..*settings };
    let target = |mean: f64| (settings.precision * mean).max(0.5 * (mean - delta).abs());
    let holds = |&(rung, epsilon): &(usize, f64)| {
        let pilots = Pilots::new(pair, epsilon, &each, &source, target);
        test(&pilots.predicted()) && test(&pilots.figure(pair, &source, FIGURE + rung as u8))
    };
    ladder.into_iter().enumerate().find(holds).map(|(_, epsilon)| epsilon)
}

/// Estimates epsilon at `delta` from a small sample; the estimate is between 0 and the epsilon without
/// amplification.
fn suggest(pair: &impl Simulation, delta: f64, settings: &MonteCarlo) -> f64 {
    let source = Source::of_seed(settings.seed);
    // Far from the target, only the sign is used.
    let excess = |epsilon: f64| {
        let means = Direction::BOTH.map(|direction| {
            let proposal = proposal(pair, direction, epsilon, settings, &source);
            pair.tally(direction, epsilon, &proposal, PILOT, &source.for_purpose(FOR_PILOT)).mean()
        });
        (largest(means).max(f64::MIN_POSITIVE) / delta).ln().clamp(-FAR, FAR)
    };
    let unamplified = Gdp::new(pair.largest_norm()).and_then(|gdp| gdp.epsilon_upper(delta));
    let high = unamplified.unwrap_or(1e6);
    crossing((0.0, FAR), (high, -FAR), SUGGESTION * high, excess).1
}

/// The settings under which a claim is certified. The claim's digest replaces the seed.
fn claim_settings<P: Simulation>(_: &P, precision: f64) -> MonteCarlo {
    MonteCarlo { failure_probability: CLAIM_FAILURE, precision, max_samples: P::MAX_CLAIM_SAMPLES, seed: 0 }
}

/// Estimates delta at `epsilon` from samples that are derived from the claim alone: the key of their
/// generator is the SHA-256 digest of the pair's numbers, epsilon and the precision.
pub(crate) fn certified<P: Simulation>(pair: &P, epsilon: f64, is_rough: bool) -> Result<StatisticalDelta> {
    let epsilon = non_negative("epsilon", epsilon)?;
    let precision = if is_rough { ROUGH_PRECISION } else { CLAIM_PRECISION };
    let mut hash = Sha256::new();
    hash.update(P::CLAIM);
    for number in pair.numbers().chain([epsilon, precision]) {
        hash.update(number.to_le_bytes());
    }
    let source = Source::of_key(hash.finalize().into());
    let settings = claim_settings(pair, precision);
    let found = measure(pair, epsilon, &settings, (&source, FIGURE));
    let upper = (found.upper * (1.0 + EVALUATION)).min(1.0);
    Ok(StatisticalDelta { lower: found.lower * (1.0 - EVALUATION), upper, ..found })
}

/// Predicts the upper confidence limit of a claim at `epsilon`; `tally` draws a small sample (`true`) for the
/// choice of the proposal, and a larger one (`false`) for the prediction. The prediction is a heuristic with
/// a margin and proves nothing.
pub(crate) fn predicted_upper<P: Simulation>(
    pair: &P,
    epsilon: f64,
    tally: impl Fn(Direction, &P::Proposal, bool) -> Tally,
) -> f64 {
    let settings = claim_settings(pair, CLAIM_PRECISION);
    let uppers = Direction::BOTH.map(|direction| {
        let proposal =
            best_proposal(pair, direction, epsilon, &settings, |proposal| tally(direction, proposal, true));
        let largest = pair.largest_sample(direction, epsilon, &proposal);
        let found = tally(direction, &proposal, false);
        let claim = found.rescaled_to(settings.samples(&found, largest));
        // Three standard errors of this estimate, and half of the claim's interval as a margin for its own
        // samples.
        let own = 3.0 * (found.variance() / found.count as f64).sqrt();
        found.mean() + own + 1.5 * half_width(&claim, largest, 0.25 * CLAIM_FAILURE)
    });
    uppers[0].max(uppers[1])
}

/// Returns a factor on the noise for which the claim `(epsilon, delta)` is expected to be certified,
/// according to [`Simulation::upper_by_noise`]. It is at most the factor that the mechanism without
/// amplification needs.
pub(crate) fn noise_scale_for(pair: &impl Simulation, epsilon: f64, delta: f64) -> Result<f64> {
    let (epsilon, delta) = (positive("epsilon", epsilon)?, in_open_unit("delta", delta)?);
    let upper = pair.upper_by_noise(epsilon);
    let excess = |ln_scale: f64| upper(ln_scale).max(f64::MIN_POSITIVE).ln() - delta.ln();
    let unamplified = gaussian_noise_multiplier_upper(epsilon, delta)? * pair.largest_norm();
    let mut works = (unamplified.ln(), excess(unamplified.ln()));
    if works.1 > 0.0 {
        return Ok(unamplified);
    }
    for _ in 0..MAX_NOISE_STEPS {
        let next = works.0 - NOISE_STEP;
        let fails = (next, excess(next));
        if fails.1 > 0.0 {
            return Ok(crossing(fails, works, TOLERANCE, excess).1.exp());
        }
        works = fails;
    }
    let reason =
        "the target is met even at e^-10 of the unamplified noise; choose a smaller epsilon or delta";
    Err(Error::OutOfReach { parameter: "noise", reason: reason.into() })
}
