//! Points of the privacy curve of a mechanism with a statistical accountant, for `account`.

use antinoise_accounting::{Bounds, Error, MonteCarlo, MonteCarloMechanism, PrivacyCurve};
use antinoise_input::non_negative;

use crate::failure::Result;
use crate::progress::Progress;

/// Share of delta that is reserved for failures of the statistical accountant.
const FAILURE: f64 = 0.01;
/// Target half-width of the confidence interval of a simulated delta, relative to it.
const PRECISION: f64 = 0.05;
/// Largest number of samples in each direction: some seconds.
const MAX_SAMPLES: usize = 400_000;
/// Number of samples for the order of magnitude of a delta.
const FEW_SAMPLES: usize = 20_000;
/// Failure probability of that order of magnitude, which bounds nothing.
const ROUGH: f64 = 1e-3;
/// Largest ratio of a figure and its lower bound for which no new simulation is worth its time.
const CLOSE: f64 = 1.1;

/// A mechanism whose privacy is simulated, with the curve by which its plan was verified.
pub struct Simulated<'a> {
    /// The input of the simulation.
    pub mechanism: &'a MonteCarloMechanism,
    /// The curve, if there is a plan.
    pub verified: Option<&'a PrivacyCurve>,
    /// The probability that the curve is wrong.
    pub failure: f64,
}

/// A point of the privacy curve.
#[derive(Debug, Clone, Copy)]
pub struct SimulatedPoint {
    /// Bounds on epsilon.
    pub epsilon: Bounds,
    /// delta, which includes the probability of failure.
    pub delta: f64,
    /// The probability that the bounds are wrong; `None` for bounds without amplification, which cannot fail.
    pub failure: Option<f64>,
}

impl SimulatedPoint {
    /// A point whose bounds on epsilon cannot fail.
    pub fn of_epsilon(delta: f64, epsilon: Bounds) -> Self {
        Self { epsilon, delta, failure: None }
    }

    /// The point with the epsilon `upper` of the mechanism without amplification, if it is smaller.
    pub fn or_epsilon(self, upper: f64) -> Self {
        if self.epsilon.upper <= upper {
            return self;
        }
        Self::of_epsilon(self.delta, Bounds { lower: self.epsilon.lower.min(upper), upper })
    }

    /// The point with the delta `upper` of the mechanism without amplification, if it is smaller.
    pub fn or_delta(self, upper: f64) -> Self {
        if self.delta <= upper {
            return self;
        }
        // The lower bound on epsilon was for a larger delta, so that it holds for the smaller one.
        Self::of_epsilon(upper, self.epsilon)
    }
}

impl Simulated<'_> {
    /// Bounds on epsilon at `delta`: those of the verified curve where they are close, else also those of a
    /// new simulation, which starts where the curve points. An upper bound is infinite where neither resolves
    /// `delta`.
    pub fn epsilon(&self, delta: f64) -> Result<SimulatedPoint> {
        let settings = settings(FAILURE * delta);
        let curve = |delta: f64| {
            let nothing = Bounds { lower: 0.0, upper: f64::INFINITY };
            self.verified.map_or(nothing, |curve| curve.epsilon(delta))
        };
        let known = curve(delta);
        if known.upper <= CLOSE * known.lower {
            return Ok(SimulatedPoint { epsilon: known, delta, failure: Some(self.failure) });
        }
        let failure = self.failure + settings.failure_probability;
        // Either source may be wrong: each leaves the other's failures to delta.
        let known = curve(delta - settings.failure_probability);
        let left = (delta - self.failure).max(f64::MIN_POSITIVE);
        let guess = self.verified.and_then(|curve| curve.estimated_epsilon(delta));
        let epsilon = match self.mechanism.epsilon(left, &settings, guess, &sampling()) {
            Err(Error::OutOfReach { .. }) if self.verified.is_some() => known,
            found => found.map(|found| Bounds {
                lower: known.lower.max(found.lower),
                upper: known.upper.min(found.upper),
            })?,
        };
        Ok(SimulatedPoint { epsilon, delta, failure: Some(failure) })
    }

    /// An upper bound on delta at `epsilon`, from the same sources as [`Simulated::epsilon`], and a lower
    /// bound on the epsilon that has this delta.
    pub fn delta(&self, epsilon: f64) -> Result<SimulatedPoint> {
        let epsilon = non_negative("epsilon", epsilon)?;
        let point = |delta: f64, lower: f64, failure: f64| SimulatedPoint {
            epsilon: Bounds { lower: lower.min(epsilon), upper: epsilon },
            delta: delta.min(1.0),
            failure: Some(failure),
        };
        let known = self.verified.map_or(Bounds { lower: 0.0, upper: 1.0 }, |curve| curve.delta(epsilon));
        let lower = |delta: f64| self.verified.map_or(0.0, |curve| curve.epsilon(delta).lower);
        if known.upper <= CLOSE * known.lower {
            return Ok(point(known.upper, lower(known.upper), self.failure));
        }
        let few = MonteCarlo { max_samples: FEW_SAMPLES, ..settings(ROUGH) };
        let rough = self.mechanism.delta(epsilon, &few)?.estimate;
        // The seed differs, so that the failure probability does not depend on the samples it bounds.
        let settings = MonteCarlo { seed: 1, ..settings((FAILURE * rough).max(f64::MIN_POSITIVE)) };
        let found = self.mechanism.curve(epsilon, &settings, &sampling())?;
        let failure = self.failure + settings.failure_probability;
        // Either source may be wrong: each adds the other's failures to delta.
        let fresh = found.delta(epsilon).upper + self.failure;
        let delta = fresh.min(known.upper + settings.failure_probability);
        Ok(point(delta, lower(delta).max(found.epsilon(delta).lower), failure))
    }
}

fn settings(failure_probability: f64) -> MonteCarlo {
    MonteCarlo { failure_probability, precision: PRECISION, max_samples: MAX_SAMPLES, ..Default::default() }
}

/// A progress bar, and the function that moves it.
fn sampling() -> impl Fn(usize, usize) + Sync {
    let progress = Progress::percent("sampling");
    move |done, total| progress.done(done as f64, total as f64)
}
