//! The choice of the range and resolution of losses for a computation.
//!
//! Nothing here affects the validity of bounds: a bad choice makes them wide, never wrong.

use super::bounds::{Bounds, WIDTH};
use super::fourier::Settings;
use super::grid::Grid;
use super::pair::{Pair, Phase, Rounding};
use super::tilt::{Cumulants, Nodes, cumulants, end, for_delta, for_epsilon};

/// The logarithm of the allowed relative contribution of losses that are half a period from the target, on
/// either side.
const LN_OUTSIDE: f64 = -11.5;
/// Minimum of the last frequency, in units of 1 / smoothing; there the smoothing gives a factor of e^-21.
const MIN_LAST: f64 = 6.5;
/// Fraction of delta, over all steps, that may come from losses which are treated as infinite.
const INFINITE: f64 = 1e-3;

/// The unknown of a computation: epsilon or delta.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Aim {
    Epsilon,
    Delta,
}

/// The parameters of the grid of losses (its knots) and of the smoothing.
pub(crate) struct Fit {
    aim: Aim,
    /// The logarithm of the given delta, or of an estimate of the unknown delta.
    ln_delta: f64,
    nodes: Vec<Nodes>,
    /// Number of standard deviations of a step within which losses contribute to delta, and the highest such
    /// loss of each part.
    reach: f64,
    highest: Vec<f64>,
    theta: f64,
    /// The epsilon near which the grid resolves delta.
    pub target: f64,
    cumulants: Cumulants,
    /// Factor on the distance of knots; it is reduced below 1 if bounds are wider than intended.
    fineness: f64,
}

impl Fit {
    /// Chooses the parameters for the epsilon at delta = e^`ln_delta`.
    pub fn new(phases: &[Phase], ln_delta: f64) -> Self {
        let mut fit = Self {
            aim: Aim::Epsilon,
            ln_delta,
            nodes: vec![],
            reach: 0.0,
            highest: vec![],
            theta: 1.0,
            target: 0.0,
            cumulants: Cumulants::default(),
            fineness: 1.0,
        };
        fit.resolve(phases);
        let (theta, target) = for_delta(&fit.nodes, ln_delta);
        let spread = cumulants(&fit.nodes, theta).variance.sqrt();
        fit.tilt(theta, target.max(0.02 * spread));
        fit
    }

    /// The logarithm of the Rényi bound on delta at `epsilon`, as a first estimate.
    pub fn renyi_ln_delta(phases: &[Phase], epsilon: f64) -> f64 {
        let nodes = &Self::new(phases, -60.0).nodes;
        let theta = for_epsilon(nodes, epsilon);
        (cumulants(nodes, theta).value - theta * epsilon).clamp(-590.0, -0.1)
    }

    /// Chooses the parameters for the delta at `epsilon`, which is about e^`ln_delta`.
    pub fn at(phases: &[Phase], ln_delta: f64, epsilon: f64) -> Self {
        let mut fit = Self::new(phases, ln_delta);
        fit.aim = Aim::Delta;
        fit.tilt(for_epsilon(&fit.nodes, epsilon), epsilon);
        fit
    }

    /// Improves the parameters after bounds were computed.
    pub fn refit(&mut self, phases: &[Phase], found: &Bounds) {
        if self.aim == Aim::Epsilon && found.upper > 0.0 && found.upper < 0.8 * self.target {
            // If the Rényi bound was far off, so was the tilt.
            self.tilt(for_epsilon(&self.nodes, found.upper), found.upper);
            return;
        }
        let excess = (found.upper - found.lower) / (WIDTH * found.upper);
        self.fineness *= if excess.is_finite() { (0.7 / excess.sqrt()).clamp(0.2, 0.7) } else { 0.2 };
        self.resolve(phases);
        self.tilt(for_epsilon(&self.nodes, self.target), self.target);
    }

    /// Sets the range of a step's losses that contribute to the result, at the current delta and resolution.
    fn resolve(&mut self, phases: &[Phase]) {
        let steps: f64 = phases.iter().map(|&(_, steps)| steps as f64).sum();
        let least = self.ln_delta - steps.ln();
        // Losses beyond the reach contribute at most 1e-5 of delta, over all steps.
        self.reach = (2.0 * (11.5 - least)).sqrt().clamp(4.0, 37.5);
        let least = least + (INFINITE * self.fineness * self.fineness).ln();
        self.highest = phases.iter().map(|(pair, _)| highest(&**pair, self.reach, least)).collect();
        let nodes = |((pair, steps), &highest): (&Phase, &f64)| {
            Nodes::new(&**pair, *steps as f64, self.reach, highest)
        };
        self.nodes = phases.iter().zip(&self.highest).map(nodes).collect();
        self.cumulants = cumulants(&self.nodes, self.theta);
    }

    fn tilt(&mut self, theta: f64, target: f64) {
        // Every tilt gives valid bounds; one far below the inverse standard deviation of the loss would need
        // a long period.
        self.theta = theta.max(0.7 / cumulants(&self.nodes, theta).variance.sqrt());
        self.cumulants = cumulants(&self.nodes, self.theta);
        self.target = target;
    }

    /// The logarithm of the mean payoff under the tilt: delta is the product of the moment M(theta),
    /// e^{-theta epsilon} and this mean.
    fn ln_payoff(&self) -> f64 {
        (self.ln_delta - self.cumulants.value + self.theta * self.target).clamp(-60.0, 0.0)
    }

    /// Target width of the bounds in epsilon.
    fn width(&self) -> f64 {
        match self.aim {
            Aim::Epsilon => WIDTH * self.target,
            Aim::Delta => WIDTH / (1.0 + self.theta),
        }
    }

    /// The knots for each of `phases`.
    pub fn grids(&self, phases: &[Phase]) -> Vec<Grid> {
        // A loss far above the target contributes almost as much as an infinite one, unless other steps have
        // negative losses.
        let pull: f64 = phases.iter().map(|(pair, steps)| pair.loss(0.0).min(0.0) * *steps as f64).sum();
        let spread = 5.0 * self.cumulants.variance.sqrt().min(20.0);
        let far = self.target - pull + 12.0 - 2.0 * self.fineness.ln() + spread;
        let grid = |((pair, _), &highest): (&Phase, &f64)| {
            Grid::new(&**pair, self.reach, self.spacing(), highest.min(far))
        };
        phases.iter().zip(&self.highest).map(grid).collect()
    }

    /// The distance of adjacent knots, in standard deviations of a step. For a distance d, the second moments
    /// that chords add and lowered chords remove make the bounds (1 + theta) d^2 roughness / 4 apart.
    fn spacing(&self) -> f64 {
        let finest = 2.0 * self.reach / 100_000.0;
        let fitted = (2.0 * self.width() / ((1.0 + self.theta) * self.cumulants.roughness)).sqrt();
        (fitted.min(0.25) * self.fineness).max(finest)
    }

    /// The settings of the Fourier transform. Smoothing by s changes epsilon by about 1.5 (1 + theta) s^2.
    pub fn settings(&self) -> Settings {
        let ln_near = self.ln_payoff() + LN_OUTSIDE;
        // The payoff is at most 1/(e theta).
        let ln_far = (ln_near + self.theta.ln() + 1.0).min(LN_OUTSIDE);
        let (lowest, below) = end(&self.nodes, self.theta, ln_far, -1.0);
        let (highest, above) = end(&self.nodes, self.theta, ln_far, 1.0);
        let half = (self.target - lowest).max(highest - self.target).max(-ln_near / self.theta);
        let smoothing = (self.width() / (5.0 * (1.0 + self.theta))).sqrt().min(0.25 / (1.0 + self.theta));
        // The range of the measures is slightly larger than that of the quadrature.
        Settings {
            theta: self.theta,
            smoothing: smoothing * self.fineness,
            period: 2.1 * half,
            // The error of leaving out higher frequencies is relative to the largest payoff, not to its mean.
            last: (2.0 * (14.0 - self.ln_payoff())).sqrt().max(MIN_LAST),
            above,
            below,
        }
    }
}

/// The loss of `pair` above which its curve is below e^`ln_least`, within `reach`.
fn highest(pair: &dyn Pair, reach: f64, ln_least: f64) -> f64 {
    let (mut low, mut high) = (0.0, pair.greatest(reach));
    for _ in 0..50 {
        let middle = 0.5 * (low + high);
        if pair.at(middle, Rounding::Up).value.ln() > ln_least { low = middle } else { high = middle }
    }
    high
}
