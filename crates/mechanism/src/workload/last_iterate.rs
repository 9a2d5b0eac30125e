//! The noise that training still remembers at its end: the workload of the last iterate.
//!
//! 1. Near an optimum, the loss is a quadratic function. Along a direction of curvature h, noise z_s that is
//!    added to the gradient of step s moves the last iterate by u_h(s) z_s: with learning rate eta and
//!    momentum beta, u_h(n - 1 - d) is the d-th term of x, where v_0 = 1, x_0 = eta, v_d = beta v_{d-1} -
//!    h x_{d-1} and x_d = x_{d-1} + eta v_d.
//! 2. The curvatures of a model are not known, and those along which noise matters depend on the learning
//!    rate. So ln h is taken to be uniform, in units of (1 - beta) / eta, from 1 / (3 n), along which
//!    training forgets nothing, to 1, along which it forgets within a few steps. Directions of curvature h
//!    are as many as 1 / h, and each adds h u_h^T K u_h to the loss for noise of covariance K: all weights
//!    are equal.
//! 3. Rows are the responses u_h of curvatures a factor 2 apart. Noise of early steps can leave the region
//!    where the loss is quadratic, so the prefix sums have a share of the squared error too.
//! 4. Rows are scaled so that independent noise has the RMS error that it has for prefix sums, and the share
//!    is the part of prefix sums in it over that of the responses.

/// Ratio of adjacent curvatures. Ratios of 1.05 and 2 give the same losses to within 1 part in 100.
const RATIO: f64 = 2.0;
/// The smallest curvature is 1 / (LONGEST n).
const LONGEST: f64 = 3.0;

/// The rows of the workload: responses of the last iterate, then multiples of the n prefix sums.
pub(crate) struct LastIterate {
    /// u_h for each curvature, scaled: entry s is the effect of noise at step s.
    pub(crate) responses: Vec<Vec<f64>>,
    /// The momentum beta, and the curvature h of each response in units of (1 - beta) / eta.
    pub(crate) momentum: f64,
    pub(crate) curvatures: Vec<f64>,
    /// The factor of the responses, which are those for a learning rate of 1 - beta.
    pub(crate) scale: f64,
    /// The factor of the prefix sums.
    pub(crate) prefix_factor: f64,
}

/// Returns the number of responses over `steps` steps.
pub(super) fn responses(steps: usize) -> usize {
    ((LONGEST * steps as f64).ln() / RATIO.ln()).ceil() as usize + 1
}

impl LastIterate {
    pub(super) fn new(steps: usize, momentum: f64, prefix_share: f64) -> Self {
        let count = responses(steps);
        let curvature = |i: usize| (LONGEST * steps as f64).powf(-(i as f64) / (count - 1) as f64);
        let curvatures: Vec<f64> = (0..count).map(curvature).collect();
        let mut responses: Vec<Vec<f64>> = curvatures.iter().map(|&h| response(h, momentum, steps)).collect();
        let rows = (count + steps) as f64;
        let squared: f64 = responses.iter().flatten().map(|x| x * x).sum();
        let wanted = rows * 0.5 * (steps as f64 + 1.0) / (1.0 + prefix_share);
        let scale = (wanted / squared).sqrt();
        responses.iter_mut().flatten().for_each(|x| *x *= scale);
        let prefix_factor = (rows / steps as f64 * prefix_share / (1.0 + prefix_share)).sqrt();
        Self { responses, momentum, curvatures, scale, prefix_factor }
    }
}

/// Returns u_h for `curvature` in units of (1 - beta) / eta, times (1 - beta) / eta.
fn response(curvature: f64, momentum: f64, steps: usize) -> Vec<f64> {
    let rate = 1.0 - momentum;
    let (mut velocity, mut moved) = (1.0, rate);
    let mut effects = vec![0.0; steps];
    for effect in effects.iter_mut().rev() {
        *effect = moved;
        velocity = momentum * velocity - curvature * moved;
        moved += rate * velocity;
    }
    effects
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Strategy;
    use crate::Workload;
    use crate::strategy::Identity;

    /// Runs SGD with momentum on h x^2 / 2, with a unit of noise at one step.
    #[test]
    fn responses_are_the_optimizer_run_with_noise_at_one_step() {
        let (steps, momentum, curvature) = (40, 0.8, 0.3);
        let found = response(curvature, momentum, steps);
        for (noisy, found) in found.iter().enumerate() {
            let (mut velocity, mut x) = (0.0, 0.0);
            for step in 0..steps {
                let gradient = curvature * x - f64::from(step == noisy);
                velocity = momentum * velocity + gradient;
                x -= (1.0 - momentum) * velocity;
            }
            assert!((x - found).abs() < 1e-14, "{noisy}: {x} {found}");
        }
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
                let u = response(h, momentum, steps);
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
