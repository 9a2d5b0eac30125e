//! The noise that training still remembers at its end: the workload of the last iterate.
//!
//! 1. Near an optimum, the loss is a quadratic function. Along a direction of curvature h, noise z_s that is
//!    added to the gradient of step s moves the last iterate by u_h(s) z_s. With learning rates eta_s,
//!    momentum beta and decoupled weight decay lambda, the last iterate depends on the iterate before step s
//!    by the factor p_s and on the velocity by q_s, where p_n = 1, q_n = 0, u_h(s) = eta_s p_{s+1} - q_{s+1},
//!    p_s = (1 - eta_s lambda) p_{s+1} - h u_h(s) and q_s = -beta u_h(s).
//! 2. The curvatures of a model are not known, and those along which noise matters depend on the learning
//!    rate. So ln h is taken to be uniform, in units of (1 - beta) / eta for the largest eta, from 1 / (3 n),
//!    along which training forgets nothing, to 1, along which it forgets within a few steps. Directions of
//!    curvature h are as many as 1 / h, and each adds h u_h^T K u_h to the loss for noise of covariance K:
//!    all weights are equal. Other weights are those that a probe of a training on public data has fitted.
//! 3. Rows are the responses u_h of curvatures a factor 2 apart. Noise of early steps can leave the region
//!    where the loss is quadratic, so the prefix sums have a share of the squared error too.
//! 4. Rows are scaled so that independent noise has the RMS error that it has for prefix sums, and the share
//!    is the part of prefix sums in it over that of the responses.

use antinoise_input::InvalidParameter;

use crate::Result;
use crate::numeric::limits::norm_in_range;
use crate::numeric::vector::norm_squared;

/// Ratio of adjacent curvatures. Ratios of 1.05 and 2 give the same losses to within 1 part in 100.
const RATIO: f64 = 2.0;
/// The smallest curvature is 1 / (LONGEST n).
const LONGEST: f64 = 3.0;

/// The rows of the workload: responses of the last iterate, then multiples of the n prefix sums. For designs,
/// a batch of queries takes this form too.
pub(crate) struct LastIterate {
    /// u_h for each curvature, scaled: entry s is the effect of noise at step s.
    pub(crate) responses: Vec<Vec<f64>>,
    /// For a constant learning rate, the recursion that all responses are terms of.
    pub(crate) recursion: Option<ConstantRate>,
    /// The factor of the prefix sums.
    pub(crate) prefix_factor: f64,
}

/// SGD with the learning rate 1 - beta in every step: u_h(n - 1 - d) is the d-th term of x, where v_0 = 1,
/// x_0 = 1 - beta, v_d = beta v_{d-1} - h x_{d-1} and x_d = (1 - decay) x_{d-1} + (1 - beta) v_d.
pub(crate) struct ConstantRate {
    /// The momentum beta.
    pub(crate) momentum: f64,
    /// The part of the parameters that a step takes off.
    pub(crate) weight_decay: f64,
    /// The curvature h of each response in units of (1 - beta) / eta.
    pub(crate) curvatures: Vec<f64>,
    /// The factor of each response.
    pub(crate) scales: Vec<f64>,
}

/// Returns the number of responses over `steps` steps.
pub(super) fn responses(steps: usize) -> usize {
    ((LONGEST * steps as f64).ln() / RATIO.ln()).ceil() as usize + 1
}

/// Returns the curvatures of the responses over `steps` steps, from 1 down, in units of (1 - beta) / eta.
pub(super) fn curvatures(steps: usize) -> Vec<f64> {
    let count = responses(steps);
    (0..count).map(|i| (LONGEST * steps as f64).powf(-(i as f64) / (count - 1) as f64)).collect()
}

impl LastIterate {
    /// `rates` are the learning rates of all steps, `weights` those of the responses' squares, both in any
    /// unit; none mean that they are all equal. A step at the largest rate takes the part `weight_decay` off
    /// the parameters.
    ///
    /// # Errors
    /// When the squares of the responses are outside the range of double precision, as with learning rates
    /// that alternate so that the iterates diverge.
    pub(super) fn new(
        steps: usize,
        (momentum, weight_decay, prefix_share): (f64, f64, f64),
        rates: &[f64],
        weights: &[f64],
    ) -> Result<Self> {
        let curvatures = curvatures(steps);
        let count = curvatures.len();
        let (rates, weights) = (of_largest(rates, steps), of_largest(weights, count));
        let mut responses: Vec<Vec<f64>> =
            curvatures.iter().map(|&h| response(h, (momentum, weight_decay), &rates)).collect();
        let rows = (count + steps) as f64;
        let squared: f64 = responses.iter().zip(&weights).map(|(u, weight)| weight * norm_squared(u)).sum();
        if !norm_in_range(squared.sqrt()) {
            let got = format!("such that the responses to noise have the norm {:e}", squared.sqrt());
            let must_be = "such that it is from 1e-140 to 1e150: the iterates diverge";
            return Err(InvalidParameter::new("rates", got, must_be).into());
        }
        let wanted = rows * 0.5 * (steps as f64 + 1.0) / (1.0 + prefix_share);
        let scales: Vec<f64> = weights.iter().map(|weight| (weight * wanted / squared).sqrt()).collect();
        responses.iter_mut().zip(&scales).for_each(|(u, scale)| u.iter_mut().for_each(|x| *x *= scale));
        let prefix_factor = (rows / steps as f64 * prefix_share / (1.0 + prefix_share)).sqrt();
        let is_constant = rates.iter().all(|&rate| rate == 1.0);
        let recursion = is_constant.then_some(ConstantRate { momentum, weight_decay, curvatures, scales });
        Ok(Self { responses, recursion, prefix_factor })
    }
}

/// Returns `numbers` as fractions of the largest; `count` ones if there are none.
fn of_largest(numbers: &[f64], count: usize) -> Vec<f64> {
    let largest = numbers.iter().fold(0.0, |most: f64, &x| most.max(x));
    if numbers.is_empty() { vec![1.0; count] } else { numbers.iter().map(|x| x / largest).collect() }
}

/// Returns u_h for `curvature` in units of (1 - beta) / eta, times (1 - beta) / eta, for the largest eta.
fn response(curvature: f64, (momentum, weight_decay): (f64, f64), rates: &[f64]) -> Vec<f64> {
    // The derivatives of the last iterate in the iterate and in the velocity before a step.
    let (mut by_iterate, mut by_velocity) = (1.0, 0.0);
    let mut effects = vec![0.0; rates.len()];
    for (effect, rate) in effects.iter_mut().zip(rates).rev() {
        *effect = (1.0 - momentum) * rate * by_iterate - by_velocity;
        by_iterate = (1.0 - weight_decay * rate) * by_iterate - curvature * *effect;
        by_velocity = -momentum * *effect;
    }
    effects
}

#[cfg(test)]
mod tests {
    use antinoise_input::BadInput;

    use super::*;
    use crate::Strategy;
    use crate::Workload;
    use crate::strategy::Identity;

    /// Runs SGD with momentum on h x^2 / 2, with a unit of noise at one step.
    #[test]
    fn responses_are_the_optimizer_run_with_noise_at_one_step() {
        let (steps, momentum, decay, curvature) = (40, 0.8, 0.1, 0.3);
        let falling: Vec<f64> = (0..steps).map(|t| 1.0 - t as f64 / steps as f64).collect();
        let jumps: Vec<f64> = (0..steps).map(|t| [0.0, 1.0, 0.25][t % 3]).collect();
        for rates in [vec![1.0; steps], falling, jumps] {
            for (noisy, found) in response(curvature, (momentum, decay), &rates).iter().enumerate() {
                let (mut velocity, mut x) = (0.0, 0.0);
                for (step, rate) in rates.iter().enumerate() {
                    let gradient = curvature * x - f64::from(step == noisy);
                    velocity = momentum * velocity + gradient;
                    x = (1.0 - decay * rate) * x - (1.0 - momentum) * rate * velocity;
                }
                assert!((x - found).abs() < 1e-14, "{noisy}: {x} {found}");
            }
        }
    }

    #[test]
    fn the_recursion_of_a_constant_rate_makes_the_responses() {
        let (steps, momentum, decay) = (500, 0.9, 0.01);
        let last = LastIterate::new(steps, (momentum, decay, 0.05), &[], &[]).unwrap();
        let ConstantRate { curvatures, scales, .. } = last.recursion.unwrap();
        for ((h, scale), found) in curvatures.iter().zip(scales).zip(&last.responses) {
            let (mut velocity, mut x) = (1.0, 1.0 - momentum);
            for found in found.iter().rev() {
                assert!((scale * x - found).abs() < 1e-12 * scale, "{h}: {x} {found}");
                velocity = momentum * velocity - h * x;
                x = (1.0 - decay) * x + (1.0 - momentum) * velocity;
            }
        }
    }

    #[test]
    fn a_schedule_in_another_unit_is_the_same_and_a_constant_one_is_none() {
        let of = |rates: &[f64]| LastIterate::new(20, (0.9, 0.0, 0.05), rates, &[]).unwrap();
        let falling: Vec<f64> = (0..20).map(|t| 1.0 - t as f64 / 32.0).collect();
        let smaller: Vec<f64> = falling.iter().map(|rate| rate / 64.0).collect();
        assert_eq!(of(&falling).responses, of(&smaller).responses);
        assert!(of(&falling).recursion.is_none());
        assert_eq!(of(&[0.3; 20]).responses, of(&[]).responses);
        assert!(of(&[0.3; 20]).recursion.is_some());
    }

    /// Rates that are switched on and off at the period of the oscillation drive it.
    #[test]
    fn responses_beyond_double_precision_are_refused() {
        let rates: Vec<f64> = (0..30_000).map(|t| f64::from((t as f64 / 13.943).fract() < 0.5)).collect();
        let found = LastIterate::new(30_000, (0.9, 0.0, 0.05), &rates, &[]);
        assert!(found.is_err_and(|error| error.is_bad_input()));
    }

    #[test]
    fn independent_noise_has_the_error_that_it_has_for_prefix_sums() {
        for (steps, text) in [
            (1, "last-iterate"),
            (2, "last-iterate:0.9"),
            (300, "last-iterate:0.95,2"),
            (5000, "last-iterate"),
        ] {
            let workload: Workload = text.parse().unwrap();
            let identity = Identity::new(steps);
            let (found, known) =
                (identity.error(&workload).unwrap(), identity.error(&Workload::Prefix).unwrap());
            assert!((found.rms / known.rms - 1.0).abs() < 1e-12, "{text}: {found:?} {known:?}");
        }
    }

    /// A finer grid of curvatures has the same losses: the sums are integrals over ln h.
    #[test]
    fn the_grid_of_curvatures_is_fine_enough() {
        let (steps, momentum) = (200, 0.9);
        let squared = |ratio: f64, column: &dyn Fn(usize) -> Vec<f64>| -> f64 {
            let count = ((LONGEST * steps as f64).ln() / ratio.ln()).ceil() as usize + 1;
            let of = |i: usize| {
                let h = (LONGEST * steps as f64).powf(-(i as f64) / (count - 1) as f64);
                let u = response(h, (momentum, 0.0), &vec![1.0; steps]);
                // The trapezoidal rule.
                let weight = if i == 0 || i + 1 == count { 0.5 } else { 1.0 };
                let dot = |x: Vec<f64>| u.iter().zip(x).map(|(u, x)| u * x).sum::<f64>();
                weight * (0..steps).map(|j| dot(column(j)).powi(2)).sum::<f64>()
            };
            (0..count).map(of).sum::<f64>() / (count - 1) as f64
        };
        let impulse = |j: usize| (0..steps).map(|t| f64::from(t == j)).collect::<Vec<f64>>();
        let difference = |j: usize| {
            (0..steps).map(|t| f64::from(t == j) - 0.9 * f64::from(t == j + 1)).collect::<Vec<f64>>()
        };
        let ratio = |ratio: f64| squared(ratio, &difference) / squared(ratio, &impulse);
        assert!((ratio(RATIO) / ratio(1.05) - 1.0).abs() < 1e-2, "{} {}", ratio(RATIO), ratio(1.05));
    }
}
