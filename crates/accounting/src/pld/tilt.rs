//! The exponential tilt under which the losses that contribute to delta are likely, found by quadrature. It
//! guides the choice of the grid, and no bound depends on its accuracy.

use super::pair::{Component, Pair};
use crate::root::golden_section;

/// Quadrature nodes for the loss of a step under P.
pub(crate) struct Nodes {
    /// For each node: the loss, the square of its derivative ([`Pair::steepness`]), and the logarithm of
    /// the mass.
    points: Vec<(f64, f64, f64)>,
    steps: f64,
}

/// The cumulant generating function K(theta) = ln E_P e^{theta loss} of the total loss, with K' and K''.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cumulants {
    pub value: f64,
    pub mean: f64,
    pub variance: f64,
    /// The mean of the squared derivative of a step's loss with respect to the output, in standard deviations
    /// of its noise; summed over the steps.
    pub roughness: f64,
}

/// Number of nodes per standard deviation of each normal component.
const DENSITY: f64 = 10.0;

impl Nodes {
    /// Quadrature of a step's loss over `reach` standard deviations; losses above `highest` count as
    /// `highest`.
    pub fn new(pair: &dyn Pair, steps: f64, reach: f64, highest: f64) -> Self {
        let count = (reach * DENSITY).ceil() as i32;
        let around = |component: Component| {
            (-count..=count).map(move |i| {
                let (z, place) = (f64::from(i) / DENSITY, component.mean + f64::from(i) / DENSITY);
                (pair.loss(place), pair.steepness(place).powi(2), component.ln_weight - 0.5 * z * z)
            })
        };
        let mut points: Vec<_> = pair.components().into_iter().flat_map(around).collect();
        for (loss, steepness, _) in &mut points {
            if *loss > highest {
                (*loss, *steepness) = (highest, 0.0);
            }
        }
        let total = ln_sum(points.iter().map(|&(_, _, w)| w));
        points.iter_mut().for_each(|(_, _, w)| *w -= total);
        Self { points, steps }
    }

    fn cumulants(&self, theta: f64) -> Cumulants {
        let peak = self.points.iter().map(|(l, _, w)| w + theta * l).fold(f64::MIN, f64::max);
        let (mut sum, mut first, mut second, mut rough) = (0.0, 0.0, 0.0, 0.0);
        for &(loss, steepness, weight) in &self.points {
            let mass = (weight + theta * loss - peak).exp();
            sum += mass;
            first += mass * loss;
            second += mass * loss * loss;
            rough += mass * steepness;
        }
        let mean = first / sum;
        let variance = (second / sum - mean * mean).max(0.0);
        Cumulants {
            value: self.steps * (peak + sum.ln()),
            mean: self.steps * mean,
            variance: self.steps * variance,
            roughness: self.steps * rough / sum,
        }
    }
}

/// The cumulants of all phases together.
pub(crate) fn cumulants(phases: &[Nodes], theta: f64) -> Cumulants {
    phases.iter().map(|phase| phase.cumulants(theta)).fold(Cumulants::default(), |a, b| Cumulants {
        value: a.value + b.value,
        mean: a.mean + b.mean,
        variance: a.variance + b.variance,
        roughness: a.roughness + b.roughness,
    })
}

/// The tilt that minimises the Rényi bound on epsilon at `ln_delta`, and that epsilon.
pub(crate) fn for_delta(phases: &[Nodes], ln_delta: f64) -> (f64, f64) {
    let (ln_theta, epsilon) = golden_section(-25.0, 25.0, |ln_theta: f64| {
        let theta = ln_theta.exp();
        (cumulants(phases, theta).value - ln_delta - theta.ln_1p()) / theta - (1.0 / theta).ln_1p()
    });
    (ln_theta.exp(), epsilon)
}

/// The tilt that minimises the Rényi bound on delta at `epsilon`.
pub(crate) fn for_epsilon(phases: &[Nodes], epsilon: f64) -> f64 {
    let bound = |ln_theta: f64| {
        let theta = ln_theta.exp();
        cumulants(phases, theta).value - theta * epsilon
    };
    golden_section(-25.0, 25.0, bound).0.exp()
}

/// Chernoff's bound on a quantile of the total loss under the tilt `theta`, beyond which there is at most the
/// mass e^`ln_tail` (above for `sign` 1, below for -1); and the further tilt that gives the bound.
pub(crate) fn end(phases: &[Nodes], theta: f64, ln_tail: f64, sign: f64) -> (f64, f64) {
    let base = cumulants(phases, theta);
    let normal = (-2.0 * ln_tail / base.variance.max(f64::MIN_POSITIVE)).sqrt().ln();
    let reach = |ln_s: f64| {
        let s = ln_s.exp();
        (cumulants(phases, theta + sign * s).value - base.value - ln_tail) / s
    };
    let (ln_s, reach) = golden_section(normal - 6.0, normal + 3.0, reach);
    (sign * reach, ln_s.exp())
}

/// The logarithm of the sum of e^x.
pub(crate) fn ln_sum(terms: impl Iterator<Item = f64> + Clone) -> f64 {
    let peak = terms.clone().fold(f64::MIN, f64::max);
    peak + terms.map(|x| (x - peak).exp()).sum::<f64>().ln()
}
