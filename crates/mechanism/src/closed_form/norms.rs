//! ||sum of k shifted columns of C||^2 and ||B||^2 of a BLT for prefix sums, with their partial derivatives.

use super::geometric::{power, sum, weighted_sum};
use crate::optimize::Objective;

/// A squared norm and its partial derivatives.
pub(crate) struct Norm {
    pub(crate) squared: f64,
    /// In alpha_i or beta_i.
    pub(crate) d_weights: Vec<f64>,
    /// In delta_i or delta^_i.
    pub(crate) d_nodes: Vec<f64>,
    /// In g; 0 for the sensitivity.
    pub(crate) d_limit: f64,
}

/// A sum of powers over n terms at x, and its derivative in x.
type WithSlope = fn(f64, f64) -> (f64, f64);

/// x with 1 - x = (1 - p)(1 - q).
fn joint(p: f64, q: f64) -> f64 {
    p + q - p * q
}

/// ||B||_row^2 or ||B||_F^2 over n steps, where b_t = g + sum_i beta_i (1 - delta^_i)^t. O(d^2).
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

/// ||sum over j < k of column jb||^2 over n steps, where c_0 = 1 and c_t = sum_i alpha_i lambda_i^(t-1). O(d^2 k).
///
/// With t = p b + s the sum is sum_i alpha_i lambda_i^(s-1) L_ip for s >= 1, and 1 + sum_i alpha_i
/// lambda_i^(b-1) L_i(p-1) for s = 0, where L_ip = sum over j <= p of lambda_i^(jb).
pub(crate) fn sensitivity(alpha: &[f64], nodes: &[f64], steps: usize, b: usize, k: usize) -> Norm {
    let blocks = Blocks::new(nodes, b, k);
    let d = alpha.len();
    let mut norm = Norm { squared: 1.0, d_weights: vec![0.0; d], d_nodes: vec![0.0; d], d_limit: 0.0 };
    let last = (steps - (k - 1) * b - 1) as f64;
    let inner = if k > 1 { (b - 1) as f64 } else { 0.0 };
    for i in 0..d {
        for j in 0..d {
            let x = joint(nodes[i], nodes[j]);
            for (length, from, to) in [(inner, 0, k - 1), (last, k - 1, k)] {
                let (value, slope) = sum(length, x);
                let (products, d_products) = blocks.products(i, j, from, to);
                norm.squared += alpha[i] * alpha[j] * value * products;
                norm.d_weights[i] += 2.0 * alpha[j] * value * products;
                norm.d_nodes[i] +=
                    2.0 * alpha[i] * alpha[j] * (slope * (1.0 - nodes[j]) * products + value * d_products);
            }
        }
    }
    add_first_rows(&mut norm, alpha, nodes, &blocks, b, k);
    norm
}

/// The rows t = p b, p >= 1; row 0 is 1.
fn add_first_rows(norm: &mut Norm, alpha: &[f64], nodes: &[f64], blocks: &Blocks, b: usize, k: usize) {
    let d = alpha.len();
    let decayed: Vec<(f64, f64)> = nodes
        .iter()
        .map(|&x| {
            let m = (b - 1) as f64;
            let slope = if b == 1 { 0.0 } else { -m * power(m - 1.0, x) };
            (power(m, x), slope)
        })
        .collect();
    for p in 1..k {
        let l = |i: usize| blocks.sums[i * k + p - 1];
        let row = 1.0 + (0..d).map(|i| alpha[i] * decayed[i].0 * l(i).0).sum::<f64>();
        norm.squared += row * row;
        for i in 0..d {
            let ((power, d_power), (sum, d_sum)) = (decayed[i], l(i));
            norm.d_weights[i] += 2.0 * row * power * sum;
            norm.d_nodes[i] += 2.0 * row * alpha[i] * (d_power * sum + power * d_sum);
        }
    }
}

/// L_ip and dL_ip / d delta_i, at index i k + p.
struct Blocks {
    sums: Vec<(f64, f64)>,
    k: usize,
}

impl Blocks {
    fn new(nodes: &[f64], b: usize, k: usize) -> Self {
        let b = b as f64;
        let mut sums = Vec::with_capacity(nodes.len() * k);
        for &x in nodes {
            let (q, dq) = (power(b, x), -b * power(b - 1.0, x));
            let mut at = (1.0, 0.0);
            for _ in 0..k {
                sums.push(at);
                at = (1.0 + q * at.0, dq * at.0 + q * at.1);
            }
        }
        Self { sums, k }
    }

    /// sum over p in from..to of L_ip L_jp, and its derivative in delta_i alone.
    fn products(&self, i: usize, j: usize, from: usize, to: usize) -> (f64, f64) {
        let (row_i, row_j) = (&self.sums[i * self.k..], &self.sums[j * self.k..]);
        row_i[from..to]
            .iter()
            .zip(&row_j[from..to])
            .fold((0.0, 0.0), |(value, slope), (li, lj)| (value + li.0 * lj.0, slope + li.1 * lj.0))
    }
}
