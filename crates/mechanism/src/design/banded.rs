//! Minimise ||A C^-1|| over banded lower-triangular C with columns of norm 1.
//!
//! 1. Variables: C_ij = Theta_{i-j, j} / ||Theta_{:, j}|| for 0 <= i - j < bands. Every Theta is valid, and
//!    the sensitivity is sqrt(k) if participations are at least `bands` apart.
//! 2. Value and gradient, column by column: y = C^-1 e_j, b = A y, lam = C^-T A^T (2 W b), and dC_il -= lam_i
//!    y_l on the band. W is the diagonal matrix of the weights of B's rows (the identity for the RMS loss).
//!    Eight columns are computed together.
//!    For the last iterate, A is that of prefix sums, and the row x = C^-T u of a response u adds x^T x, and
//!    -2 x_i y_l to dC_il, where y = C^-1 x.
//! 3. O(n^2 bands) time an evaluation and O(n) memory a task. For workloads with a short recursion no column
//!    is computed: O(n bands^2), see `decoder::BandedErrors`.
//!
//! # Source
//! BandMF, Algorithm 3 and its Appendix, with the recurrence corrected. For the max loss, our own: a p-norm
//! replaces the maximum of the row norms.

use antinoise_input::between;

use super::best::Best;
use super::class::Design;
use super::coefficient_rule::CoefficientRule;
use super::spec::StrategySpec;
use super::toeplitz::{bands_of, coefficients};
use crate::decoder::BandedErrors;
use crate::numeric::lanes::{LANES, Lanes, sum_over_groups};
use crate::numeric::lbfgs;
use crate::numeric::limits::check_held;
use crate::numeric::softmax::{ROW_EXPONENTS, soft_maximum};
use crate::problem::Objective;
use crate::solution::Solution;
use crate::strategy::Banded;
use crate::workload::{LastIterate, Operator};
use crate::{Problem, Result, Separation, Workload};

/// Maximum of n^2 bands times iterations; about 10^10 take a second. Where this allows few iterations, the
/// loss of the start (the optimal Toeplitz C with its columns scaled to norm 1) is already within 1/400 of
/// the optimum.
const MAX_WORK: u64 = 400_000_000_000;
/// Maximum of n width^2 times the iterations of all solves, for evaluations that compute no columns, where
/// width is that of [`BandedErrors`]; about 10^9 take a second.
const MAX_DIRECT_WORK: u64 = 15_000_000_000;
/// Maximum number of entries in the steps that L-BFGS remembers; with as many entries of gradients, 2 GB.
const MAX_REMEMBERED: usize = 1 << 27;
/// Maximum of n x bands for which the design with half the bands is also tried as a start. That design is
/// found in the same way.
const MAX_SIZE_OF_NARROWER_STARTS: usize = 1 << 14;

/// Returns the exponents p of the successive solves for an objective: rising for the max loss; 1 for the RMS
/// loss, which is the mean of the squared row norms.
pub(super) fn exponents(objective: Objective) -> &'static [f64] {
    match objective {
        Objective::Max => &ROW_EXPONENTS,
        Objective::Rms => &[1.0],
    }
}

/// The logarithm of the p-norm of B's squared row norms, divided by n^(1/p), as a function of Theta.
pub(super) struct BandedLoss {
    /// A; for the last iterate and batches of queries, that of prefix sums.
    workload: Operator,
    /// The responses of the last iterate or the rows of a batch, if the workload has these.
    last_iterate: Option<LastIterate>,
    /// Computes the row norms of B without its columns, if that is faster.
    direct: Option<BandedErrors>,
    steps: usize,
    bands: usize,
    exponent: f64,
}

/// C row by row, with C\[t, t - tau\] at index t bands + tau, and the norms of Theta's columns.
pub(crate) struct Normalized {
    pub(crate) rows: Vec<f64>,
    norms: Vec<f64>,
}

/// Scales the columns of Theta to norm 1; Theta\[t, t - tau\] is at index t bands + tau.
pub(crate) fn normalize_columns(theta: &[f64], bands: usize) -> Normalized {
    let n = theta.len() / bands;
    let mut norms = vec![0.0; n];
    for t in 0..n {
        for tau in 0..bands.min(t + 1) {
            norms[t - tau] += theta[t * bands + tau].powi(2);
        }
    }
    norms.iter_mut().for_each(|x| *x = x.sqrt());
    let mut rows = vec![0.0; theta.len()];
    for t in 0..n {
        for tau in 0..bands.min(t + 1) {
            rows[t * bands + tau] = theta[t * bands + tau] / norms[t - tau];
        }
    }
    Normalized { rows, norms }
}

impl BandedLoss {
    pub(super) fn new(problem: &Problem, bands: usize, exponent: f64) -> Result<Self> {
        let Problem { steps, workload, .. } = problem;
        let last_iterate = workload.summed_rows(*steps)?;
        let summed = if last_iterate.is_some() { &Workload::Prefix } else { workload };
        let (direct, workload) = (BandedErrors::new(summed, *steps, bands), Operator::new(summed, *steps)?);
        Ok(Self { workload, last_iterate, direct, steps: *steps, bands, exponent })
    }

    /// Returns the number of iterations that each of `solves` solves may take, divided by `part`.
    pub(super) fn iterations(&self, solves: usize, part: usize) -> usize {
        let (steps, bands) = (self.steps as u64, self.bands as u64);
        let by_columns = steps.saturating_mul(steps).saturating_mul(bands);
        let responses = self.last_iterate.as_ref().map_or(0, |last| last.responses.len() as u64);
        let work = |direct: &BandedErrors| direct.work() as u64 + 4 * steps * bands * responses;
        let direct = self.direct.as_ref().map_or(0, |direct| MAX_DIRECT_WORK / solves as u64 / work(direct));
        let most = direct.max(MAX_WORK / by_columns) / part as u64;
        usize::try_from(most).unwrap_or(usize::MAX)
    }

    pub(super) fn value_and_gradient(&self, theta: &[f64]) -> (f64, Vec<f64>) {
        let c = normalize_columns(theta, self.bands);
        let (mut norm, mut d_rows) = if let Some(direct) = &self.direct {
            let covariance = direct.covariance(&c.rows);
            let (norm, weights) = soft_maximum(&covariance.rows(), self.exponent);
            (norm, covariance.gradient(&weights))
        } else if self.exponent == 1.0 {
            let mean = 1.0 / self.steps as f64;
            let (squared, d_rows) = self.pass(&c.rows, Some(&vec![mean; self.steps]));
            (squared.iter().sum::<f64>() * mean, d_rows)
        } else {
            let (norm, weights) = soft_maximum(&self.pass(&c.rows, None).0, self.exponent);
            (norm, self.pass(&c.rows, Some(&weights)).1)
        };
        if let Some(last) = &self.last_iterate {
            let factor = last.prefix_factor.powi(2);
            let (squared, slopes) = self.of_responses(last, &c.rows);
            let mean = 1.0 / self.steps as f64;
            norm = factor * norm + mean * squared;
            d_rows.iter_mut().zip(slopes).for_each(|(d, slope)| *d = factor * *d + mean * slope);
        }
        (norm.ln(), self.through_normalization(&c, &d_rows, 1.0 / norm))
    }

    /// Returns the squared error that `objective` minimises, without smoothing and up to a constant factor;
    /// infinity in place of NaN.
    pub(super) fn cost(&self, theta: &[f64], objective: Objective) -> f64 {
        let rows = normalize_columns(theta, self.bands).rows;
        let squared = match &self.direct {
            Some(direct) => direct.covariance(&rows).rows(),
            None => self.pass(&rows, None).0,
        };
        let cost = match (&self.last_iterate, objective) {
            (Some(last), _) => {
                let responses = self.of_responses(last, &rows).0;
                last.prefix_factor.powi(2) * squared.into_iter().sum::<f64>() + responses
            }
            (None, Objective::Max) => squared.into_iter().fold(0.0, f64::max),
            (None, Objective::Rms) => squared.into_iter().sum(),
        };
        if cost.is_finite() { cost } else { f64::INFINITY }
    }

    /// Returns the sum of the squared norms of the responses' rows of B, and its derivative in C.
    fn of_responses(&self, last: &LastIterate, rows: &[f64]) -> (f64, Vec<f64>) {
        let (bands, responses) = (self.bands, &last.responses);
        // The last entry is the value.
        let mut total =
            sum_over_groups(responses.len(), rows.len() + 1, responses.len() * rows.len(), |first, sums| {
                let entry = |lane: usize, t: usize| responses.get(first + lane).map_or(0.0, |u| u[t]);
                let mut x: Vec<Lanes> =
                    (0..self.steps).map(|t| std::array::from_fn(|lane| entry(lane, t))).collect();
                solve_transposed(rows, bands, 0, &mut x);
                let y = solve(rows, bands, 0, x.iter().copied());
                let products = |x: &Lanes, y: &Lanes| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
                for (t, row) in x.iter().enumerate() {
                    sums[rows.len()] += products(row, row);
                    let slopes = &mut sums[t * bands..][..bands.min(t + 1)];
                    for (tau, slope) in slopes.iter_mut().enumerate() {
                        *slope -= 2.0 * products(row, &y[t - tau]);
                    }
                }
            });
        let value = total.pop().expect("the value is last");
        (value, total)
    }

    /// Maps the derivative in C to the derivative in Theta, column by column: dTheta = (dC - c <c, dC>) /
    /// ||Theta||, where c is the column of C.
    fn through_normalization(&self, c: &Normalized, d_rows: &[f64], scale: f64) -> Vec<f64> {
        let bands = self.bands;
        let mut along = vec![0.0; self.steps];
        for t in 0..self.steps {
            for tau in 0..bands.min(t + 1) {
                along[t - tau] += c.rows[t * bands + tau] * d_rows[t * bands + tau];
            }
        }
        let mut gradient = vec![0.0; d_rows.len()];
        for t in 0..self.steps {
            for tau in 0..bands.min(t + 1) {
                let (at, j) = (t * bands + tau, t - tau);
                gradient[at] = scale * (d_rows[at] - c.rows[at] * along[j]) / c.norms[j];
            }
        }
        gradient
    }

    /// Returns B's squared row norms and, if row weights are given, the derivative in C of their weighted
    /// sum.
    fn pass(&self, rows: &[f64], weights: Option<&[f64]>) -> (Vec<f64>, Vec<f64>) {
        let n = self.steps;
        let length = n + if weights.is_some() { rows.len() } else { 0 };
        let mut squared = sum_over_groups(n, length, n * rows.len(), |first, sums| {
            let (squared, gradient) = sums.split_at_mut(n);
            self.columns(rows, first, weights, squared, gradient);
        });
        let gradient = squared.split_off(n);
        (squared, gradient)
    }

    /// Adds the contributions of B's columns first..first + LANES to the squared row norms and to the
    /// gradient.
    fn columns(
        &self,
        rows: &[f64],
        first: usize,
        weights: Option<&[f64]>,
        squared: &mut [f64],
        gradient: &mut [f64],
    ) {
        let units = (0..self.steps - first).map(|i| std::array::from_fn(|lane| f64::from(lane == i)));
        let y = solve(rows, self.bands, first, units);
        let mut b = self.workload.apply_lanes(&y, first);
        for (sum, b) in squared[first..].iter_mut().zip(&b) {
            *sum += b.iter().map(|x| x * x).sum::<f64>();
        }
        let Some(weights) = weights else { return };
        for (b, weight) in b.iter_mut().zip(&weights[first..]) {
            b.iter_mut().for_each(|x| *x *= 2.0 * weight);
        }
        let mut lam = self.workload.apply_transposed_lanes(&b, first);
        solve_transposed(rows, self.bands, first, &mut lam);
        for i in 0..lam.len() {
            let row = &mut gradient[(first + i) * self.bands..][..self.bands.min(i + 1)];
            for (tau, d) in row.iter_mut().enumerate() {
                let past = &y[i - tau];
                *d -= (0..LANES).map(|lane| lam[i][lane] * past[lane]).sum::<f64>();
            }
        }
    }
}

/// Returns y = C^-1 x from row `first` on, for columns x that are 0 before it.
fn solve(rows: &[f64], bands: usize, first: usize, x: impl ExactSizeIterator<Item = Lanes>) -> Vec<Lanes> {
    let mut y: Vec<Lanes> = Vec::with_capacity(x.len());
    for (i, mut sum) in x.enumerate() {
        let row = &rows[(first + i) * bands..][..bands];
        for (c, past) in row[1..].iter().zip(y.iter().rev()) {
            for lane in 0..LANES {
                sum[lane] -= c * past[lane];
            }
        }
        y.push(sum.map(|x| x / row[0]));
    }
    y
}

/// Replaces x by C^-T x, from row `first` on.
fn solve_transposed(rows: &[f64], bands: usize, first: usize, x: &mut [Lanes]) {
    for i in (0..x.len()).rev() {
        let row = &rows[(first + i) * bands..][..bands];
        let solved = x[i].map(|x| x / row[0]);
        x[i] = solved;
        for (tau, c) in row.iter().enumerate().take(i + 1).skip(1) {
            for lane in 0..LANES {
                x[i - tau][lane] -= c * solved[lane];
            }
        }
    }
}

/// Returns the rows of the C with `bands` bands and columns of norm 1 that minimises ||A C^-1||. The solver
/// begins at the best of `starts`; each holds Theta\[t, t - tau\] at index t bands + tau.
///
/// # Errors
/// When the workload is not valid for the problem's steps.
pub(crate) fn minimize_columns(
    starts: &[Vec<f64>],
    bands: usize,
    problem: &Problem,
) -> Result<Solution<Vec<f64>>> {
    let (steps, exponents) = (problem.steps, exponents(problem.objective));
    let loss = |exponent: f64| BandedLoss::new(problem, bands, exponent);
    let plain = loss(1.0)?;
    let cost = |theta: &[f64]| plain.cost(theta, problem.objective);
    let mut best = Best::new(starts[0].clone(), cost(&starts[0]));
    starts[1..].iter().for_each(|start| best.consider(start.clone(), cost(start)));
    let mut theta = best.value().clone();
    // The loss is flat in most of the n x bands variables: tighter tolerances do not change its digits.
    let most = plain.iterations(exponents.len(), 1);
    let settings = lbfgs::Settings {
        max_iterations: most.clamp(1, lbfgs::Settings::default().max_iterations),
        memory: (MAX_REMEMBERED / (steps * bands)).clamp(2, lbfgs::Settings::default().memory),
        gradient_tolerance: 1e-9,
        decrease_tolerance: 1e-10,
    };
    for &exponent in exponents {
        let loss = loss(exponent)?;
        let found = lbfgs::minimize(|theta| loss.value_and_gradient(theta), theta, &settings);
        theta = found.value.clone();
        best.offer(found, cost(&theta));
    }
    Ok(best.finished().map(|theta| with_positive_diagonal(normalize_columns(&theta, bands).rows, bands)))
}

/// Negates the rows with a negative diagonal entry: this negates seed noise, whose distribution is symmetric,
/// and leaves C^T C unchanged.
fn with_positive_diagonal(mut rows: Vec<f64>, bands: usize) -> Vec<f64> {
    for row in rows.chunks_exact_mut(bands).filter(|row| row[0] < 0.0) {
        row.iter_mut().for_each(|x| *x = -*x);
    }
    rows
}

impl Design for Banded {
    fn design(spec: &StrategySpec, problem: &Problem) -> Result<Solution<Self>> {
        spec.refuse_order()?;
        let bands = bands_of(spec, problem)?;
        let Separation { min_sep: b, max_participations: k } =
            problem.participation.separation(problem.steps);
        if k > 1 {
            // With no more bands than the separation, columns of the same pattern are orthogonal, and the
            // sensitivity follows from their norms.
            between("bands", bands, 1, b, "the smallest separation of participations")?;
        }
        check_held("steps times bands", problem.steps.saturating_mul(bands))?;
        let columns = |c: &[f64]| -> Vec<f64> {
            let padded = || (0..bands).map(|tau| c.get(tau).copied().unwrap_or(0.0));
            (0..problem.steps).flat_map(|_| padded()).collect()
        };
        let fixed = columns(&coefficients(problem, bands, CoefficientRule::SquareRoot)?.value);
        if spec.rule == CoefficientRule::SquareRoot {
            let rows = normalize_columns(&fixed, bands).rows;
            return Ok(Solution::closed_form(Self::new(bands, rows)?));
        }
        let mut starts = vec![
            fixed,
            columns(&[1.0]),
            columns(&coefficients(problem, bands, CoefficientRule::Optimized)?.value),
        ];
        if problem.steps * bands <= MAX_SIZE_OF_NARROWER_STARTS && bands > 1 {
            let fewer =
                Self::design(&StrategySpec { bands: Some(bands.div_ceil(2)), ..*spec }, problem)?.value;
            starts.push(fewer.widened(bands));
        }
        minimize_columns(&starts, bands, problem)?.try_map(|rows| Self::new(bands, rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Strategy;
    use crate::testing::{Tolerance, assert_gradient};

    #[test]
    fn the_gradient_is_the_finite_difference() {
        let (steps, bands) = (13, 4);
        for text in ["prefix", "momentum:0.6,0.1", "nesterov:0.5", "window:3", "cooldown:5,0.2"] {
            for (exponent, by_columns) in [(1.0, true), (6.0, true), (1.0, false), (6.0, false)] {
                let given: Workload = text.parse().unwrap();
                let direct = BandedErrors::new(&given, steps, bands).filter(|_| !by_columns);
                let workload = Operator::new(&given, steps).unwrap();
                let loss = BandedLoss { workload, last_iterate: None, direct, steps, bands, exponent };
                let theta: Vec<f64> =
                    (0..steps * bands).map(|i| 1.0 / (1.0 + (i % bands) as f64 + 0.01 * i as f64)).collect();
                let (_, gradient) = loss.value_and_gradient(&theta);
                let f = |theta: &[f64]| loss.value_and_gradient(theta).0;
                let case = format!("{text} {exponent}");
                assert_gradient(&case, f, &theta, &gradient, 1e-5, Tolerance::absolute(1e-8));
            }
        }
    }

    #[test]
    fn the_last_iterates_gradient_is_the_finite_difference_and_its_loss_that_of_the_strategy() {
        let (steps, bands) = (17, 4);
        let problem = Problem::prefix(steps).with_workload("last-iterate:0.5,0.2".parse().unwrap());
        let loss = BandedLoss::new(&problem, bands, 1.0).unwrap();
        let theta: Vec<f64> =
            (0..steps * bands).map(|i| 1.0 / (1.0 + (i % bands) as f64 + 0.01 * i as f64)).collect();
        let (value, gradient) = loss.value_and_gradient(&theta);
        let f = |theta: &[f64]| loss.value_and_gradient(theta).0;
        assert_gradient("last iterate", f, &theta, &gradient, 1e-5, Tolerance::absolute(1e-8));
        let rows = normalize_columns(&theta, bands).rows;
        let strategy = Banded::new(bands, rows).unwrap();
        let rows = crate::decoder::rows_by_columns(&strategy.recursion().unwrap(), steps, &problem.workload);
        let squared: f64 = rows.unwrap().iter().sum();
        assert!(((squared / steps as f64).ln() - value).abs() < 1e-12);
        assert!((loss.cost(&theta, Objective::Max) / squared - 1.0).abs() < 1e-12);
        let fast: f64 = strategy.row_errors_squared(&problem.workload).unwrap().iter().sum();
        assert!((fast / squared - 1.0).abs() < 1e-12);
    }
}
