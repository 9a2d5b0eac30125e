//! Bounds on delta at many epsilons from one simulation.

use super::StatisticalDelta;
use crate::Bounds;

/// Relative distance between neighbouring epsilons of a curve.
const SPACING: f64 = 0.01;
/// Bound on the relative rounding error of an epsilon on a chord.
const CHORD_ROUNDING: f64 = 1e-9;
/// Number of epsilons below the central one, and above it: from half of it to twice it.
const EACH_WAY: i32 = 70;

/// Bounds on delta at epsilons from half of a central one to twice that, all from the samples of one
/// simulation. They hold together: a caller may read the curve at any delta and epsilon, also at those that
/// are chosen because of the curve itself.
///
/// ```
/// use antinoise_accounting::{Gdp, MonteCarloMechanism};
/// let mechanism = MonteCarloMechanism::balls_in_bins(&[vec![1.0, 0.5], vec![0.0]], 1, 1.0)?;
/// let curve = mechanism.certified_curve(4.0, &|_, _| ())?;
/// let exact = Gdp::new(1.25f64.sqrt())?;
/// for delta in [1e-2, 1e-3, 1e-4, 1e-5] {
///     let (found, exact) = (curve.epsilon(delta), exact.epsilon_upper(delta)?);
///     assert!(found.lower <= exact && exact <= found.upper && found.upper < 1.05 * found.lower);
/// }
/// let found = curve.delta(4.5);
/// assert!(found.lower <= exact.delta_upper(4.5)? && exact.delta_lower(4.5)? <= found.upper);
/// # Ok::<(), antinoise_accounting::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct PrivacyCurve {
    central: StatisticalDelta,
    /// Increasing epsilons, each with its delta.
    points: Vec<(f64, StatisticalDelta)>,
}

impl PrivacyCurve {
    /// The epsilons of a curve around `central`, increasing.
    pub(crate) fn epsilons(central: f64) -> Vec<f64> {
        (-EACH_WAY..=EACH_WAY).map(|i| central * (1.0 + SPACING).powi(i)).collect()
    }

    pub(crate) fn new(central: StatisticalDelta, points: Vec<(f64, StatisticalDelta)>) -> Self {
        Self { central, points }
    }

    /// The curve with every bound moved outwards by the fraction `rounding`.
    pub(crate) fn widened(self, rounding: f64) -> Self {
        let wider = |found: StatisticalDelta| StatisticalDelta {
            lower: found.lower * (1.0 - rounding),
            upper: (found.upper * (1.0 + rounding)).min(1.0),
            ..found
        };
        let points = self.points.into_iter().map(|(epsilon, found)| (epsilon, wider(found)));
        Self { central: wider(self.central), points: points.collect() }
    }

    /// delta at the central epsilon alone, whose interval is narrower than that of the curve there.
    pub fn central(&self) -> StatisticalDelta {
        self.central
    }

    /// Bounds on epsilon at `delta`: the upper one is infinite, or the lower one 0, where the curve does not
    /// resolve `delta`.
    ///
    /// Between two points of the curve, the upper bound is on the chord of their upper bounds: delta is a
    /// mean of `(1 - e^{epsilon - loss})_+`, and the larger of two such means, so that it is convex in
    /// `e^epsilon`.
    pub fn epsilon(&self, delta: f64) -> Bounds {
        let lower = self.points.iter().rfind(|(_, found)| found.lower >= delta).map_or(0.0, |point| point.0);
        let upper = match self.points.iter().position(|(_, found)| found.upper <= delta) {
            None => f64::INFINITY,
            Some(0) => self.points[0].0,
            Some(next) => {
                let ((start, at_start), (end, at_end)) = (self.points[next - 1], self.points[next]);
                let part = (at_start.upper - delta) / (at_start.upper - at_end.upper);
                let chord = start + (part * (end - start).exp_m1()).ln_1p();
                (chord * (1.0 + CHORD_ROUNDING)).clamp(start, end)
            }
        };
        Bounds { lower, upper }
    }

    /// An estimate of epsilon at `delta`, which proves nothing; `None` beyond the ends of the curve.
    pub fn estimated_epsilon(&self, delta: f64) -> Option<f64> {
        let place = self.points.iter().position(|(_, found)| found.estimate <= delta)?;
        (place > 0).then(|| self.points[place].0)
    }

    /// Bounds on delta at `epsilon`, from the curve's nearest epsilons on both sides; 0 and 1 where there is
    /// none.
    pub fn delta(&self, epsilon: f64) -> Bounds {
        let below = self.points.iter().filter(|(at, _)| *at <= epsilon).map(|(_, found)| found.upper);
        let above = self.points.iter().filter(|(at, _)| *at >= epsilon).map(|(_, found)| found.lower);
        Bounds { lower: above.fold(0.0, f64::max), upper: below.fold(1.0, f64::min) }
    }
}
