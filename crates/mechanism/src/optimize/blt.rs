//! Minimise sens(C, Pi) ||A C^-1|| over BLTs of a given order.
//!
//! Variables: u in R^{2d}, the interlaced parameterisation, so that every point is a valid BLT and no barrier
//! is needed. Prefix sums use closed forms, O(d^2 k) an evaluation whatever n; other workloads write out n
//! coefficients of C and use the Toeplitz loss, O(n (d + log n)). Orders are solved in turn, each also from
//! the one before with an inert buffer added, so that the loss never rises with the order.

use super::lbfgs::{self, Settings};
use super::toeplitz::ToeplitzLoss;
use super::{Objective, Solution};
use crate::closed_form::interlaced::Interlaced;
use crate::closed_form::norms;
use crate::{Participation, Result, Workload};

/// The logit of the largest node at the start, and how far apart an inert pair is put.
const START_TOP: f64 = 1.0;
const INERT_LOG_GAP: f64 = -3.0;

/// How many buffers a BLT may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Buffers {
    /// This many.
    Given(usize),
    /// As many as each lower the loss by a thousandth, at most this many.
    Automatic(usize),
}

impl Buffers {
    fn most(self) -> usize {
        match self {
            Self::Given(order) | Self::Automatic(order) => order,
        }
    }

    /// Whether one more buffer, which lowers the logarithm of the squared loss by `gained`, costs more than it
    /// brings.
    fn not_worth(self, gained: f64) -> bool {
        matches!(self, Self::Automatic(_)) && gained < 2e-3
    }
}

/// ln(sens^2 ||B||^2) as a function of u.
enum BltLoss {
    /// Prefix sums.
    Closed { steps: usize, separation: (usize, usize), objective: Objective },
    /// Any other Toeplitz workload.
    WrittenOut { steps: usize, loss: ToeplitzLoss },
}

impl BltLoss {
    fn new(
        steps: usize,
        workload: &Workload,
        participation: &Participation,
        objective: Objective,
    ) -> Result<Self> {
        participation.check(steps)?;
        Ok(match workload {
            Workload::Prefix => {
                Self::Closed { steps, separation: participation.separation(steps), objective }
            }
            _ => Self::WrittenOut {
                steps,
                loss: ToeplitzLoss::new(steps, steps, workload, participation, objective)?,
            },
        })
    }

    fn value_and_gradient(&self, u: &[f64]) -> (f64, Vec<f64>) {
        let blt = Interlaced::from_variables(u);
        match self {
            Self::Closed { steps, separation, objective } => closed(&blt, *steps, *separation, *objective),
            Self::WrittenOut { steps, loss } => written_out(&blt, *steps, loss),
        }
    }
}

fn every_other(x: &[f64], from: usize) -> Vec<f64> {
    x.iter().skip(from).step_by(2).copied().collect()
}

fn closed(blt: &Interlaced, steps: usize, (b, k): (usize, usize), objective: Objective) -> (f64, Vec<f64>) {
    let (delta, delta_hat) = (every_other(&blt.nodes, 0), every_other(&blt.nodes, 1));
    let alpha = every_other(&blt.residues, 0);
    let beta: Vec<f64> = every_other(&blt.residues, 1).iter().zip(&delta_hat).map(|(r, p)| r / p).collect();
    let g = blt.limit();
    let c = norms::sensitivity(&alpha, &delta, steps, b, k);
    let e = norms::error(g, &beta, &delta_hat, steps, objective);
    let size = blt.nodes.len();
    let (mut d_nodes, mut d_residues) = (vec![0.0; size], vec![0.0; size]);
    let by_limit = e.d_limit * g / e.squared;
    for i in 0..size / 2 {
        let by_weight = e.d_weights[i] / e.squared;
        d_residues[2 * i] = c.d_weights[i] / c.squared;
        d_residues[2 * i + 1] = by_weight / delta_hat[i];
        d_nodes[2 * i] = c.d_nodes[i] / c.squared + by_limit / delta[i];
        d_nodes[2 * i + 1] = e.d_nodes[i] / e.squared - (by_limit + by_weight * beta[i]) / delta_hat[i];
    }
    (c.squared.ln() + e.squared.ln(), blt.gradient(&d_nodes, &d_residues))
}

/// c_0 = 1, c_t = sum_i alpha_i (1 - delta_i)^(t-1).
pub(crate) fn coefficients(alpha: &[f64], delta: &[f64], steps: usize) -> Vec<f64> {
    let mut c = vec![0.0; steps];
    c[0] = 1.0;
    for (alpha, delta) in alpha.iter().zip(delta) {
        let mut term = *alpha;
        for c in &mut c[1..] {
            *c += term;
            term -= delta * term;
        }
    }
    c
}

fn written_out(blt: &Interlaced, steps: usize, loss: &ToeplitzLoss) -> (f64, Vec<f64>) {
    let (delta, alpha) = (every_other(&blt.nodes, 0), every_other(&blt.residues, 0));
    let (value, dc) = loss.value_and_gradient(&coefficients(&alpha, &delta, steps));
    let size = blt.nodes.len();
    let (mut d_nodes, mut d_residues) = (vec![0.0; size], vec![0.0; size]);
    for i in 0..size / 2 {
        // Horner's rule for sum_t dc_t lambda^(t-1) and its derivative in lambda.
        let (mut sum, mut slope) = (0.0, 0.0);
        for dc in dc[1..].iter().rev() {
            slope = slope * (1.0 - delta[i]) + sum;
            sum = sum * (1.0 - delta[i]) + dc;
        }
        d_residues[2 * i] = sum;
        d_nodes[2 * i] = -alpha[i] * slope;
    }
    (value, blt.gradient(&d_nodes, &d_residues))
}

/// Nodes spread evenly in the logit from 1 / (2n) upwards.
fn spread_start(order: usize, steps: usize) -> Vec<f64> {
    let bottom = -(2.0 * steps as f64).ln();
    let gap = (START_TOP - bottom) / (2 * order - 1) as f64;
    let mut u = vec![gap.ln(); 2 * order];
    u[0] = bottom;
    u
}

/// The same BLT with one more buffer, nearly cancelled by a decay of C^-1 beside it.
fn with_inert_buffer(u: &[f64]) -> Vec<f64> {
    let mut longer = u.to_vec();
    longer.extend([0.0, INERT_LOG_GAP]);
    longer
}

/// The interlaced nodes delta_1, delta^_1, ..., delta_d, delta^_d of the BLT of least loss.
///
/// # Errors
/// When the schema does not fit, or the workload is not valid.
///
/// # Source
/// Monograph, Section 2.5 and Lemma 2.29, in the form of this crate's closed forms.
pub fn minimize(
    buffers: Buffers,
    steps: usize,
    workload: &Workload,
    participation: &Participation,
    objective: Objective,
) -> Result<Solution<Vec<f64>>> {
    let loss = BltLoss::new(steps, workload, participation, objective)?;
    let f = |u: &[f64]| loss.value_and_gradient(u);
    let settings = Settings::default();
    let solve = |start: Vec<f64>| {
        let found = lbfgs::minimize(f, start, &settings);
        (f(&found.value).0, found)
    };
    let mut best: Option<(f64, Solution<Vec<f64>>)> = None;
    let mut iterations = 0;
    for order in 1..=buffers.most() {
        let below = best.clone();
        let mut starts = vec![spread_start(order, steps)];
        starts.extend(below.as_ref().map(|(_, below)| with_inert_buffer(&below.value)));
        for start in starts {
            let (value, found) = solve(start);
            iterations += found.iterations;
            if best.as_ref().is_none_or(|(least, _)| value < *least) {
                best = Some((value, found));
            }
        }
        let gained = below.as_ref().zip(best.as_ref()).map(|(below, best)| below.0 - best.0);
        if gained.is_some_and(|gained| buffers.not_worth(gained)) {
            best = below;
            break;
        }
    }
    let (_, found) = best.expect("order is at least 1");
    let nodes = Interlaced::from_variables(&found.value).nodes;
    Ok(Solution { iterations, ..found }.map(|_| nodes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gradients_are_the_finite_differences_and_the_forms_agree() {
        let u = [-2.0, 0.1, -0.4, 0.2, -0.3, 0.3];
        let ones = Workload::Toeplitz { coefficients: vec![1.0; 23] };
        for objective in [Objective::Max, Objective::Rms] {
            for participation in
                ["single", "full-batch", "cyclic:4,3", "min-sep:5,4", "cyclic:4,6", "cyclic:1,5"]
            {
                let participation = participation.parse().unwrap();
                let closed = BltLoss::new(23, &Workload::Prefix, &participation, objective).unwrap();
                let written = BltLoss::new(23, &ones, &participation, objective).unwrap();
                let (value, gradient) = closed.value_and_gradient(&u);
                let (same_value, same_gradient) = written.value_and_gradient(&u);
                assert!((value - same_value).abs() < 1e-12, "{participation} {objective}");
                for j in 0..u.len() {
                    let at = |h: f64| {
                        let mut moved = u;
                        moved[j] += h;
                        closed.value_and_gradient(&moved).0
                    };
                    let difference = (at(1e-5) - at(-1e-5)) / 2e-5;
                    assert!((difference - gradient[j]).abs() < 1e-8, "{participation} {objective} {j}");
                    assert!(
                        (same_gradient[j] - gradient[j]).abs() < 1e-10,
                        "{participation} {objective} {j}"
                    );
                }
            }
        }
    }
}
