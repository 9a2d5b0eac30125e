//! The primal problem over C itself, for disjoint patterns whose dual is flat at its optimum.
//!
//! 1. If queries or steps have no weight at the optimum, the multipliers do not determine X, and the loss is
//!    minimised over C instead.
//! 2. Variables: the columns of a pattern are Q diag(d), where ||d|| = 1 and Q is the orthonormal polar
//!    factor of free columns Y. Every point is feasible. The maximum of the row norms is replaced by a p-norm
//!    with a rising exponent.
//! 3. Each stage ends with multipliers, P from the p-norm and Lambda = the pattern blocks of X^-1 A^T P A
//!    X^-1, whose dual value is a lower bound. O(n^3) time an evaluation.

use antinoise_linear::{Matrix, inverse, product, reverse_cholesky, symmetric_eigen};

use super::certified::{Dual, cost};
use super::disjoint::Disjoint;
use super::settings::DenseSettings;
use crate::design::{Objective, Solution, Status};
use crate::numeric::lbfgs;
use crate::numeric::softmax::soft_maximum;
use crate::{Problem, Result};

/// Exponents, for successive solves, of the p-norm that replaces the maximum of squared row norms.
const EXPONENTS: [f64; 8] = [8.0, 32.0, 128.0, 512.0, 2048.0, 8192.0, 32_768.0, 131_072.0];
/// Maximum number of iterations of a stage.
const MAX_STAGE_ITERATIONS: usize = 300;
/// Addition to the diagonal of Lambda, relative to its mean: steps without weight would make its blocks
/// singular.
const RIDGE: f64 = 1e-13;

/// The primal problem: A as a matrix, and the patterns, which together contain each step once.
pub(super) struct Primal<'a> {
    pub(super) a: &'a Matrix,
    pub(super) groups: &'a [Vec<usize>],
}

/// The orthonormal polar factor Q of one pattern's free columns Y, and the matrices that its derivative
/// needs.
struct Pattern {
    q: Matrix,
    /// The eigenvalues of (Y^T Y)^1/2; its eigenvectors are `vectors`.
    roots: Vec<f64>,
    vectors: Matrix,
}

/// The matrices C, B = A C^-1 and C^-1 at one point of the search.
struct Point {
    patterns: Vec<Pattern>,
    inverse: Matrix,
    b: Matrix,
}

impl Primal<'_> {
    /// Returns the variables Y and d of C.
    fn variables(&self, c: &Matrix) -> Vec<f64> {
        let lengths = (0..c.ncols()).map(|j| c.column(j).iter().map(|x| x * x).sum::<f64>().sqrt());
        (0..c.ncols()).flat_map(|j| c.column(j)).copied().chain(lengths).collect()
    }

    /// Returns d, divided by its norm within each pattern.
    fn shares(&self, d: &[f64]) -> Vec<f64> {
        let mut shares = vec![0.0; d.len()];
        for group in self.groups {
            let norm = group.iter().map(|&t| d[t] * d[t]).sum::<f64>().sqrt();
            group.iter().for_each(|&t| shares[t] = d[t] / norm);
        }
        shares
    }

    fn encoder(&self, patterns: &[Pattern], shares: &[f64]) -> Matrix {
        let n = shares.len();
        let mut c = Matrix::zeros(n, n);
        for (group, pattern) in self.groups.iter().zip(patterns) {
            for (i, &t) in group.iter().enumerate() {
                let target = c.column_mut(t).iter_mut();
                target.zip(pattern.q.column(i)).for_each(|(c, q)| *c = q * shares[t]);
            }
        }
        c
    }

    fn at(&self, v: &[f64]) -> Result<Point> {
        let n = self.a.ncols();
        let (y, d) = v.split_at(n * n);
        let of_group =
            |group: &Vec<usize>| polar(&Matrix::from_fn(n, group.len(), |row, i| y[group[i] * n + row]));
        let patterns: Vec<Pattern> = self.groups.iter().map(of_group).collect::<Result<_>>()?;
        let c = self.encoder(&patterns, &self.shares(d));
        let inverse = inverse(&c);
        let b = product(self.a, &inverse);
        Ok(Point { patterns, inverse, b })
    }

    /// Returns the logarithm of the smoothed squared error, and its gradient.
    fn value_and_gradient(&self, v: &[f64], objective: Objective, exponent: f64) -> (f64, Vec<f64>) {
        let n = self.a.ncols();
        let Ok(point) = self.at(v) else { return (f64::NAN, vec![f64::NAN; v.len()]) };
        let (value, weights) = weighed(&point.b, objective, exponent);
        let weighted = Matrix::from_fn(weights.len(), n, |i, j| 2.0 * weights[i] * point.b[(i, j)]);
        let inner = product(point.b.transpose(), &weighted);
        let d_encoder = product(&inner, point.inverse.transpose());
        let (d, shares) = (&v[n * n..], self.shares(&v[n * n..]));
        let mut gradient = vec![0.0; v.len()];
        let (of_y, of_d) = gradient.split_at_mut(n * n);
        for (group, pattern) in self.groups.iter().zip(&point.patterns) {
            let k = group.len();
            let slope = Matrix::from_fn(n, k, |row, i| -d_encoder[(row, group[i])] / value);
            let along: Vec<f64> = (0..k)
                .map(|i| slope.column(i).iter().zip(pattern.q.column(i)).map(|(s, q)| s * q).sum())
                .collect();
            let norm = group.iter().map(|&t| d[t] * d[t]).sum::<f64>().sqrt();
            let mean: f64 = group.iter().zip(&along).map(|(&t, a)| shares[t] * a).sum();
            group.iter().zip(&along).for_each(|(&t, a)| of_d[t] = (a - mean * shares[t]) / norm);
            let d_q = Matrix::from_fn(n, k, |row, i| slope[(row, i)] * shares[group[i]]);
            let d_y = pattern.pulled_back(&d_q);
            for (i, &t) in group.iter().enumerate() {
                of_y[t * n..(t + 1) * n].copy_from_slice(d_y.column(i));
            }
        }
        (value.ln(), gradient)
    }

    /// Returns the variables of [`Disjoint`] that belong to a point of the primal.
    fn multipliers(&self, v: &[f64], objective: Objective, exponent: f64) -> Result<Vec<f64>> {
        let n = self.a.ncols();
        let point = self.at(v)?;
        let weights = weighed(&point.b, objective, exponent).1;
        let weighted = Matrix::from_fn(weights.len(), n, |i, j| weights[i].sqrt() * point.b[(i, j)]);
        let half = product(&weighted, point.inverse.transpose());
        let mut x: Vec<f64> = match objective {
            Objective::Rms => Vec::new(),
            Objective::Max => weights.iter().map(|w| w.sqrt()).collect(),
        };
        let squared = |t: usize| half.column(t).iter().map(|x| x * x).sum::<f64>();
        let ridge = RIDGE * (0..n).map(squared).sum::<f64>() / n as f64;
        let mean = |group: &Vec<usize>| group.iter().map(|&t| squared(t)).sum::<f64>() / group.len() as f64;
        x.extend(self.groups.iter().map(|group| (mean(group) + ridge).sqrt()));
        for group in self.groups.iter().filter(|group| group.len() > 1) {
            let k = group.len();
            let columns = Matrix::from_fn(half.nrows(), k, |row, i| half[(row, group[i])]);
            let mut block = product(columns.transpose(), &columns);
            (0..k).for_each(|i| block[(i, i)] += ridge + RIDGE * mean(group));
            // Any G with G G^T = block: the transpose of the lower factor C with C^T C = block.
            let factor = reverse_cholesky(&block)?;
            x.extend((0..k).flat_map(|i| (0..k).map(|j| factor[(j, i)]).collect::<Vec<_>>()));
        }
        Ok(x)
    }
}

/// Returns the smoothed squared error, and the weights that B's rows have in it.
fn weighed(b: &Matrix, objective: Objective, exponent: f64) -> (f64, Vec<f64>) {
    let mut rows = vec![0.0; b.nrows()];
    (0..b.ncols()).for_each(|j| rows.iter_mut().zip(b.column(j)).for_each(|(sum, x)| *sum += x * x));
    match objective {
        Objective::Rms => (rows.iter().sum(), vec![1.0; rows.len()]),
        Objective::Max => soft_maximum(&rows, exponent),
    }
}

/// Returns the polar factor Y (Y^T Y)^-1/2.
fn polar(y: &Matrix) -> Result<Pattern> {
    let (values, vectors) = symmetric_eigen(&product(y.transpose(), y))?;
    let roots: Vec<f64> = values.iter().map(|w| w.max(f64::MIN_POSITIVE).sqrt()).collect();
    let k = roots.len();
    let scaled = Matrix::from_fn(k, k, |i, l| vectors[(i, l)] / roots[l]);
    let q = product(y, &product(&scaled, vectors.transpose()));
    Ok(Pattern { q, roots, vectors })
}

impl Pattern {
    /// Maps `d`, the derivative in Q, to the derivative in Y. In the span of Q the result is (R - R^T)_ij /
    /// (h_i + h_j), for R = Q^T d in the eigenbasis of (Y^T Y)^1/2 and its eigenvalues h. Orthogonal to that
    /// span, the result is d (Y^T Y)^-1/2.
    fn pulled_back(&self, d: &Matrix) -> Matrix {
        let (k, v) = (self.roots.len(), &self.vectors);
        let r = product(self.q.transpose(), d);
        let rotated = product(&product(v.transpose(), &r), v);
        let turn = Matrix::from_fn(k, k, |i, j| {
            (rotated[(i, j)] - rotated[(j, i)]) / (self.roots[i] + self.roots[j])
        });
        let turn = product(&product(v, &turn), v.transpose());
        let within = product(&self.q, &r);
        let outside = Matrix::from_fn(d.nrows(), k, |i, j| d[(i, j)] - within[(i, j)]);
        let scaled = Matrix::from_fn(k, k, |i, l| v[(i, l)] / self.roots[l]);
        let inverse_root = product(&scaled, v.transpose());
        let (first, second) = (product(&outside, &inverse_root), product(&self.q, &turn));
        Matrix::from_fn(d.nrows(), k, |i, j| first[(i, j)] + second[(i, j)])
    }
}

/// Improves the design `found`, whose gap is too large, by minimising the primal from `start`.
pub(super) fn descend(
    primal: &Primal,
    dual: &mut Disjoint,
    found: Solution<Matrix>,
    start: &Matrix,
    problem: &Problem,
    settings: &DenseSettings,
) -> Result<Solution<Matrix>> {
    let squared = |c: &Matrix| cost(product(c.transpose(), c), problem).map(|(_, value)| value);
    let mut best = (squared(&found.value)?, found.value.clone());
    let mut bound = found.gap.map_or(0.0, |gap| best.0 / (1.0 + gap));
    let mut v = primal.variables(start);
    let (mut iterations, mut status) = (found.iterations, Status::Stalled);
    let exponents = if problem.objective == Objective::Rms { &EXPONENTS[..1] } else { &EXPONENTS };
    dual.soften(0.0);
    for &exponent in exponents {
        let lbfgs = lbfgs::Settings {
            max_iterations: MAX_STAGE_ITERATIONS,
            decrease_tolerance: 0.01 * settings.gap / (1.0 + exponent),
            ..Default::default()
        };
        let stage = lbfgs::minimize(|v| primal.value_and_gradient(v, problem.objective, exponent), v, &lbfgs);
        (v, status) = (stage.value, stage.status);
        iterations += stage.iterations;
        let point = primal.at(&v)?;
        let c = primal.encoder(&point.patterns, &primal.shares(&v[primal.a.ncols().pow(2)..]));
        if let Ok((encoder, value)) = cost(product(c.transpose(), &c), problem)
            && value < best.0
        {
            best = (value, encoder);
        }
        if let Ok(x) = primal.multipliers(&v, problem.objective, exponent)
            && let Ok(at) = dual.evaluate(&x)
            && at.bound.is_finite()
        {
            bound = f64::max(bound, at.bound);
        }
        if best.0 <= bound * (1.0 + settings.gap) {
            break;
        }
    }
    let gap = (best.0 / bound - 1.0).max(0.0);
    let status = status.certified(gap <= settings.gap);
    let gap = gap.is_finite().then_some(gap);
    Ok(Solution { value: best.1, status, gap, iterations, improved: true })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Tolerance, assert_gradient};

    #[test]
    fn the_gradient_is_the_finite_difference() {
        let n = 6;
        let a = Matrix::from_fn(n, n, |i, j| if i >= j { 1.0 + (i * j % 3) as f64 } else { 0.0 });
        let groups = [vec![0, 2, 4], vec![1, 5], vec![3]];
        let primal = Primal { a: &a, groups: &groups };
        let entry = |i: usize| {
            let diagonal = i.is_multiple_of(n + 1) || i >= n * n;
            f64::from(u8::from(diagonal)) + 0.2 * (1.7 * (i * i) as f64).sin()
        };
        let v: Vec<f64> = (0..n * n + n).map(entry).collect();
        for (objective, exponent) in [(Objective::Rms, 1.0), (Objective::Max, 8.0)] {
            let (_, gradient) = primal.value_and_gradient(&v, objective, exponent);
            let f = |v: &[f64]| primal.value_and_gradient(v, objective, exponent).0;
            let tolerance = Tolerance { absolute: 1e-7, relative: 1e-7 };
            assert_gradient(&objective.to_string(), f, &v, &gradient, 1e-5, tolerance);
        }
    }
}
