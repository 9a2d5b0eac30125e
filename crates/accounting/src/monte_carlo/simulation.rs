//! Importance sampling of a dominating pair: delta, epsilon, certified claims, and the noise for a privacy
//! target.

use antinoise_input::{in_open_unit, largest, non_negative, positive};

use std::sync::atomic::{AtomicUsize, Ordering};

use sha2::{Digest, Sha256};

use super::{
    Direction, MonteCarlo, PILOT, PrivacyCurve, Samples, Source, StatisticalDelta, Tally, half_width,
};
use crate::root::crossing;
use crate::{Bounds, Error, Gdp, Result, gaussian_noise_multiplier_upper};

/// Purposes of random streams.
const FOR_PROPOSAL: u8 = 0;
const FOR_PILOT: u8 = 1;
const FIGURE: u8 = 2;

/// Bound on the change of a mean that comes from truncating the tails of normals at 8.5 standard deviations,
/// relative to the largest possible sample.
const TAILS: f64 = 1e-12;

/// Tolerance of the pilot's suggestion, relative to the epsilon without amplification.
const SUGGESTION: f64 = 1e-3;
/// Half-width of a curve's confidence intervals that the search for the suggestion expects, in units of the
/// precision.
const HALF_WIDTH: f64 = 1.5;
/// ln(target / delta(0)) above which the suggestion is epsilon 0.
const MARGIN_AT_0: f64 = 0.1;
/// Maximum |ln(delta / target)| that the search for the suggestion uses; of larger values it uses only the
/// sign.
const FAR: f64 = 8.0;

/// Failure probability of one certified figure.
pub(crate) const CLAIM_FAILURE: f64 = 1e-20;
/// Target half-width of the confidence interval for the delta of a claim, relative to the estimate.
const CLAIM_PRECISION: f64 = 0.05;
/// Upper bound on the relative rounding error of a figure.
const EVALUATION: f64 = 1e-9;
/// Tolerance of the noise search, in ln(noise).
const TOLERANCE: f64 = 5e-4;
/// Step by which the search for a noise scale decreases ln(noise), from the noise without amplification.
const NOISE_STEP: f64 = 0.25;
/// Maximum number of these steps.
const MAX_NOISE_STEPS: usize = 40;

/// A function that is called during a simulation with the number of samples drawn so far, and of all.
pub(crate) type Progress<'a> = dyn Fn(usize, usize) + Sync + 'a;

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

    /// For each of `epsilons`, the sums over the same weighted samples, which do not depend on the number of
    /// threads.
    fn tallies(
        &self,
        direction: Direction,
        epsilons: &[f64],
        proposal: &Self::Proposal,
        samples: Samples<'_>,
    ) -> Vec<Tally>;

    /// The sums over `count` weighted samples for one epsilon.
    fn tally(
        &self,
        direction: Direction,
        epsilon: f64,
        proposal: &Self::Proposal,
        count: usize,
        source: &Source,
    ) -> Tally {
        self.tallies(direction, &[epsilon], proposal, Samples { count, source, on_drawn: &|_| () })[0]
    }

    /// A function from ln(noise scale) to the predicted upper limit of a claim at `epsilon`, as
    /// [`predicted_upper`] predicts it for noise multiplied by that scale.
    fn upper_by_noise(&self, epsilon: f64) -> impl Fn(f64) -> f64;
}

/// The logarithm of the maximum over d >= 0 of `(1 - e^-d) e^{-tilt d}`, where d is the loss minus epsilon.
pub(crate) fn ln_largest_excess(tilt: f64) -> f64 {
    if tilt > 0.0 { -tilt * (1.0 / tilt).ln_1p() - tilt.ln_1p() } else { 0.0 }
}

/// Returns the proposal that needs the fewest samples; `tally` draws a few from a proposal.
///
/// All proposals have one expectation. A proposal whose few samples have a smaller mean than another's lacks
/// rare samples with large weights. They add at most the shortfall times the largest sample to the second
/// moment.
fn best_proposal<P: Simulation>(
    pair: &P,
    direction: Direction,
    epsilon: f64,
    settings: &MonteCarlo,
    tally: impl Fn(&P::Proposal) -> Tally,
) -> P::Proposal {
    let proposals = pair.proposals(direction, epsilon);
    let tallies: Vec<Tally> = proposals.iter().map(tally).collect();
    let mean = largest(tallies.iter().map(Tally::mean));
    let effort = |(proposal, tally): (&P::Proposal, &Tally)| {
        let largest = pair.largest_sample(direction, epsilon, proposal);
        let missing = tally.count as f64 * largest * (mean - tally.mean());
        let tally = Tally { squares: tally.squares + missing, ..*tally };
        settings.effort(settings.precision * mean, &tally, largest)
    };
    let efforts: Vec<f64> = proposals.iter().zip(&tallies).map(effort).collect();
    let best = (0..efforts.len()).min_by(|&a, &b| efforts[a].total_cmp(&efforts[b]));
    proposals[best.expect("a simulation has a proposal")].clone()
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

/// delta at `epsilon` and the curve around it, from samples of the settings' seed.
pub(crate) fn curve(
    pair: &impl Simulation,
    epsilon: f64,
    settings: &MonteCarlo,
    progress: &Progress<'_>,
) -> Result<PrivacyCurve> {
    let epsilon = non_negative("epsilon", epsilon)?;
    settings.check()?;
    Ok(around(pair, epsilon, settings, &Source::of_seed(settings.seed), progress))
}

/// The curve around `epsilon`, from samples of `source`.
fn around(
    pair: &impl Simulation,
    epsilon: f64,
    settings: &MonteCarlo,
    source: &Source,
    progress: &Progress<'_>,
) -> PrivacyCurve {
    Pilots::new(pair, epsilon, settings, source).curve(pair, source, progress)
}

/// Small samples (pilots) in both directions, which decide the proposals and the numbers of samples of a
/// figure.
struct Pilots<'a, P: Simulation> {
    epsilon: f64,
    settings: &'a MonteCarlo,
    directions: [PilotRun<P::Proposal>; 2],
}

/// Direction, proposal, and number of samples of the figure.
type PilotRun<P> = (Direction, P, usize);

impl<'a, P: Simulation> Pilots<'a, P> {
    /// Runs the pilots.
    fn new(pair: &P, epsilon: f64, settings: &'a MonteCarlo, source: &Source) -> Self {
        let pilots = Direction::BOTH.map(|direction| {
            let proposal = proposal(pair, direction, epsilon, settings, source);
            let pilot = pair.tally(direction, epsilon, &proposal, PILOT, &source.for_purpose(FOR_PILOT));
            (direction, proposal, pilot)
        });
        let worse = pilots[0].2.mean().max(pilots[1].2.mean());
        let directions = pilots.map(|(direction, proposal, pilot)| {
            let largest = pair.largest_sample(direction, epsilon, &proposal);
            let mean = if P::SHARES_PRECISION { worse } else { pilot.mean() };
            let samples = settings.samples_for(settings.precision * mean, &pilot, largest);
            (direction, proposal, samples)
        });
        Self { epsilon, settings, directions }
    }

    /// The curve around the pilots' epsilon, whose bounds hold together and follow from the same samples.
    /// `progress` is called with the number of samples drawn so far, and of all.
    fn curve(&self, pair: &P, source: &Source, progress: &Progress<'_>) -> PrivacyCurve {
        let epsilons = PrivacyCurve::epsilons(self.epsilon);
        let all: Vec<f64> = [self.epsilon].into_iter().chain(epsilons.iter().copied()).collect();
        let (source, drawn) = (source.for_purpose(FIGURE), AtomicUsize::new(0));
        let total = self.directions.iter().map(|(.., count)| count).sum();
        let on_drawn = |more: usize| progress(drawn.fetch_add(more, Ordering::Relaxed) + more, total);
        let tallies = self.directions.each_ref().map(|(direction, proposal, count)| {
            let samples = Samples { count: *count, source: &source, on_drawn: &on_drawn };
            pair.tallies(*direction, &all, proposal, samples)
        });
        let failure = self.settings.failure_probability;
        let of = |i: usize, share: f64| {
            let ends = [0, 1].map(|end| {
                let (direction, proposal, _) = &self.directions[end];
                interval(&tallies[end][i], pair.largest_sample(*direction, all[i], proposal), share * failure)
            });
            StatisticalDelta::max_of(ends, failure)
        };
        // The bounds of the curve share the failure probability.
        let share = 1.0 / epsilons.len() as f64;
        let point = |(i, &epsilon): (usize, &f64)| (epsilon, of(1 + i, share));
        PrivacyCurve::new(of(0, 1.0), epsilons.iter().enumerate().map(point).collect())
    }
}

/// Mean, half-width of its confidence interval and samples of a tally, where the larger mean of both
/// directions is outside of its interval with probability at most `failure`.
fn interval(tally: &Tally, largest: f64, failure: f64) -> (f64, f64, usize) {
    // A quarter of the failure probability for each side of each direction.
    (tally.mean(), half_width(tally, largest, 0.25 * failure) + TAILS * largest, tally.count)
}

/// Bounds on epsilon at `delta`, each of which holds with probability `1 - failure_probability`; `delta`
/// includes the failure.
///
/// One simulation gives the curve around `guess` or, without it, around the epsilon that pilots suggest.
pub(crate) fn epsilon(
    pair: &impl Simulation,
    delta: f64,
    settings: &MonteCarlo,
    guess: Option<f64>,
    progress: &Progress<'_>,
) -> Result<Bounds> {
    let delta = in_open_unit("delta", delta)?;
    settings.check()?;
    let guess = guess.map_or_else(|| Ok(suggest(pair, delta, settings)), |guess| positive("guess", guess))?;
    let found = curve(pair, guess, settings, progress)?.epsilon(delta);
    if found.upper < f64::INFINITY {
        return Ok(found);
    }
    let reason = "sampling does not resolve this delta; lower the failure probability or raise max_samples";
    Err(Error::OutOfReach { parameter: "epsilon", reason: reason.into() })
}

/// Estimates from a small sample the epsilon at which the upper bound of a curve will be `delta`; the
/// estimate is between 0 and the epsilon without amplification; 0 where delta(0) is well below `delta`. Where
/// delta hardly depends on epsilon, it is far above the epsilon whose delta is `delta`.
fn suggest(pair: &impl Simulation, delta: f64, settings: &MonteCarlo) -> f64 {
    let source = Source::of_seed(settings.seed);
    let resolved = (delta - settings.failure_probability) / (1.0 + HALF_WIDTH * settings.precision);
    let target = if resolved > 0.0 { resolved } else { delta };
    // Far from the target, only the sign is used.
    let excess = |epsilon: f64| {
        let means = Direction::BOTH.map(|direction| {
            let proposal = proposal(pair, direction, epsilon, settings, &source);
            pair.tally(direction, epsilon, &proposal, PILOT, &source.for_purpose(FOR_PILOT)).mean()
        });
        (largest(means).max(f64::MIN_POSITIVE) / target).ln().clamp(-FAR, FAR)
    };
    if excess(0.0) < -MARGIN_AT_0 {
        return 0.0;
    }
    let unamplified = Gdp::new(pair.largest_norm()).and_then(|gdp| gdp.epsilon_upper(delta));
    let high = unamplified.unwrap_or(1e6);
    crossing((0.0, FAR), (high, -FAR), SUGGESTION * high, excess).1
}

/// The settings under which a claim is certified. The claim's digest replaces the seed.
fn claim_settings<P: Simulation>(_: &P) -> MonteCarlo {
    MonteCarlo {
        failure_probability: CLAIM_FAILURE,
        precision: CLAIM_PRECISION,
        max_samples: P::MAX_CLAIM_SAMPLES,
        seed: 0,
    }
}

/// delta at `epsilon` and the curve around it, from samples that are derived from the claim alone: the key of
/// their generator is the SHA-256 digest of the pair's numbers, epsilon and the precision.
pub(crate) fn certified<P: Simulation>(
    pair: &P,
    epsilon: f64,
    progress: &Progress<'_>,
) -> Result<PrivacyCurve> {
    let epsilon = non_negative("epsilon", epsilon)?;
    let mut hash = Sha256::new();
    hash.update(P::CLAIM);
    for number in pair.numbers().chain([epsilon, CLAIM_PRECISION]) {
        hash.update(number.to_le_bytes());
    }
    let source = Source::of_key(hash.finalize().into());
    Ok(around(pair, epsilon, &claim_settings(pair), &source, progress).widened(EVALUATION))
}

/// Predicts the upper confidence limit of a claim at `epsilon`; `tally` draws a small sample (`true`) for the
/// choice of the proposal, and a larger one (`false`) for the prediction. The prediction is a heuristic with
/// a margin and proves nothing.
pub(crate) fn predicted_upper<P: Simulation>(
    pair: &P,
    epsilon: f64,
    tally: impl Fn(Direction, &P::Proposal, bool) -> Tally,
) -> f64 {
    let settings = claim_settings(pair);
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
