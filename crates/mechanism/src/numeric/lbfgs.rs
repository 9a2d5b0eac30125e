//! Minimise a smooth f over R^p by limited-memory BFGS with a weak Wolfe line search.
//!
//! One call of f returns its value and its gradient. The line search brackets and bisects (Lewis and
//! Overton): it needs no interpolation safeguards, and a value that is not finite counts as a step that is
//! too long. O(memory p) time and space an iteration, in addition to the calls of f.

use std::collections::VecDeque;

use crate::numeric::vector::{add_scaled, dot, norm_squared};
use crate::solution::{Solution, Status};

/// Stopping rules and memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Settings {
    /// Maximum number of iterations. Default 500.
    pub(crate) max_iterations: usize,
    /// The solver stops when no component of the gradient exceeds this. In this crate f is the logarithm of a
    /// loss, so that this is a relative change of the loss. Default 1e-10.
    pub(crate) gradient_tolerance: f64,
    /// The solver stops when f decreases by less than this times 1 + |f| in each of five consecutive
    /// iterations. Default 1e-14.
    pub(crate) decrease_tolerance: f64,
    /// Number of past steps (and changes of the gradient) that approximate the Hessian. Default 20.
    pub(crate) memory: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { max_iterations: 500, gradient_tolerance: 1e-10, decrease_tolerance: 1e-14, memory: 20 }
    }
}

/// The constants of the Armijo and Wolfe conditions, the maximum number of bisections of a line search, and
/// the number of iterations with little decrease after which the solver stops.
const SUFFICIENT_DECREASE: f64 = 1e-4;
const CURVATURE: f64 = 0.9;
const MAX_BISECTIONS: usize = 60;
const SLOW_ITERATIONS: usize = 5;
/// Relative decreases below this are lost in rounding errors.
const ROUNDING: f64 = 1e-12;

struct Point {
    x: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
}

/// Minimises `f` from `start`; `f` returns its value and gradient.
pub(crate) fn minimize(
    f: impl Fn(&[f64]) -> (f64, Vec<f64>),
    start: Vec<f64>,
    settings: &Settings,
) -> Solution<Vec<f64>> {
    minimize_until(f, start, settings, |_, _| false)
}

/// Like [`minimize`], but also stops, as converged, when `done` returns true for an iterate and its gradient.
pub(crate) fn minimize_until(
    f: impl Fn(&[f64]) -> (f64, Vec<f64>),
    start: Vec<f64>,
    settings: &Settings,
    mut done: impl FnMut(&[f64], &[f64]) -> bool,
) -> Solution<Vec<f64>> {
    let (value, gradient) = f(&start);
    let mut at = Point { x: start, value, gradient };
    let start_value = value;
    let ended = |at: Point, status, iterations| Solution {
        improved: at.value < start_value,
        value: at.x,
        status,
        gap: None,
        iterations,
    };
    let mut pairs: VecDeque<(Vec<f64>, Vec<f64>)> = VecDeque::with_capacity(settings.memory);
    let mut slow = 0;
    for iteration in 0..settings.max_iterations {
        let steepest = at.gradient.iter().fold(0.0, |m: f64, g| m.max(g.abs()));
        let flat = steepest <= settings.gradient_tolerance || slow >= SLOW_ITERATIONS;
        if flat || done(&at.x, &at.gradient) {
            return ended(at, Status::Converged, iteration);
        }
        let direction = descent_direction(&at.gradient, &pairs);
        let first_step = if pairs.is_empty() { 1.0 / (1.0 + norm(&at.gradient)) } else { 1.0 };
        let Some(next) = line_search(&f, &at, &direction, first_step) else {
            if pairs.is_empty() {
                let promised = -dot(&at.gradient, &direction) * first_step;
                let negligible = promised <= ROUNDING * (1.0 + at.value.abs());
                return ended(at, if negligible { Status::Converged } else { Status::Stalled }, iteration);
            }
            pairs.clear(); // the model misleads: restart from steepest descent
            continue;
        };
        let negligible = settings.decrease_tolerance * (1.0 + at.value.abs());
        slow = if at.value - next.value <= negligible { slow + 1 } else { 0 };
        remember(&mut pairs, &at, &next, settings.memory);
        at = next;
    }
    ended(at, Status::IterationLimit, settings.max_iterations)
}

fn norm(x: &[f64]) -> f64 {
    norm_squared(x).sqrt()
}

fn remember(pairs: &mut VecDeque<(Vec<f64>, Vec<f64>)>, from: &Point, to: &Point, memory: usize) {
    let minus = |a: &[f64], b: &[f64]| -> Vec<f64> { a.iter().zip(b).map(|(a, b)| a - b).collect() };
    let (s, y) = (minus(&to.x, &from.x), minus(&to.gradient, &from.gradient));
    if dot(&s, &y) > 1e-16 * norm(&s) * norm(&y) {
        if pairs.len() == memory {
            pairs.pop_front();
        }
        pairs.push_back((s, y));
    }
}

/// Returns -H g by the two-loop recursion, where H is the approximate inverse Hessian and g the gradient.
fn descent_direction(gradient: &[f64], pairs: &VecDeque<(Vec<f64>, Vec<f64>)>) -> Vec<f64> {
    let mut q: Vec<f64> = gradient.iter().map(|g| -g).collect();
    let mut weights = Vec::with_capacity(pairs.len());
    for (s, y) in pairs.iter().rev() {
        let weight = dot(s, &q) / dot(s, y);
        add_scaled(&mut q, -weight, y);
        weights.push(weight);
    }
    if let Some((s, y)) = pairs.back() {
        let scale = dot(s, y) / dot(y, y);
        q.iter_mut().for_each(|q| *q *= scale);
    }
    for ((s, y), weight) in pairs.iter().zip(weights.iter().rev()) {
        let correction = weight - dot(y, &q) / dot(s, y);
        add_scaled(&mut q, correction, s);
    }
    q
}

/// Returns a point that meets the weak Wolfe conditions, or the best decrease found while bisecting.
fn line_search(
    f: &impl Fn(&[f64]) -> (f64, Vec<f64>),
    from: &Point,
    direction: &[f64],
    first_step: f64,
) -> Option<Point> {
    let slope = dot(&from.gradient, direction);
    // Also refuses a slope of NaN.
    if !matches!(slope.partial_cmp(&0.0), Some(std::cmp::Ordering::Less)) {
        return None;
    }
    let (mut low, mut high, mut step) = (0.0, f64::INFINITY, first_step);
    let mut best: Option<Point> = None;
    for _ in 0..MAX_BISECTIONS {
        let mut x = from.x.clone();
        add_scaled(&mut x, step, direction);
        let (value, gradient) = f(&x);
        let finite = value.is_finite() && gradient.iter().all(|g| g.is_finite());
        if !finite || value > from.value + SUFFICIENT_DECREASE * step * slope {
            high = step;
        } else {
            let steep = dot(&gradient, direction) < CURVATURE * slope;
            best = Some(Point { x, value, gradient });
            if !steep {
                return best;
            }
            low = step;
        }
        step = if high.is_finite() { 0.5 * (low + high) } else { 2.0 * step };
    }
    best.filter(|best| best.value < from.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rosenbrock_in_twenty_dimensions() {
        let f = |x: &[f64]| {
            let mut gradient = vec![0.0; x.len()];
            let mut value = 0.0;
            for i in 0..x.len() - 1 {
                let (a, b) = (x[i + 1] - x[i] * x[i], 1.0 - x[i]);
                value += 100.0 * a * a + b * b;
                gradient[i] += -400.0 * a * x[i] - 2.0 * b;
                gradient[i + 1] += 200.0 * a;
            }
            (value, gradient)
        };
        let found = minimize(f, vec![-1.2; 20], &Settings::default());
        assert_eq!(found.status, Status::Converged);
        assert!(found.value.iter().all(|x| (x - 1.0).abs() < 1e-6), "{:?}", found.value);
    }

    #[test]
    fn values_that_are_not_finite_are_steps_too_far() {
        // ln is NaN left of 0: the minimum of x - ln x is at 1.
        let f = |x: &[f64]| (x[0] - x[0].ln(), vec![1.0 - 1.0 / x[0]]);
        let found = minimize(f, vec![1e-3], &Settings::default());
        assert!((found.value[0] - 1.0).abs() < 1e-6);
    }

    #[test]
    fn the_iteration_limit_is_reported() {
        let f = |x: &[f64]| (x[0].powi(4), vec![4.0 * x[0].powi(3)]);
        let settings = Settings { max_iterations: 2, ..Settings::default() };
        assert_eq!(minimize(f, vec![3.0], &settings).status, Status::IterationLimit);
    }
}
