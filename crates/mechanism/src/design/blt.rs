//! Minimise sens(C, Pi) ||A C^-1|| over BLTs of a given order.
//!
//! 1. Variables: u in R^{2d}, from which `blt_closed_form::interlaced` computes the nodes. Every u gives a
//!    valid BLT, so that no barrier is needed.
//! 2. The sensitivity has a closed form, O(d^2 log k). So has the error of prefix sums, O(d^2) for every n.
//!    The error of other Toeplitz workloads is computed step by step, O(n d). Other workloads and listed
//!    patterns need the n coefficients of C.
//! 3. Orders are solved one after the other, each also from the solution of the previous order with an inert
//!    buffer added. So the loss never rises with the order, nor above the loss of the identity.

use antinoise_input::between;

use super::best::Best;
use super::blt_quadrature;
use super::class::Design;
use super::coefficient_rule::CoefficientRule;
use super::spec::StrategySpec;
use super::toeplitz::{LastIterateError, ToeplitzLoss};
use crate::blt_closed_form::cascade::Cascade;
use crate::blt_closed_form::interlaced::Interlaced;
use crate::blt_closed_form::{coefficients, norms};
use crate::decoder::steady_state;
use crate::numeric::lbfgs;
use crate::numeric::limits::check_materializable;
use crate::numeric::softmax::ROW_EXPONENTS;
use crate::problem::Objective;
use crate::solution::Solution;
use crate::strategy::Blt;
use crate::{Participation, Problem, Result, Separation, Workload};

/// Maximum number of buffers that a spec may request.
const MAX_ORDER: usize = 16;
/// Maximum number of buffers if the spec requests none.
const MAX_AUTO_ORDER: usize = 12;

/// The logit of the largest node at the start; and the logarithm of the difference between the logits of the
/// two nodes of an inert buffer.
const START_TOP: f64 = 1.0;
const INERT_LOG_GAP: f64 = -3.0;
/// The same logarithm for the BLT that is nearly the identity: its two nodes are just distinct in double
/// precision.
const IDENTITY_LOG_GAP: f64 = -33.0;

/// Maximum number of steps for which the coefficients of C are computed one by one, whatever the workload.
const MATERIALIZED_STEPS: usize = 48;

/// The number of buffers of a BLT: fixed, or chosen by the loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BltOrder {
    /// A fixed number.
    Fixed(usize),
    /// Buffers are added, up to this number, while each lowers the loss by at least a thousandth.
    Auto(usize),
}

impl BltOrder {
    fn max(self) -> usize {
        match self {
            Self::Fixed(order) | Self::Auto(order) => order,
        }
    }

    /// Returns whether a decrease by `gained` of the logarithm of the squared loss is too small for another
    /// buffer.
    fn is_not_worth(self, gained: f64) -> bool {
        matches!(self, Self::Auto(_)) && gained < 2e-3
    }
}

/// ln(sens^2 ||B||^2) as a function of u.
struct BltLoss {
    steps: usize,
    separation: Separation,
    form: LossForm,
}

/// How ||B||^2 and sens^2 are computed.
enum LossForm {
    /// Prefix sums: ||B||^2 and sens^2 in closed form.
    Closed(Objective),
    /// Other Toeplitz A: ||B||^2 as the sum of `weights` times w_t^2, with w computed step by step; sens^2 in
    /// closed form.
    Cascade { workload: Vec<f64>, weights: Vec<f64> },
    /// The last iterate: ||B||^2 from the first column of C^-1, sens^2 in closed form.
    LastIterate(LastIterateError),
    /// All other cases: ||B||^2 and sens^2 from the coefficients of C.
    Materialized(ToeplitzLoss),
}

impl BltLoss {
    /// Returns the losses of the successive solves: one for each exponent of the p-norm that replaces the
    /// maximum row norm, if A is not Toeplitz; otherwise a single loss.
    fn stages(problem: &Problem) -> Result<Vec<Self>> {
        let Problem { steps, workload, participation, objective } = problem;
        participation.check(*steps)?;
        let with = |form| Self { steps: *steps, separation: participation.separation(*steps), form };
        // For few steps, sums over the coefficients take less time than closed forms.
        let must_materialize =
            matches!(participation, Participation::Patterns { .. }) || *steps <= MATERIALIZED_STEPS;
        if *workload == Workload::Prefix && !must_materialize {
            return Ok(vec![with(LossForm::Closed(*objective))]);
        }
        if !must_materialize && let Some(rows) = workload.summed_rows(*steps)? {
            return Ok(vec![with(LossForm::LastIterate(LastIterateError::new(rows, *steps)))]);
        }
        if !must_materialize && let Some(a) = workload.coefficients(*steps)? {
            let weights = steady_state::weights(*steps, *steps, *objective).0;
            return Ok(vec![with(LossForm::Cascade { workload: a, weights })]);
        }
        let smooth = *objective == Objective::Rms || workload.is_toeplitz();
        let exponents = if smooth { &ROW_EXPONENTS[..1] } else { &ROW_EXPONENTS };
        let written = |&exponent: &f64| {
            let loss = ToeplitzLoss::new(*steps, *steps, workload, participation, *objective, exponent)?;
            Ok(with(LossForm::Materialized(loss)))
        };
        exponents.iter().map(written).collect()
    }

    fn value_and_gradient(&self, u: &[f64]) -> (f64, Vec<f64>) {
        let blt = Interlaced::from_variables(u);
        match &self.form {
            LossForm::Closed(objective) => {
                let (error, d_nodes, d_residues) = closed_error(&blt, self.steps, *objective);
                self.with_sensitivity(&blt, error, d_nodes, d_residues)
            }
            LossForm::Cascade { workload, weights } => {
                let norm = Cascade { nodes: &blt.nodes, workload }.weighted_norm(weights);
                let d_nodes = norm.d_nodes.iter().map(|d| d / norm.squared).collect();
                self.with_sensitivity(&blt, norm.squared.ln(), d_nodes, vec![0.0; blt.nodes.len()])
            }
            LossForm::LastIterate(error) => {
                let (error, d_nodes, d_residues) = last_iterate_error(&blt, self.steps, error);
                self.with_sensitivity(&blt, error, d_nodes, d_residues)
            }
            LossForm::Materialized(loss) => materialized(&blt, self.steps, loss),
        }
    }

    /// Adds ln sens^2 in closed form to ln ||B||^2 and its derivatives.
    fn with_sensitivity(
        &self,
        blt: &Interlaced,
        error: f64,
        mut d_nodes: Vec<f64>,
        mut d_residues: Vec<f64>,
    ) -> (f64, Vec<f64>) {
        let (delta, alpha) = (every_other(&blt.nodes, 0), every_other(&blt.residues, 0));
        let c = norms::sensitivity(&alpha, &delta, self.steps, self.separation);
        for i in 0..delta.len() {
            d_residues[2 * i] += c.d_weights[i] / c.squared;
            d_nodes[2 * i] += c.d_nodes[i] / c.squared;
        }
        (c.squared.ln() + error, blt.gradient(&d_nodes, &d_residues))
    }

    /// Returns the squared loss with the exact maximum of the row norms, not a p-norm.
    fn cost(&self, u: &[f64]) -> f64 {
        let cost = match &self.form {
            LossForm::Materialized(loss) => {
                let blt = Interlaced::from_variables(u);
                let (delta, alpha) = (every_other(&blt.nodes, 0), every_other(&blt.residues, 0));
                loss.cost(&coefficients(&alpha, &delta, self.steps))
            }
            _ => self.value_and_gradient(u).0.exp(),
        };
        if cost.is_finite() { cost } else { f64::INFINITY }
    }
}

fn every_other(x: &[f64], from: usize) -> Vec<f64> {
    x.iter().skip(from).step_by(2).copied().collect()
}

/// Returns ln ||B||^2 for prefix sums, and its derivatives in the nodes and in the residues.
fn closed_error(blt: &Interlaced, steps: usize, objective: Objective) -> (f64, Vec<f64>, Vec<f64>) {
    let (delta, delta_hat) = (every_other(&blt.nodes, 0), every_other(&blt.nodes, 1));
    let beta: Vec<f64> = every_other(&blt.residues, 1).iter().zip(&delta_hat).map(|(r, p)| r / p).collect();
    let g = blt.limit();
    let e = norms::error(g, &beta, &delta_hat, steps, objective);
    let size = blt.nodes.len();
    let (mut d_nodes, mut d_residues) = (vec![0.0; size], vec![0.0; size]);
    let by_limit = e.d_limit * g / e.squared;
    for i in 0..size / 2 {
        let by_weight = e.d_weights[i] / e.squared;
        d_residues[2 * i + 1] = by_weight / delta_hat[i];
        d_nodes[2 * i] = by_limit / delta[i];
        d_nodes[2 * i + 1] = e.d_nodes[i] / e.squared - (by_limit + by_weight * beta[i]) / delta_hat[i];
    }
    (e.squared.ln(), d_nodes, d_residues)
}

/// Returns ln ||B||^2 for the last iterate, and its derivatives in the nodes and in the residues. The
/// coefficients of C^-1 after the first are the negative sums of the terms of its nodes.
fn last_iterate_error(blt: &Interlaced, steps: usize, error: &LastIterateError) -> (f64, Vec<f64>, Vec<f64>) {
    let negative: Vec<f64> = every_other(&blt.residues, 1).iter().map(|x| -x).collect();
    let inverse = coefficients(&negative, &every_other(&blt.nodes, 1), steps);
    let (squared, slopes) = error.of_inverse(&inverse);
    let (mut d_nodes, mut d_residues) = (vec![0.0; blt.nodes.len()], vec![0.0; blt.nodes.len()]);
    for i in (1..blt.nodes.len()).step_by(2) {
        let (d_weight, d_decay) = slopes_of_term(&slopes, 1.0 - blt.nodes[i]);
        d_residues[i] = -d_weight / squared;
        d_nodes[i] = blt.residues[i] * d_decay / squared;
    }
    (squared.ln(), d_nodes, d_residues)
}

fn materialized(blt: &Interlaced, steps: usize, loss: &ToeplitzLoss) -> (f64, Vec<f64>) {
    let (delta, alpha) = (every_other(&blt.nodes, 0), every_other(&blt.residues, 0));
    let (value, dc) = loss.value_and_gradient(&coefficients(&alpha, &delta, steps));
    let size = blt.nodes.len();
    let (mut d_nodes, mut d_residues) = (vec![0.0; size], vec![0.0; size]);
    for i in 0..size / 2 {
        let (d_weight, d_decay) = slopes_of_term(&dc, 1.0 - delta[i]);
        d_residues[2 * i] = d_weight;
        d_nodes[2 * i] = -alpha[i] * d_decay;
    }
    (value, blt.gradient(&d_nodes, &d_residues))
}

/// Returns the derivatives in alpha, and in lambda over alpha, of a function of c_t = alpha lambda^(t-1)
/// whose derivatives in c are `slopes`: sum_t slopes_t lambda^(t-1) and its derivative in lambda, by Horner's
/// rule.
fn slopes_of_term(slopes: &[f64], decay: f64) -> (f64, f64) {
    let (mut sum, mut slope) = (0.0, 0.0);
    for dc in slopes[1..].iter().rev() {
        slope = slope * decay + sum;
        sum = sum * decay + dc;
    }
    (sum, slope)
}

/// Returns variables u whose nodes have evenly spaced logits; the smallest node is about 1 / (2n).
fn spread_start(order: usize, steps: usize) -> Vec<f64> {
    let bottom = -(2.0 * steps as f64).ln();
    let gap = (START_TOP - bottom) / (2 * order - 1) as f64;
    let mut u = vec![gap.ln(); 2 * order];
    u[0] = bottom;
    u
}

/// Adds an inert buffer: one whose decay nearly equals the adjacent decay of C^-1, so that C hardly changes.
fn with_inert_buffer(u: &[f64]) -> Vec<f64> {
    let mut longer = u.to_vec();
    longer.extend([0.0, INERT_LOG_GAP]);
    longer
}

/// Returns the variables of a BLT that equals the identity to fifteen digits: its decay and the decay of its
/// inverse nearly cancel.
fn identity() -> Vec<f64> {
    vec![0.0, IDENTITY_LOG_GAP]
}

/// Returns the interlaced nodes delta_1, delta^_1, ..., delta_d, delta^_d of the BLT of least loss. There are
/// fewer pairs than requested if more of them do not lower the loss.
///
/// # Errors
/// When the participation schema or the workload is not valid for the problem's steps.
///
/// # Source
/// Monograph, Section 2.5 and Lemma 2.29, rewritten as in `blt_closed_form`.
fn minimize(limit: BltOrder, problem: &Problem) -> Result<Solution<Vec<f64>>> {
    let stages = BltLoss::stages(problem)?;
    let cost = |u: &[f64]| stages[stages.len() - 1].cost(u);
    let first = spread_start(1, problem.steps);
    let start_cost = cost(&first);
    let mut best = Best::new(first, start_cost);
    best.consider(identity(), cost(&identity()));
    for order in 1..=limit.max() {
        let below = (best.cost(), best.value().clone());
        let mut starts = vec![spread_start(order, problem.steps)];
        if order > 1 {
            starts.push(with_inert_buffer(&below.1));
        }
        for mut u in starts {
            for loss in &stages {
                let found = lbfgs::minimize(|u| loss.value_and_gradient(u), u, &lbfgs::Settings::default());
                u = found.value.clone();
                best.offer(found, cost(&u));
            }
        }
        if order > 1 && limit.is_not_worth((below.0 / best.cost()).ln()) {
            best.restore(below.1, below.0);
            break;
        }
    }
    Ok(best.finished().map(|u| Interlaced::from_variables(&u).nodes))
}

impl Design for Blt {
    fn design(spec: &StrategySpec, problem: &Problem) -> Result<Solution<Self>> {
        spec.refuse_bands()?;
        if spec.rule == CoefficientRule::RationalApproximation {
            return Ok(Solution::closed_form(blt_quadrature::blt(problem, spec.order)?));
        }
        spec.refuse_form()?;
        let order = match spec.order {
            Some(order) => {
                BltOrder::Fixed(between("order", order, 1, MAX_ORDER, "the maximum number of buffers")?)
            }
            None => BltOrder::Auto(MAX_AUTO_ORDER),
        };
        if problem.workload != Workload::Prefix {
            check_materializable(problem.steps)?;
        }
        minimize(order, problem)?.try_map(|nodes| Self::from_nodes(problem.steps, &nodes))
    }
}

/// Returns the BLT with the maximum automatic number of buffers, or with fewer for few steps.
pub(super) fn best(problem: &Problem) -> Result<Blt> {
    let max_order = MAX_AUTO_ORDER.min(problem.steps.div_ceil(2));
    let nodes = minimize(BltOrder::Fixed(max_order), problem)?.value;
    Blt::from_nodes(problem.steps, &nodes)
}

/// Returns the interlaced nodes of the BLT with at most this many buffers.
pub(super) fn nodes_of(problem: &Problem, order: usize) -> Result<Vec<f64>> {
    Ok(minimize(BltOrder::Fixed(order), problem)?.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Tolerance, assert_gradient};

    #[test]
    fn the_gradients_are_the_finite_differences_and_the_forms_agree() {
        let u = [-2.0, 0.1, -0.4, 0.2, -0.3, 0.3];
        let ones = Workload::Toeplitz { coefficients: vec![1.0; 61] };
        for objective in [Objective::Max, Objective::Rms] {
            for participation in
                ["single", "full-batch", "cyclic:4,3", "min-sep:5,4", "cyclic:4,6", "cyclic:1,5"]
            {
                let participation: Participation = participation.parse().unwrap();
                let problem = |workload: &Workload| Problem {
                    steps: 61,
                    workload: workload.clone(),
                    participation: participation.clone(),
                    objective,
                };
                let closed = BltLoss::stages(&problem(&Workload::Prefix)).unwrap().remove(0);
                let cascade = BltLoss::stages(&problem(&ones)).unwrap().remove(0);
                let toeplitz = ToeplitzLoss::new(61, 61, &ones, &participation, objective, 1.0).unwrap();
                let separation = cascade.separation;
                let written = BltLoss { steps: 61, separation, form: LossForm::Materialized(toeplitz) };
                let (value, gradient) = closed.value_and_gradient(&u);
                let f = |u: &[f64]| closed.value_and_gradient(u).0;
                let case = format!("{participation} {objective}");
                assert_gradient(&case, f, &u, &gradient, 1e-5, Tolerance::absolute(1e-8));
                for other in [&cascade, &written] {
                    let (same_value, same_gradient) = other.value_and_gradient(&u);
                    assert!((value - same_value).abs() < 1e-12, "{participation} {objective}");
                    let close = |(x, y): (&f64, &f64)| (x - y).abs() < 1e-10;
                    assert!(same_gradient.iter().zip(&gradient).all(close), "{participation} {objective}");
                }
            }
        }
    }

    #[test]
    fn the_last_iterates_gradient_is_the_finite_difference_and_the_forms_agree() {
        let u = [-2.0, 0.1, -0.4, 0.2, -0.3, 0.3];
        let problem = Problem::prefix(61)
            .with_workload("last-iterate:0.5,0.1".parse().unwrap())
            .with_participation("cyclic:4,3".parse().unwrap());
        let fast = BltLoss::stages(&problem).unwrap().remove(0);
        assert!(matches!(fast.form, LossForm::LastIterate(_)));
        let Problem { workload, participation, objective, .. } = &problem;
        let toeplitz = ToeplitzLoss::new(61, 61, workload, participation, *objective, 1.0).unwrap();
        let form = LossForm::Materialized(toeplitz);
        let written = BltLoss { steps: 61, separation: fast.separation, form };
        let (found, known) = (fast.value_and_gradient(&u), written.value_and_gradient(&u));
        assert!((found.0 - known.0).abs() < 1e-12, "{} {}", found.0, known.0);
        assert!(found.1.iter().zip(&known.1).all(|(x, y)| (x - y).abs() < 1e-10));
        let f = |u: &[f64]| fast.value_and_gradient(u).0;
        assert_gradient("last iterate", f, &u, &found.1, 1e-5, Tolerance::absolute(1e-8));
    }
}
