//! The squared sensitivity of a BLT C, ||sum of k shifted columns of C||^2, and its squared error ||B||^2 for
//! prefix sums, with their partial derivatives.

use super::geometric::{power, sum, weighted_sum};
use super::shifts::Shifts;
use crate::Separation;
use crate::problem::Objective;

/// A squared norm and its partial derivatives.
pub(crate) struct Norm {
    pub(crate) squared: f64,
    /// Derivatives in the weights of C (alpha_i) or of B (beta_i).
    pub(crate) d_weights: Vec<f64>,
    /// Derivatives in the nodes of C (delta_i = 1 - lambda_i) or of C^-1 (delta^_i).
    pub(crate) d_nodes: Vec<f64>,
    /// Derivative in g, the limit of B's coefficients; 0 for the sensitivity.
    pub(crate) d_limit: f64,
}

/// A sum of powers of 1 - x over n terms as a function of (n, x): its value and its derivative in x.
type WithSlope = fn(f64, f64) -> (f64, f64);

/// Returns x with 1 - x = (1 - p)(1 - q).
fn joint(p: f64, q: f64) -> f64 {
    p + q - p * q
}

/// Returns ||B||_row^2 or ||B||_F^2 over n steps, where b_t = g + sum_i beta_i (1 - delta^_i)^t. O(d^2).
///
/// # Source
/// Monograph, Lemma 2.29(b, c), rewritten so that every term is positive.
pub(crate) fn error(g: f64, beta: &[f64], nodes: &[f64], steps: usize, objective: Objective) -> Norm {
    let n = steps as f64;
    let (of_limit, geometric): (f64, WithSlope) = match objective {
        Objective::Max => (n, sum),
        Objective::Rms => (0.5 * n * (n + 1.0), weighted_sum),
    };
    let d = beta.len();
    let mut norm = Norm {
        squared: g * g * of_limit,
        d_weights: vec![0.0; d],
        d_nodes: vec![0.0; d],
        d_limit: 2.0 * g * of_limit,
    };
    for i in 0..d {
        let (value, slope) = geometric(n, nodes[i]);
        norm.squared += 2.0 * g * beta[i] * value;
        norm.d_limit += 2.0 * beta[i] * value;
        norm.d_weights[i] += 2.0 * g * value;
        norm.d_nodes[i] += 2.0 * g * beta[i] * slope;
        for j in 0..d {
            let (value, slope) = geometric(n, joint(nodes[i], nodes[j]));
            norm.squared += beta[i] * beta[j] * value;
            norm.d_weights[i] += 2.0 * beta[j] * value;
            norm.d_nodes[i] += 2.0 * beta[i] * beta[j] * slope * (1.0 - nodes[j]);
        }
    }
    norm
}

/// Returns the squared sensitivity over n steps for k participations, b apart: ||sum over j < k of column jb
/// of C||^2, where c_0 = 1 and c_t = sum_i alpha_i lambda_i^(t-1). O(d^2 log k).
///
/// In row t = p b + s, 0 <= s < b, the sum of the columns is sum_i alpha_i lambda_i^(s-1) L_ip for s >= 1,
/// and 1 + sum_i alpha_i lambda_i^(b-1) L_i(p-1) for s = 0, where L_ip = sum over j <= p of lambda_i^(jb).
pub(crate) fn sensitivity(alpha: &[f64], nodes: &[f64], steps: usize, separation: Separation) -> Norm {
    let Separation { min_sep: b, max_participations: k } = separation;
    let d = alpha.len();
    let mut norm = Norm { squared: k as f64, d_weights: vec![0.0; d], d_nodes: vec![0.0; d], d_limit: 0.0 };
    let inner = if k > 1 { (b - 1) as f64 } else { 0.0 };
    let last = (steps - (k - 1) * b - 1) as f64;
    // lambda^(b-1), the decay from a participation to the row before the next one, and its derivative.
    let decayed = |x: f64| (power(inner, x), if inner == 0.0 { 0.0 } else { -inner * power(inner - 1.0, x) });
    for i in 0..d {
        let (q, dq) = decayed(nodes[i]);
        for j in 0..d {
            let x = joint(nodes[i], nodes[j]);
            let ((within, d_within), (after, d_after)) = (sum(inner, x), sum(last, x));
            let shifts = Shifts::new(nodes[i], nodes[j], b, k);
            let (products, ends) = (shifts.products, shifts.last_product);
            let (other, keep) = (decayed(nodes[j]).0, 1.0 - nodes[j]);
            let pair = within * products.value + after * ends.value + q * other * products.value;
            norm.squared += alpha[i] * alpha[j] * pair;
            norm.d_weights[i] += 2.0 * alpha[j] * pair;
            let slope = d_within * keep * products.value
                + within * products.slope
                + d_after * keep * ends.value
                + after * ends.slope
                + other * (dq * products.value + q * products.slope);
            norm.d_nodes[i] += 2.0 * alpha[i] * alpha[j] * slope;
            if j == i {
                // Rows t = p b, p >= 1: the product of c_0 = 1, from the participation in row t, and the sum
                // of coefficients from earlier participations.
                let sums = shifts.sums;
                norm.squared += 2.0 * alpha[i] * q * sums.value;
                norm.d_weights[i] += 2.0 * q * sums.value;
                norm.d_nodes[i] += 2.0 * alpha[i] * (dq * sums.value + q * sums.slope);
            }
        }
    }
    norm
}
