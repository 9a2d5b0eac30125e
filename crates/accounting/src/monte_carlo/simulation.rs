//! What is the same for all importance sampling of a pair: delta, epsilon, claims and the noise that they need.

use antinoise_input::{in_open_unit, non_negative, positive};

use sha2::{Digest, Sha256};

use super::{Direction, MonteCarlo, PILOT, Source, StatisticalDelta, Tally, half_width};
use crate::root::crossing;
use crate::{Error, Gdp, Result, gaussian_noise_multiplier_upper};

/// What random numbers are for; those of a figure, or of the first of several that are tested, come last.
const FOR_TILT: u8 = 0;
const FOR_PILOT: u8 = 1;
const FIGURE: u8 = 2;

/// What the normals' missing tails beyond 8.5 deviations may move a mean by, as a part of the greatest sample.
const TAILS: f64 = 1e-12;

/// Epsilons that are tried from the top, relative to the one that the pilot suggests.
const LADDER: [f64; 8] = [2.0, 1.5, 1.2, 1.1, 1.05, 1.02, 1.01, 1.003];

/// The probability that a claim's figure errs.
pub(crate) const CLAIM_FAILURE: f64 = 1e-20;
/// Half-widths over the estimate: of a claim, and where it is shown that a claim is not far from what is true, which takes fewer
/// samples.
const CLAIM_PRECISION: f64 = 0.05;
const ROUGH_PRECISION: f64 = 0.5;
/// What the rounding of samples may move a figure by.
const EVALUATION: f64 = 1e-9;
/// How close to its threshold the logarithm of the noise is brought.
const TOLERANCE: f64 = 5e-4;

/// A dominating pair that can be sampled, by several proposals, with bounded weights.
pub(crate) trait Simulation: Sync {
    /// A proposal.
    type Tilt: Clone;

    /// Whether the number of samples of a direction is for the precision of the worse one, not for its own.
    const SHARES_PRECISION: bool;
    /// Most samples of a claim in a direction.
    const MOST_CLAIM_SAMPLES: usize;
    /// What tells the samples of its claims from those of others.
    const CLAIM: &'static str;

    /// All numbers that its figures depend on.
    fn numbers(&self) -> impl Iterator<Item = f64>;

    /// The largest norm of a mean, in units of the noise: the privacy without sampling.
    fn largest_norm(&self) -> f64;

    /// Proposals that may be good at `epsilon`.
    fn tilts(&self, direction: Direction, epsilon: f64) -> Vec<Self::Tilt>;

    /// The greatest weighted `(1 - e^{epsilon - loss})_+` there can be.
    fn largest(&self, direction: Direction, epsilon: f64, tilt: &Self::Tilt) -> f64;

    /// `count` weighted samples of it; the same for the same arguments, however many threads there are.
    fn tally(
        &self,
        direction: Direction,
        epsilon: f64,
        tilt: &Self::Tilt,
        count: usize,
        source: &Source,
    ) -> Tally;
}

/// ln of the most that `(1 - e^-d) e^{-tilt d}` can be, for a loss d beyond epsilon.
pub(crate) fn ln_largest_excess(tilt: f64) -> f64 {
    if tilt > 0.0 { -tilt * (1.0 / tilt).ln_1p() - tilt.ln_1p() } else { 0.0 }
}

/// The proposal for which so many samples have the least upper end, as those that `tally` finds tell.
fn best_tilt<S: Simulation>(
    of: &S,
    direction: Direction,
    epsilon: f64,
    settings: &MonteCarlo,
    tally: impl Fn(&S::Tilt) -> Tally,
) -> S::Tilt {
    let end = |tilt: &S::Tilt| {
        let (tally, most) = (tally(tilt), of.largest(direction, epsilon, tilt));
        let samples = tally.of_as_many(settings.samples(&tally, most));
        tally.mean() + half_width(&samples, most, 0.25 * settings.failure)
    };
    let mut tried = of.tilts(direction, epsilon).into_iter().map(|tilt| (end(&tilt), tilt));
    let first = tried.next().expect("a simulation has a proposal");
    tried.fold(first, |best, next| if next.0 < best.0 { next } else { best }).1
}

/// The proposal of the least upper end, as a small sample of its own tells.
fn tilt<S: Simulation>(
    of: &S,
    direction: Direction,
    epsilon: f64,
    settings: &MonteCarlo,
    source: &Source,
) -> S::Tilt {
    let source = source.for_purpose(FOR_TILT);
    best_tilt(of, direction, epsilon, settings, |tilt| of.tally(direction, epsilon, tilt, PILOT / 8, &source))
}

/// delta at `epsilon`, on samples of a seed.
pub(crate) fn delta(of: &impl Simulation, epsilon: f64, settings: &MonteCarlo) -> Result<StatisticalDelta> {
    let epsilon = non_negative("epsilon", epsilon)?;
    settings.check()?;
    Ok(measure(of, epsilon, settings, &Source::of_seed(settings.seed), FIGURE))
}

/// delta at `epsilon`, on samples for this purpose.
fn measure<S: Simulation>(
    of: &S,
    epsilon: f64,
    settings: &MonteCarlo,
    source: &Source,
    purpose: u8,
) -> StatisticalDelta {
    let begun = Direction::BOTH.map(|direction| {
        let tilt = tilt(of, direction, epsilon, settings, source);
        let pilot = of.tally(direction, epsilon, &tilt, PILOT, &source.for_purpose(FOR_PILOT));
        (direction, tilt, pilot)
    });
    let worse = begun[0].2.mean().max(begun[1].2.mean());
    let ends = begun.map(|(direction, tilt, pilot)| {
        let most = of.largest(direction, epsilon, &tilt);
        let mean = if S::SHARES_PRECISION { worse } else { pilot.mean() };
        let samples = settings.samples_for(mean, &pilot, most);
        let tally = of.tally(direction, epsilon, &tilt, samples, &source.for_purpose(purpose));
        // Two directions, and two sides each.
        let width = half_width(&tally, most, 0.25 * settings.failure) + TAILS * most;
        (tally.mean(), width, samples)
    });
    StatisticalDelta::worse_of(ends, settings.failure)
}

/// An epsilon at `delta`: with probability `1 - failure` a true one, and `delta` contains the failure.
///
/// A pilot suggests an epsilon; larger ones are then tested from the top of a fixed ladder down, each on
/// fresh samples, until one is not shown to be enough. The truth is between two of them, so that only
/// one test can go wrong: no correction for their number is due.
pub(crate) fn epsilon_upper(of: &impl Simulation, delta: f64, settings: &MonteCarlo) -> Result<f64> {
    let delta = in_open_unit("delta", delta)?;
    settings.check()?;
    let suggested = suggest(of, delta, settings);
    let shown = climb(of, settings, LADDER.map(|factor| suggested * factor), |at| at.upper <= delta);
    shown.ok_or_else(|| Error::OutOfReach {
        parameter: "epsilon",
        reason: "sampling does not resolve this delta; lower the failure or raise most_samples".into(),
    })
}

/// The same from the other side: with probability `1 - failure` the truth is not below it.
pub(crate) fn epsilon_lower(of: &impl Simulation, delta: f64, settings: &MonteCarlo) -> Result<f64> {
    let delta = in_open_unit("delta", delta)?;
    settings.check()?;
    let suggested = suggest(of, delta, settings);
    let shown = climb(of, settings, LADDER.map(|factor| suggested / factor), |at| at.lower >= delta);
    Ok(shown.unwrap_or(0.0))
}

/// The last epsilon of `ladder` before the first that is not `shown`, each on samples of its own.
fn climb(
    of: &impl Simulation,
    settings: &MonteCarlo,
    ladder: [f64; LADDER.len()],
    shown: impl Fn(&StatisticalDelta) -> bool,
) -> Option<f64> {
    let source = Source::of_seed(settings.seed);
    let is_shown = |&(rung, epsilon): &(usize, f64)| {
        shown(&measure(of, epsilon, settings, &source, FIGURE + rung as u8))
    };
    ladder.into_iter().enumerate().take_while(is_shown).last().map(|(_, epsilon)| epsilon)
}

/// Where a small sample puts epsilon, between 0 and the value without sampling.
fn suggest(of: &impl Simulation, delta: f64, settings: &MonteCarlo) -> f64 {
    let at = |epsilon: f64| {
        let source = Source::of_seed(settings.seed);
        let mean = |direction| {
            let tilt = tilt(of, direction, epsilon, settings, &source);
            of.tally(direction, epsilon, &tilt, PILOT, &source.for_purpose(FOR_PILOT)).mean()
        };
        mean(Direction::Remove).max(mean(Direction::Add))
    };
    let unsampled = Gdp::new(of.largest_norm()).and_then(|gdp| gdp.epsilon_upper(delta));
    let (mut low, mut high) = (0.0, unsampled.unwrap_or(1e6));
    for _ in 0..14 {
        let middle = 0.5 * (low + high);
        if at(middle) > delta { low = middle } else { high = middle }
    }
    high
}

/// How a claim is shown; the claim takes the place of a seed.
fn claim<S: Simulation>(_: &S, precision: f64) -> MonteCarlo {
    MonteCarlo { failure: CLAIM_FAILURE, precision, most_samples: S::MOST_CLAIM_SAMPLES, seed: 0 }
}

/// delta at `epsilon` on samples from `source`, which is given epsilon and the precision and makes them from the claim alone.
pub(crate) fn claimed<S: Simulation>(of: &S, epsilon: f64, is_rough: bool) -> Result<StatisticalDelta> {
    let epsilon = non_negative("epsilon", epsilon)?;
    let precision = if is_rough { ROUGH_PRECISION } else { CLAIM_PRECISION };
    let mut hash = Sha256::new();
    hash.update(S::CLAIM);
    for number in of.numbers().chain([epsilon, precision]) {
        hash.update(number.to_le_bytes());
    }
    let source = Source::of_key(hash.finalize().into());
    let found = measure(of, epsilon, &claim(of, precision), &source, FIGURE);
    let upper = (found.upper * (1.0 + EVALUATION)).min(1.0);
    Ok(StatisticalDelta { lower: found.lower * (1.0 - EVALUATION), upper, ..found })
}

/// Where a claim at `epsilon` will probably end, as `tally` of few and of all samples tells: it proves nothing, and leaves a
/// margin for what the claim's own samples may differ by.
pub(crate) fn likely_end<S: Simulation>(
    of: &S,
    epsilon: f64,
    tally: impl Fn(Direction, &S::Tilt, bool) -> Tally,
) -> f64 {
    let settings = claim(of, CLAIM_PRECISION);
    let ends = Direction::BOTH.map(|direction| {
        let tilt = best_tilt(of, direction, epsilon, &settings, |tilt| tally(direction, tilt, true));
        let (found, most) = (tally(direction, &tilt, false), of.largest(direction, epsilon, &tilt));
        let claim = found.of_as_many(settings.samples(&found, most));
        // Its own error, and half of the claim's interval more, where the claim's samples may lie.
        let own = 3.0 * (found.variance() / found.count as f64).sqrt();
        found.mean() + own + 1.5 * half_width(&claim, most, 0.25 * CLAIM_FAILURE)
    });
    ends[0].max(ends[1])
}

/// What the noise has to be multiplied by for `end`, as a function of ln of it, to be at most `delta`; never more than what
/// needs no sampling where the largest mean has norm `largest_norm`.
pub(crate) fn noise_factor(
    epsilon: f64,
    delta: f64,
    largest_norm: f64,
    end: impl Fn(f64) -> f64,
) -> Result<f64> {
    let (epsilon, delta) = (positive("epsilon", epsilon)?, in_open_unit("delta", delta)?);
    let excess = |ln_factor: f64| end(ln_factor).max(f64::MIN_POSITIVE).ln() - delta.ln();
    let unsampled = gaussian_noise_multiplier_upper(epsilon, delta)? * largest_norm;
    let mut works = (unsampled.ln(), excess(unsampled.ln()));
    if works.1 > 0.0 {
        return Ok(unsampled);
    }
    for _ in 0..40 {
        let next = works.0 - 0.25;
        let fails = (next, excess(next));
        if fails.1 > 0.0 {
            return Ok(crossing(fails, works, TOLERANCE, excess).1.exp());
        }
        works = fails;
    }
    Err(Error::OutOfReach { parameter: "noise", reason: "the target is met even with e^-10 of the noise that it needs without sampling; choose a smaller epsilon or delta".into() })
}
