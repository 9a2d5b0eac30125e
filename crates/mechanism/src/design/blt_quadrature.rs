//! BLTs by a formula: a rational approximation of 1 / sqrt(1 - x), the generating function of the square root
//! of prefix sums.
//!
//! 1. 1 / sqrt(y) is the integral over all u of e^(u/2) / (pi (e^u + y)). With y = 1 - x, the integrand is
//!    w(u) / (1 - lambda x), where lambda = 1 / (1 + e^u) and w(u) = e^(u/2) / (pi (1 + e^u)).
//! 2. The trapezoidal rule with step h, over u = h k for -below <= k <= above, is a sum of geometric
//!    sequences: c_t = h sum_k w(h k) lambda_k^t, a BLT once it is divided by c_0, with complements delta_k =
//!    1 / (1 + e^-hk).
//! 3. For Re y >= 0 the integrand is analytic for |Im u| < pi / 2, so that the step costs a relative error of
//!    about e^(-pi^2 / h). The sums that are left out cost e^(-h above / 2) at |y| <= 2, and n e^(-h below
//!    / 2) at |y| >= 1 / n.
//! 4. All three are e^-L for h = pi^2 / L, above = 2 L^2 / pi^2 and below = 2 L (L + ln n) / pi^2. So an
//!    error of delta / n takes O(ln^2(n / delta)) buffers.
//!
//! # Source
//! Monograph, Theorem 2.18 and Section 2.9; the rule is ours, since the monograph states none.

use std::f64::consts::PI;

use antinoise_input::between;

use crate::strategy::Blt;
use crate::{Problem, Result};

/// Maximum number of buffers.
const MAX_BUFFERS: usize = 512;

/// Returns the BLT with this number of buffers or, by default, with the number of [`buffers`] for an error of
/// a hundredth.
pub(super) fn blt(problem: &Problem, order: Option<usize>) -> Result<Blt> {
    let order = order.unwrap_or_else(|| buffers(problem.steps, 0.01));
    between("order", order, 1, MAX_BUFFERS, "the maximum number of buffers of a rational approximation")?;
    Blt::from_nodes(problem.steps, &nodes(order, problem.steps))
}

/// Returns a number of buffers, O(ln^2(n / delta)), with which the max loss is at most delta above that of
/// the square root.
fn buffers(steps: usize, delta: f64) -> usize {
    let n = steps as f64;
    let digits = (n / delta).ln().max(1.0);
    1 + (2.0 * digits * (2.0 * digits + n.ln()) / (PI * PI)).ceil() as usize
}

/// Returns the interlaced nodes of the BLT: delta_k, and between two of them the complement of a decay of
/// C^-1.
fn nodes(order: usize, steps: usize) -> Vec<f64> {
    let log_steps = (steps as f64).ln();
    // 4 L^2 + 2 L ln n = pi^2 (order - 1).
    let reach = PI * PI * (order - 1) as f64;
    let digits = (0.25 * ((log_steps * log_steps + 4.0 * reach).sqrt() - log_steps)).max(1e-3);
    let h = PI * PI / digits;
    let above = (2.0 * digits * digits / (PI * PI)).round() as i64;
    let places: Vec<f64> = (above + 1 - order as i64..=above).map(|k| h * k as f64).collect();
    let logistic = |u: f64| 1.0 / (1.0 + (-u).exp());
    // c(x) is 0 where sum_k w_k / (1 - delta_k / delta^) is.
    let at = |u: f64| -> f64 {
        places.iter().map(|&p| (0.5 * p).exp() / (1.0 + p.exp()) / (logistic(u) - logistic(p))).sum()
    };
    let between = |pair: &[f64]| {
        let (mut low, mut high) = (pair[0], pair[1]);
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            // The sum falls from infinity to minus infinity.
            if at(middle) > 0.0 { low = middle } else { high = middle }
        }
        logistic(0.5 * (low + high))
    };
    let mut decays = places.windows(2).map(between).collect::<Vec<f64>>();
    // C^-1 has one decay lambda^ = 0.
    decays.push(1.0);
    places.iter().map(|&p| logistic(p)).zip(decays).flat_map(|(c, inverse)| [c, inverse]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toeplitz::square_root;
    use crate::{Adjacency, Strategy};

    /// Theorem 2.18: with O(ln^2(n / delta)) buffers, the max loss is at most delta above the optimum of all
    /// Toeplitz matrices.
    #[test]
    fn the_loss_is_within_delta_of_the_toeplitz_optimum() {
        let mut tried = 0;
        for steps in [2, 3, 7, 16, 100, 1000, 20_000] {
            let optimum: f64 = square_root(&vec![1.0; steps], steps).iter().map(|c| c * c).sum();
            for delta in [1.0, 0.3, 0.1, 0.01, 1e-4] {
                let order = buffers(steps, delta);
                assert!(order as f64 <= 2.0 + 0.7 * (steps as f64 / delta).ln().max(1.0).powi(2));
                let problem = Problem::prefix(steps);
                let blt = blt(&problem, Some(order)).unwrap();
                let loss = blt.loss(&problem.workload, &problem.participation, Adjacency::ZeroOut).unwrap();
                let above = loss.max_loss - optimum;
                assert!((-1e-9..delta).contains(&above), "n={steps}, {order} buffers: {above} of {delta}");
                tried += 1;
            }
        }
        assert_eq!(tried, 35);
    }

    /// The coefficients are those of the quadrature: sum_k w_k lambda_k^t over sum_k w_k.
    #[test]
    fn the_nodes_give_the_sums_of_the_trapezoidal_rule() {
        for (order, steps) in [(1, 5), (2, 50), (9, 200), (40, 1000)] {
            let blt = blt(&Problem::prefix(steps), Some(order)).unwrap();
            let delta: Vec<f64> = nodes(order, steps).into_iter().step_by(2).collect();
            // e^(u/2) / (1 + e^u) = sqrt(delta (1 - delta)).
            let weights: Vec<f64> = delta.iter().map(|x| (x * (1.0 - x)).sqrt()).collect();
            let sum: f64 = weights.iter().sum();
            for (t, c) in blt.coefficients().unwrap().iter().enumerate() {
                let expected: f64 =
                    weights.iter().zip(&delta).map(|(w, x)| w * (1.0 - x).powi(t as i32)).sum::<f64>() / sum;
                assert!((c / expected - 1.0).abs() < 1e-9, "{order} buffers, step {t}: {c} {expected}");
            }
        }
    }
}
