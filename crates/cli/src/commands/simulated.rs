//! Epsilon of a mechanism with a statistical accountant, for `account`.

use antinoise_accounting::{Bounds, Error, MonteCarlo, MonteCarloMechanism, PrivacyCurve};

use crate::failure::Result;
use crate::progress::Progress;

/// Share of delta that is reserved for failures of the statistical accountant.
const FAILURE: f64 = 0.01;
/// Target half-width of the confidence interval of a simulated delta, relative to it.
const PRECISION: f64 = 0.05;
/// Largest number of samples in each direction: some seconds.
const MAX_SAMPLES: usize = 400_000;
/// Largest ratio of an epsilon and its lower bound for which no new simulation is worth its time.
const CLOSE: f64 = 1.1;

/// A mechanism whose epsilon is simulated, with the curve by which its plan was verified.
pub struct Simulated<'a> {
    /// The input of the simulation.
    pub mechanism: &'a MonteCarloMechanism,
    /// The curve, if there is a plan.
    pub verified: Option<&'a PrivacyCurve>,
    /// The probability that the curve is wrong.
    pub failure: f64,
}

/// Bounds on epsilon, and the probability that they are wrong.
pub struct SimulatedEpsilon {
    /// The bounds.
    pub bounds: Bounds,
    /// The probability.
    pub failure: f64,
}

impl Simulated<'_> {
    /// Bounds on epsilon at `delta`: those of the verified curve where they are close, else also those of a
    /// new simulation, which starts where the curve points. An upper bound is infinite where neither resolves
    /// `delta`.
    pub fn epsilon(&self, delta: f64) -> Result<SimulatedEpsilon> {
        let settings = MonteCarlo {
            failure_probability: FAILURE * delta,
            precision: PRECISION,
            max_samples: MAX_SAMPLES,
            ..Default::default()
        };
        let curve = |delta: f64| {
            let nothing = Bounds { lower: 0.0, upper: f64::INFINITY };
            self.verified.map_or(nothing, |curve| curve.epsilon(delta))
        };
        let known = curve(delta);
        if known.upper <= CLOSE * known.lower {
            return Ok(SimulatedEpsilon { bounds: known, failure: self.failure });
        }
        let failure = self.failure + settings.failure_probability;
        // Either source may be wrong: each leaves the other's failures to delta.
        let known = curve(delta - settings.failure_probability);
        let left = (delta - self.failure).max(f64::MIN_POSITIVE);
        let guess = self.verified.and_then(|curve| curve.estimated_epsilon(delta));
        let progress = Progress::percent("sampling");
        let drawn = |done, total| progress.done(done as f64, total as f64);
        let bounds = match self.mechanism.epsilon(left, &settings, guess, &drawn) {
            Err(Error::OutOfReach { .. }) if self.verified.is_some() => known,
            found => found.map(|found| Bounds {
                lower: known.lower.max(found.lower),
                upper: known.upper.min(found.upper),
            })?,
        };
        Ok(SimulatedEpsilon { bounds, failure })
    }
}
