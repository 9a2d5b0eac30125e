//! The dense design for patterns that share steps, for small n. Columns of the same pattern may have positive
//! inner products.
//!
//! > minimise tr(P A X^-1 A^T) subject to X\[t, tau\] >= 0 for co-participating t != tau and
//! > sum over t, tau in pi of X\[t, tau\] <= 1 for every pattern pi.
//!
//! The multipliers are v_pi = y_pi^2 of the patterns and zeta_{t tau}^2 of the sign constraints: Lambda =
//! sum_pi v_pi 1_pi 1_pi^T - sum zeta^2 (e_t e_tau^T + e_tau e_t^T), which the line search keeps positive
//! definite, and the bound is ||P^1/2 A Lambda^1/2||_*^2 / (sum v sum p). An evaluation takes one Cholesky
//! factor, one symmetric eigendecomposition and a few products: O(n^3) time. There is one variable zeta for
//! each pair of steps that share a pattern.
//!
//! # Source
//! Multi-epoch paper, Section 4, with additional multipliers for the signs of X.

use std::cell::OnceCell;

use antinoise_linear::{Matrix, lower_inverse, product, reverse_cholesky, symmetric_eigen};

use super::certified::{Dual, Evaluation, ascend_to, squared_error};
use super::queries::Queries;
use super::settings::DenseSettings;
use super::spectrum::{FLOOR, Spectrum};
use crate::solution::Solution;
use crate::{Problem, Result};

/// Largest rounding error of an eigenvalue of a correlation matrix, for each row.
const ROUNDING: f64 = 1e-14;
/// Number of corrections of correlation matrices.
const CORRECTIONS: usize = 50;
/// What each multiplier begins with after a problem with fewer patterns, relative to their mean.
const LEAST_SHARE: f64 = 0.3;

pub(super) struct Overlapping {
    queries: Queries,
    /// The indicators 1_pi, or any other vectors c with c^T X c <= 1.
    corners: Vec<Vec<f64>>,
    /// The pairs t < tau for which X\[t, tau\] >= 0 is required.
    pairs: Vec<(usize, usize)>,
    scale_squared: f64,
    floor: OnceCell<f64>,
}

impl Overlapping {
    pub(super) fn new(queries: Queries, patterns: &[Vec<usize>], steps: usize, scale: f64) -> Self {
        let corner = |pattern: &Vec<usize>| {
            let mut corner = vec![0.0; steps];
            pattern.iter().for_each(|&t| corner[t] = 1.0);
            corner
        };
        let ordered = |pattern: &Vec<usize>| -> Vec<(usize, usize)> {
            let after =
                |(i, &t): (usize, &usize)| pattern[i + 1..].iter().map(move |&tau| (t, tau)).collect();
            pattern.iter().enumerate().flat_map::<Vec<_>, _>(after).collect()
        };
        let mut pairs: Vec<(usize, usize)> = patterns.iter().flat_map(ordered).collect();
        pairs.sort_unstable();
        pairs.dedup();
        let corners = patterns.iter().map(corner).collect();
        Self::with_corners(queries, corners, pairs, scale)
    }

    pub(super) fn with_corners(
        queries: Queries,
        corners: Vec<Vec<f64>>,
        pairs: Vec<(usize, usize)>,
        scale: f64,
    ) -> Self {
        Self { queries, corners, pairs, scale_squared: scale * scale, floor: OnceCell::new() }
    }

    /// Returns the initial variables: equal multipliers of the queries and of the patterns.
    pub(super) fn start(&self) -> Vec<f64> {
        let rows = self.queries.variables();
        let z = vec![1.0 / (rows.max(1) as f64).sqrt(); rows];
        self.balanced(z, &vec![1.0; self.corners.len()])
    }

    /// Returns the initial variables after the solution `before` of a problem with the first of these
    /// patterns. All patterns begin with a share of the mean multiplier, since the derivative vanishes at 0.
    pub(super) fn start_after(&self, before: &[f64], patterns: usize) -> Vec<f64> {
        let (z, y) = before[..self.queries.variables() + patterns].split_at(self.queries.variables());
        let least = LEAST_SHARE * y.iter().map(|y| y * y).sum::<f64>() / patterns as f64;
        let v: Vec<f64> = y.iter().map(|y| y * y + least).collect();
        let added = vec![least; self.corners.len() - patterns];
        self.balanced(z.to_vec(), &[v, added].concat())
    }

    /// Returns the variables for these z and for v divided by its sum, with multipliers of the signs that
    /// cancel the off-diagonal entries of Lambda.
    fn balanced(&self, z: Vec<f64>, v: &[f64]) -> Vec<f64> {
        let total: f64 = v.iter().sum();
        let mean = 1.0 / v.len() as f64;
        let together = |&(t, tau): &(usize, usize)| {
            // Pairs whose entry of Lambda is 0 begin near 0, but not at 0, where the derivative in zeta
            // vanishes.
            let sum: f64 = self.corners.iter().zip(v).map(|(c, v)| v / total * c[t] * c[tau]).sum();
            sum.max(1e-4 * mean / self.pairs.len() as f64).sqrt()
        };
        let multipliers = v.iter().map(|v| (v / total).sqrt()).collect();
        [z, multipliers, self.pairs.iter().map(together).collect()].concat()
    }

    /// Returns a lower bound on the squared loss of every C, whatever the signs of its inner products.
    ///
    /// For any correlation matrices R_pi, sens^2 >= sum over t, tau in pi of R_pi\[t, tau\] X\[t, tau\],
    /// since there are gradients with these inner products. So the bound of the dual holds for Lambda' =
    /// sum_pi v_pi R_pi, which is brought close to Lambda.
    pub(super) fn bound_for_all_signs(&self, x: &[f64]) -> Result<f64> {
        let (z, x) = x.split_at(self.queries.variables());
        let (y, zeta) = x.split_at(self.corners.len());
        let p = self.queries.weights(z);
        let lambda = self.of_correlations(y, &self.multiplier_matrix(y, zeta))?;
        let (_, spectrum) = self.spectrum(&lambda, &p)?;
        Ok(self.bound(&spectrum, y.iter().map(|y| y * y).sum::<f64>() * total(&p)))
    }

    /// Returns L with L^T L = `lambda`, and the eigenpairs of K = L A^T P A L^T.
    fn spectrum(&self, lambda: &Matrix, p: &[f64]) -> Result<(Matrix, Spectrum)> {
        let l = reverse_cholesky(lambda)?;
        let k = product(&product(&l, &*self.queries.gram(p)), l.transpose());
        let floor = *self.floor.get_or_init(|| FLOOR * (0..k.nrows()).map(|t| k[(t, t)]).sum::<f64>());
        Ok((l, Spectrum::new(k, floor)?))
    }

    /// Returns the certified bound for these eigenvalues and sum v sum p.
    fn bound(&self, spectrum: &Spectrum, sums: f64) -> f64 {
        self.scale_squared * spectrum.certified_trace().powi(2) / sums
    }

    /// Returns a matrix sum_pi v_pi R_pi close to `lambda`. What is missing of an entry is added to the R of
    /// all patterns with that pair of steps, which are then made correlation matrices again.
    fn of_correlations(&self, y: &[f64], lambda: &Matrix) -> Result<Matrix> {
        let without = self.multiplier_matrix(y, &[]);
        let steps: Vec<Vec<usize>> =
            self.corners.iter().map(|c| (0..c.len()).filter(|&t| c[t] != 0.0).collect()).collect();
        let mut correlations: Vec<Matrix> =
            steps.iter().map(|steps| Matrix::from_fn(steps.len(), steps.len(), |_, _| 1.0)).collect();
        let mut sum = without.clone();
        for _ in 0..CORRECTIONS {
            let missing = |t: usize, tau: usize| (lambda[(t, tau)] - sum[(t, tau)]) / without[(t, tau)];
            let mut next = Matrix::zeros(lambda.nrows(), lambda.nrows());
            for ((steps, r), y) in steps.iter().zip(&mut correlations).zip(y) {
                let moved = |i: usize, j: usize| match missing(steps[i], steps[j]) {
                    missing if i != j && missing.is_finite() => r[(i, j)] + missing,
                    _ => r[(i, j)],
                };
                *r = correlation(&Matrix::from_fn(steps.len(), steps.len(), moved))?;
                for (j, &tau) in steps.iter().enumerate() {
                    steps.iter().enumerate().for_each(|(i, &t)| next[(t, tau)] += y * y * r[(i, j)]);
                }
            }
            sum = next;
        }
        Ok(sum)
    }

    fn multiplier_matrix(&self, y: &[f64], zeta: &[f64]) -> Matrix {
        let n = self.corners[0].len();
        let mut lambda = Matrix::zeros(n, n);
        for (corner, y) in self.corners.iter().zip(y) {
            for (j, c) in corner.iter().enumerate().filter(|(_, c)| **c != 0.0) {
                let column = lambda.column_mut(j).iter_mut();
                column.zip(corner).for_each(|(x, d)| *x += y * y * c * d);
            }
        }
        for (&(t, tau), zeta) in self.pairs.iter().zip(zeta) {
            lambda[(t, tau)] -= zeta * zeta;
            lambda[(tau, t)] -= zeta * zeta;
        }
        lambda
    }

    /// Returns the gradient of ln sum v - 2 ln T in y and zeta, where T = ||P^1/2 A Lambda^1/2||_* and
    /// dT/dLambda = X / 2.
    fn gradient(&self, y: &[f64], zeta: &[f64], x: &Matrix, trace: f64) -> Vec<f64> {
        let n = x.nrows();
        let sum: f64 = y.iter().map(|y| y * y).sum();
        let of_corner = |(corner, y): (&Vec<f64>, &f64)| {
            let form: f64 = (0..n)
                .filter(|&j| corner[j] != 0.0)
                .map(|j| corner[j] * (0..n).map(|i| corner[i] * x[(i, j)]).sum::<f64>())
                .sum();
            2.0 * y * (1.0 / sum - form / trace)
        };
        let of_pair = |(&(t, tau), zeta): (&(usize, usize), &f64)| 4.0 * zeta * x[(t, tau)] / trace;
        let corners = self.corners.iter().zip(y).map(of_corner);
        corners.chain(self.pairs.iter().zip(zeta).map(of_pair)).collect()
    }
}

/// Returns a correlation matrix close to a symmetric matrix: without its negative eigenvalues, scaled to a
/// diagonal of 1.
fn correlation(x: &Matrix) -> Result<Matrix> {
    let (values, vectors) = symmetric_eigen(x)?;
    let mut half = vectors;
    for (j, value) in values.iter().enumerate() {
        half.column_mut(j).iter_mut().for_each(|x| *x *= value.max(0.0).sqrt());
    }
    let r = product(&half, half.transpose());
    // Off the diagonal, entries are smaller by more than the rounding errors of positive eigenvalues.
    let exact = 1.0 - ROUNDING * r.nrows() as f64;
    Ok(Matrix::from_fn(r.nrows(), r.nrows(), |i, j| match (r[(i, i)] * r[(j, j)]).sqrt() {
        _ if i == j => 1.0,
        scale if scale > 0.0 => exact * r[(i, j)] / scale,
        _ => 0.0,
    }))
}

/// The sum of the weights of queries, or 1 if they have none.
fn total(p: &[f64]) -> f64 {
    if p.is_empty() { 1.0 } else { p.iter().sum() }
}

impl Dual for Overlapping {
    /// The eigenpairs of K = L A^T P A L^T and L^-1, where L^T L = Lambda.
    type State = (Spectrum, Matrix);

    fn evaluate(&self, x: &[f64]) -> Result<Evaluation<Self::State>> {
        let (z, x) = x.split_at(self.queries.variables());
        let (y, zeta) = x.split_at(self.corners.len());
        let p = self.queries.weights(z);
        let (l, spectrum) = self.spectrum(&self.multiplier_matrix(y, zeta), &p)?;
        let inverse = lower_inverse(&l);

        let mut half = product(&inverse, &spectrum.vectors);
        for (j, slope) in spectrum.slopes().iter().enumerate() {
            half.column_mut(j).iter_mut().for_each(|x| *x *= slope.sqrt());
        }
        let of_x = product(&half, half.transpose());
        let trace = spectrum.trace();
        let mut gradient = self.queries.gradient(z, &p, product(l.transpose(), &spectrum.vectors), &spectrum);
        gradient.append(&mut self.gradient(y, zeta, &of_x, trace));

        let weight = total(&p);
        let sum: f64 = y.iter().map(|y| y * y).sum();
        Ok(Evaluation {
            value: f64::ln(weight) + sum.ln() - 2.0 * trace.ln(),
            gradient,
            bound: self.bound(&spectrum, sum * weight),
            state: (spectrum, inverse),
        })
    }

    /// Returns X divided by the largest sum of |X\[t, tau\]| over a pattern.
    fn gram(&self, _: &[f64], (spectrum, inverse): &Self::State) -> Result<Matrix> {
        let half = product(inverse, &spectrum.half());
        let mut x = product(&half, half.transpose());
        let n = x.nrows();
        let squared = |corner: &Vec<f64>| -> f64 {
            let within: Vec<usize> = (0..n).filter(|&t| corner[t] != 0.0).collect();
            within.iter().map(|&t| within.iter().map(|&tau| x[(t, tau)].abs()).sum::<f64>()).sum()
        };
        let largest = self.corners.iter().map(squared).fold(0.0, f64::max);
        (0..n).for_each(|j| x.column_mut(j).iter_mut().for_each(|x| *x /= largest));
        Ok(x)
    }

    fn soften(&mut self, softness: f64) {
        self.queries.soften(softness);
    }
}

/// Returns the C of least loss among those without negative inner products, with its gap to the bound for
/// every C.
pub(super) fn minimize(
    mut dual: Overlapping,
    problem: &Problem,
    settings: &DenseSettings,
) -> Result<Solution<Matrix>> {
    let start = dual.start();
    let (found, variables) = ascend_to(&mut dual, start, problem, settings)?;
    let bound = dual.bound_for_all_signs(&variables)?;
    let gap = (squared_error(&found.value, problem)? / bound - 1.0).max(0.0);
    Ok(Solution { gap: gap.is_finite().then_some(gap), ..found })
}
