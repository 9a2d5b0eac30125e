//! The dense design for min-sep with several participations. All entries of C are free, and an upper bound on
//! the sensitivity is minimised.
//!
//! > minimise ||A C^-1||^2 M\[0, k\], where
//! > M\[t, l\] = max(X\[t, t\] + 2 sum over 1 <= j < l of R\[t, j\] + M\[t + b, l - 1\], M\[t + 1, l\]),
//!
//! with X = C^T C, where R\[t, j\] is the largest |X\[t, tau\]| with tau >= t + j b.
//!
//! 1. M is a dynamic program over patterns, which bounds inner products by R.
//! 2. The maximum in R is smoothed by a p-norm, and the maximum in M by a softplus. Both are upper bounds,
//!    and later stages smooth less. O(n^3 + n k) time an evaluation.
//! 3. The result is where `cuts` begins.

use antinoise_linear::{Matrix, lower_inverse, product};

use crate::design::{Objective, Solution};
use crate::numeric::lbfgs;
use crate::numeric::softmax::soft_maximum;
use crate::{Problem, Separation};

/// Exponents, for successive solves, of the p-norms that replace the maxima over inner products and over
/// rows.
const EXPONENTS: [f64; 4] = [8.0, 32.0, 128.0, 1024.0];
/// Maximum number of iterations of a stage, for up to `SHORT_RUN` steps and for more.
const MAX_ITERATIONS: (usize, usize) = (150, 60);
const SHORT_RUN: usize = 128;

struct Separated<'a> {
    a: &'a Matrix,
    separation: Separation,
    objective: Objective,
    exponent: f64,
}

/// The value of the dynamic program, and its derivatives in the diagonal of X and in R; that in R\[t, j\] is
/// at index \[t\]\[j - 1\].
struct Program {
    value: f64,
    d_diagonal: Vec<f64>,
    d_reach: Vec<Vec<f64>>,
}

/// Returns the matrix whose lower triangle is `v`, row by row.
fn matrix(v: &[f64], n: usize) -> Matrix {
    Matrix::from_fn(n, n, |i, j| if i >= j { v[i * (i + 1) / 2 + j] } else { 0.0 })
}

fn triangle(c: &Matrix) -> Vec<f64> {
    (0..c.nrows()).flat_map(|i| (0..=i).map(move |j| (i, j))).map(|at| c[at]).collect()
}

impl Separated<'_> {
    fn value_and_gradient(&self, v: &[f64]) -> (f64, Vec<f64>) {
        let (queries, n) = (self.a.nrows(), self.a.ncols());
        let c = matrix(v, n);
        if (0..n).any(|t| c[(t, t)] <= 0.0) {
            return (f64::INFINITY, vec![0.0; v.len()]);
        }
        let x = product(c.transpose(), &c);
        let (sensitivity, dx) = self.sensitivity(&x);
        let inverse = lower_inverse(&c);
        let b = product(self.a, &inverse);
        let rows: Vec<f64> = (0..queries).map(|i| (0..n).map(|j| b[(i, j)] * b[(i, j)]).sum()).collect();
        let (error, weights) = match self.objective {
            Objective::Rms => (rows.iter().sum(), vec![1.0; queries]),
            Objective::Max => soft_maximum(&rows, self.exponent),
        };
        let weighted = Matrix::from_fn(queries, n, |i, j| 2.0 * weights[i] * b[(i, j)]);
        let inner = product(b.transpose(), &weighted);
        let of_error = product(&inner, inverse.transpose());
        let of_sensitivity = product(&c, &dx);
        let slope = |(i, j): (usize, usize)| of_sensitivity[(i, j)] / sensitivity - of_error[(i, j)] / error;
        let gradient = (0..n).flat_map(|i| (0..=i).map(move |j| (i, j))).map(slope).collect();
        (sensitivity.ln() + error.ln(), gradient)
    }

    /// Returns the smoothed bound on sens^2, and D + D^T for its derivative D in X.
    fn sensitivity(&self, x: &Matrix) -> (f64, Matrix) {
        let Separation { min_sep: b, max_participations: k } = self.separation;
        let (n, p) = (x.nrows(), self.exponent);
        let largest = (0..n).map(|t| x[(t, t)]).fold(0.0, f64::max);
        let power = |t: usize, tau: usize| (x[(t, tau)].abs() / largest).powf(p);
        // R by t and j - 1.
        let reach: Vec<Vec<f64>> = (0..n)
            .map(|t| {
                let mut row = vec![0.0; k - 1];
                let mut sum = 0.0;
                for tau in (t + b..n).rev() {
                    sum += power(t, tau);
                    if (tau - t) % b == 0 && (tau - t) / b < k {
                        row[(tau - t) / b - 1] = largest * sum.powf(1.0 / p);
                    }
                }
                row
            })
            .collect();
        let diagonal: Vec<f64> = (0..n).map(|t| x[(t, t)]).collect();
        let program = self.program(&diagonal, &reach);
        let mut d = Matrix::zeros(n, n);
        for t in 0..n {
            d[(t, t)] = 2.0 * program.d_diagonal[t];
            let mut slope = 0.0;
            for tau in t + b..n {
                if (tau - t) % b == 0 && (tau - t) / b < k {
                    let j = (tau - t) / b - 1;
                    if reach[t][j] > 0.0 {
                        slope += program.d_reach[t][j] * (reach[t][j] / largest).powf(1.0 - p);
                    }
                }
                let magnitude = (x[(t, tau)].abs() / largest).powf(p - 1.0);
                let derivative = slope * magnitude * x[(t, tau)].signum();
                d[(t, tau)] += derivative;
                d[(tau, t)] += derivative;
            }
        }
        (program.value, d)
    }

    /// Evaluates the dynamic program with smoothed maxima: M\[0, k\].
    fn program(&self, diagonal: &[f64], reach: &[Vec<f64>]) -> Program {
        let Separation { min_sep: b, max_participations: k } = self.separation;
        let n = diagonal.len();
        let largest =
            (0..n).max_by(|&t, &tau| diagonal[t].total_cmp(&diagonal[tau])).expect("n is at least 1");
        let sharpness = self.exponent / diagonal[largest];
        let mut best = vec![vec![0.0; n + b]; k + 1];
        // The derivative of M[t, l] in the first argument of its maximum: a participation at t.
        let mut taken = vec![vec![0.0; n]; k + 1];
        let mut weights = diagonal.to_vec();
        for l in 1..=k {
            if l > 1 {
                weights.iter_mut().zip(reach).for_each(|(w, reach)| *w += 2.0 * reach[l - 2]);
            }
            for t in (0..n).rev() {
                let (with, without) = (weights[t] + best[l - 1][t + b], best[l][t + 1]);
                let apart = sharpness * (with - without);
                best[l][t] = f64::max(with, without) + (-apart.abs()).exp().ln_1p() / sharpness;
                taken[l][t] = 1.0 / (1.0 + (-apart).exp());
            }
        }
        let mut program =
            Program { value: best[k][0], d_diagonal: vec![0.0; n], d_reach: vec![vec![0.0; k - 1]; n] };
        let mut flow = vec![vec![0.0; n + b]; k + 1];
        flow[k][0] = 1.0;
        for l in (1..=k).rev() {
            for t in 0..n {
                let here: f64 = flow[l][t];
                let taking = here * taken[l][t];
                flow[l][t + 1] += here - taking;
                flow[l - 1][t + b] += taking;
                program.d_diagonal[t] += taking;
                program.d_reach[t][..l - 1].iter_mut().for_each(|d| *d += 2.0 * taking);
            }
        }
        // The value is homogeneous of degree 1 in the diagonal, R and the unit of softness (the largest
        // diagonal entry), which gives its derivative in that unit.
        let of_reach: f64 =
            program.d_reach.iter().zip(reach).flat_map(|(d, r)| d.iter().zip(r)).map(|(d, r)| d * r).sum();
        let of_diagonal: f64 = program.d_diagonal.iter().zip(diagonal).map(|(d, x)| d * x).sum();
        program.d_diagonal[largest] += (program.value - of_diagonal - of_reach) / diagonal[largest];
        program
    }
}

/// Returns the lower-triangular C at the end of each stage. The first stage begins at `start`, each later one
/// at the previous result.
pub(super) fn descend(a: &Matrix, start: &Matrix, problem: &Problem) -> Vec<Solution<Matrix>> {
    let n = problem.steps;
    let mut v = triangle(start);
    let mut found = Vec::with_capacity(EXPONENTS.len());
    let max_iterations = if n <= SHORT_RUN { MAX_ITERATIONS.0 } else { MAX_ITERATIONS.1 };
    let settings = lbfgs::Settings { max_iterations, decrease_tolerance: 1e-9, ..Default::default() };
    for exponent in EXPONENTS {
        let separation = problem.participation.separation(n);
        let loss = Separated { a, separation, objective: problem.objective, exponent };
        let stage = lbfgs::minimize(|v| loss.value_and_gradient(v), v, &settings);
        v = stage.value.clone();
        found.push(stage.map(|v| matrix(&v, n)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Tolerance, assert_gradient};
    use crate::{Encoder, Participation, sensitivity};

    fn somewhere(n: usize) -> Vec<f64> {
        let entry = |(i, j): (usize, usize)| 1.0 / (1.0 + (i - j) as f64) + 0.1 * ((3 * i + j) as f64).sin();
        (0..n).flat_map(|i| (0..=i).map(move |j| (i, j))).map(entry).collect()
    }

    #[test]
    fn the_gradient_is_the_finite_difference_and_the_bound_is_from_above() {
        let n = 8;
        let a = Matrix::from_fn(n, n, |i, j| f64::from(i >= j));
        for (min_sep, max_participations, objective) in
            [(1, 4, Objective::Max), (3, 3, Objective::Rms), (2, 2, Objective::Rms)]
        {
            let separation = Separation { min_sep, max_participations };
            let loss = Separated { a: &a, separation, objective, exponent: 8.0 };
            let v = somewhere(n);
            let (_, gradient) = loss.value_and_gradient(&v);
            let f = |v: &[f64]| loss.value_and_gradient(v).0;
            assert_gradient(&format!("{separation:?}"), f, &v, &gradient, 1e-5, Tolerance::absolute(1e-7));
            let c = matrix(&v, n);
            let (bound, _) = loss.sensitivity(&product(c.transpose(), &c));
            let schema = Participation::MinSep { min_sep, max_participations };
            let reported = sensitivity::of_encoder(&Encoder::Dense(c), &schema).unwrap().value.powi(2);
            assert!(bound >= reported * (1.0 - 1e-12), "{bound} below {reported}");
        }
    }
}
