//! Newton's method for the dual of disjoint patterns under the RMS loss (see `disjoint`).
//!
//! Where momentum meets a schedule, the multipliers of an optimum span seven orders of magnitude, and the
//! dual's condition number is in the thousands: L-BFGS takes hundreds of iterations, Newton's method six to
//! nine.
//!
//! 1. The dual is phi(Lambda) = 2 tr (M^1/2 Lambda M^1/2)^1/2 - sum_u v_u for M = A^T A, which is concave.
//!    Its unknowns are v_u, the constant diagonal of block u, and the block's entries for pairs of steps. The
//!    gradient is that of tr(X Lambda): sum of X\[t, t\] over the pattern - 1, and 2 X\[t, tau\].
//! 2. For Lambda = G G^T, G^T M G = Q diag(s^2) Q^T and a change D of Lambda, E = Q^T G^-1 D G^-T Q, the
//!    negative second derivative is the sum over k, l of s_k s_l / (s_k + s_l) E\[k, l\]^2.
//! 3. 1 / (s_k + s_l) is a sum of a few exponentials w exp(-tau (s_k + s_l)), a quadrature of its integral
//!    over tau > 0. So the second derivative is a sum of tr(F D F D) for F = G^-T Q diag(s exp(-tau s)) Q^T
//!    G^-1: one product and a few operations an entry for each exponential, in place of n^4 operations.
//! 4. With Lambda as the variable, a step overshoots where a multiplier is too large (X\[t, t\] < 1). In G it
//!    does not: phi is a nuclear norm less a square. The second derivative in G has the additional term
//!    tr(E^2 G^T (N - X) G) / 2, where N holds the multipliers of the constant diagonals. Its positive part
//!    is added: the step is then an ascent direction and, near the optimum, Newton's.
//! 5. A step multiplies G by a positive definite matrix, so that Lambda stays positive definite, and
//!    restores the constant diagonals.

use antinoise_linear::{Matrix, product, reverse_cholesky, symmetric_eigen};

use super::blocks::{Blocks, inverses};
use super::spectrum::Spectrum;
use crate::numeric::parallel;
use crate::numeric::vector::dot;

/// Maximum number of unknowns, where that exceeds the number of steps: their second derivative is then 300
/// MB.
const MAX_UNKNOWNS: usize = 6144;
/// Spacing of ln tau. The quadrature is then exact to 1.4%, so that a step leaves as much of the distance.
const SPACING: f64 = 1.5;
/// Smallest root s that the quadrature resolves, relative to the largest.
const LEAST_ROOT: f64 = 1e-9;
/// Terms s exp(-tau s) below this, relative to the largest, are left out of F.
const NEGLIGIBLE: f64 = 1e-10;
/// Addition to the diagonal of the scaled second derivative, for its Cholesky factor.
const RIDGE: f64 = 1e-12;

/// A step from one point of the dual: the scaled variables y and h of [`Blocks`] and, for each pattern, the
/// matrix by which G is multiplied.
pub(super) struct Direction {
    groups: usize,
    patterns: Vec<Change>,
    /// Length of the rows h.
    length: f64,
}

/// G of one pattern and the eigendecomposition of half the relative change E.
struct Change {
    factor: Matrix,
    values: Vec<f64>,
    vectors: Matrix,
}

/// Returns whether Newton's method is cheap enough: at most as many unknowns as steps, or some thousand.
pub(super) fn is_affordable(blocks: &Blocks) -> bool {
    let steps: usize = blocks.groups().iter().map(Vec::len).sum();
    let unknowns: usize = blocks.groups().iter().map(|group| 1 + group.len() * (group.len() - 1) / 2).sum();
    unknowns <= MAX_UNKNOWNS.max(steps)
}

/// Returns the pairs i < j of k steps.
fn pairs(k: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..k).flat_map(move |i| (i + 1..k).map(move |j| (i, j)))
}

/// Returns the Newton step from the variables `x` of `blocks`, or nothing where the second derivative is
/// singular in double precision.
pub(super) fn direction(blocks: &Blocks, x: &[f64], spectrum: &Spectrum) -> Option<Direction> {
    let groups = blocks.groups();
    let (sum, trace) = (x[..groups.len()].iter().map(|y| y * y).sum::<f64>(), spectrum.trace());
    // Lambda is scaled so that phi is largest along its ray: tr K^1/2 = sum v.
    let scale = trace / sum;
    let mut factors = blocks.factors(x);
    factors.iter_mut().for_each(|g| multiply(g, scale));
    let inverses = inverses(&factors);
    let roots: Vec<f64> = spectrum.roots.iter().map(|root| root * scale).collect();
    let mut map = spectrum.vectors.clone();
    blocks.left(&inverses, &mut map);
    // The derivative of tr (K + floor I)^1/2, as in the dual's gradient.
    let slopes: Vec<f64> = spectrum.slopes().iter().map(|slope| slope * scale).collect();
    let gram = blocks.of_spectrum(&map, &slopes);

    let mut hessian = second_derivative(groups, &map, &roots);
    let mut first_pair = groups.len();
    for (u, x) in gram.iter().enumerate() {
        first_pair = add_damping(&mut hessian, (u, first_pair), &factors[u], &inverses[u], x)?;
    }
    let step = solve(hessian, gradient(&gram))?;
    let mut of_pairs = step[groups.len()..].iter();
    let change = |((u, factor), inverse): ((usize, Matrix), &Matrix)| {
        let k = factor.nrows();
        let mut d = Matrix::from_fn(k, k, |i, j| if i == j { step[u] } else { 0.0 });
        for (i, j) in pairs(k) {
            d[(i, j)] = *of_pairs.next()?;
            d[(j, i)] = d[(i, j)];
        }
        let relative = product(&product(inverse, &d), inverse.transpose());
        let (values, vectors) = symmetric_eigen(&relative).ok()?;
        Some(Change { factor, values: values.iter().map(|value| 0.5 * value).collect(), vectors })
    };
    let patterns = factors.into_iter().enumerate().zip(&inverses).map(change).collect::<Option<_>>()?;
    Some(Direction { groups: groups.len(), patterns, length: 1.0 / (groups.len() as f64).sqrt() })
}

impl Direction {
    /// Returns the variables after a fraction of the step.
    pub(super) fn at(&self, fraction: f64) -> Vec<f64> {
        let mut x = vec![0.0; self.groups];
        for (u, Change { factor, values, vectors }) in self.patterns.iter().enumerate() {
            let k = values.len();
            // The first-order change 1 + e, by a positive factor whatever e.
            let grown = |e: f64| if e >= 0.0 { 1.0 + e } else { 1.0 / (1.0 - e) };
            let mut turned = product(factor, vectors);
            for (l, value) in values.iter().enumerate() {
                turned.column_mut(l).iter_mut().for_each(|g| *g *= grown(fraction * value));
            }
            let g = product(&turned, vectors.transpose());
            let squared = |i: usize| (0..k).map(|j| g[(i, j)] * g[(i, j)]).sum::<f64>();
            x[u] = ((0..k).map(squared).sum::<f64>() / k as f64).sqrt();
            for i in (0..k).filter(|_| k > 1) {
                let factor = self.length / squared(i).sqrt();
                x.extend((0..k).map(|j| g[(i, j)] * factor));
            }
        }
        x
    }
}

fn multiply(matrix: &mut Matrix, factor: f64) {
    (0..matrix.ncols()).for_each(|j| matrix.column_mut(j).iter_mut().for_each(|x| *x *= factor));
}

/// Returns the derivative of phi in the unknowns, from the diagonal blocks of X.
fn gradient(gram: &[Matrix]) -> Vec<f64> {
    let trace = |x: &Matrix| (0..x.nrows()).map(|i| x[(i, i)]).sum::<f64>();
    let of_pairs = |x: &Matrix| pairs(x.nrows()).map(|at| 2.0 * x[at]).collect::<Vec<_>>();
    gram.iter().map(|x| trace(x) - 1.0).chain(gram.iter().flat_map(of_pairs)).collect()
}

/// Returns the nodes tau and the weights w of 1 / x = integral of exp(-tau x) over tau > 0, for x between
/// twice the least and twice the largest root: the trapezoidal rule in ln tau, whose terms below 0.1 /
/// largest are one.
fn exponentials(roots: &[f64]) -> Vec<(f64, f64)> {
    let largest = roots.iter().copied().fold(0.0, f64::max);
    let least = roots.iter().copied().fold(largest, f64::min).max(LEAST_ROOT * largest);
    let first = (0.1 / largest).ln();
    let count = (((3.0 / least).ln() - first) / SPACING).ceil() as usize + 1;
    let below = (first - 0.5 * SPACING).exp();
    let node = |i: usize| (first + SPACING * i as f64).exp();
    std::iter::once((0.5 * below, below)).chain((0..count).map(|i| (node(i), SPACING * node(i)))).collect()
}

/// Returns the columns of the upper half of the negative second derivative of phi, for `map` = G^-T Q.
fn second_derivative(groups: &[Vec<usize>], map: &Matrix, roots: &[f64]) -> Vec<Vec<f64>> {
    let order: Vec<usize> = groups.iter().flatten().copied().collect();
    // Steps of a pattern are adjacent from here on.
    let map = Matrix::from_fn(order.len(), map.ncols(), |i, l| map[(order[i], l)]);
    let mut at = 0;
    let ranges: Vec<(usize, usize)> = groups
        .iter()
        .map(|group| {
            at += group.len();
            (at - group.len(), group.len())
        })
        .collect();
    let pairs: Vec<(usize, usize)> =
        ranges.iter().flat_map(|&(first, k)| pairs(k).map(move |(i, j)| (first + i, first + j))).collect();
    let mut columns: Vec<Vec<f64>> =
        (0..groups.len() + pairs.len()).map(|column| vec![0.0; column + 1]).collect();
    for (tau, weight) in exponentials(roots) {
        let f = damped(&map, roots, tau);
        parallel::update(&mut columns, |q, column| match q.checked_sub(groups.len()) {
            None => add_diagonal(column, &f, weight, &ranges, q),
            Some(pair) => add_pair(column, &f, weight, &ranges, &pairs[..=pair]),
        });
    }
    columns
}

/// Returns F = map diag(s exp(-tau s)) map^T.
fn damped(map: &Matrix, roots: &[f64], tau: f64) -> Matrix {
    let terms: Vec<f64> = roots.iter().map(|s| s * (-tau * s).exp()).collect();
    let least = NEGLIGIBLE * terms.iter().copied().fold(0.0, f64::max);
    // Roots increase: with large tau only the first ones count.
    let count = terms.iter().rposition(|&term| term > least).map_or(0, |last| last + 1);
    let mut half = map.leading_columns(count);
    for (l, term) in terms[..count].iter().enumerate() {
        half.column_mut(l).iter_mut().for_each(|x| *x *= term.sqrt());
    }
    product(&half, half.transpose())
}

/// Adds the column of one pattern's diagonal.
fn add_diagonal(column: &mut [f64], f: &Matrix, weight: f64, ranges: &[(usize, usize)], q: usize) {
    let (first, k) = ranges[q];
    for t in first..first + k {
        let f = f.column(t);
        for (entry, &(first, k)) in column.iter_mut().zip(ranges) {
            *entry += weight * f[first..first + k].iter().map(|f| f * f).sum::<f64>();
        }
    }
}

/// Adds the column of the last of `pairs`.
fn add_pair(
    column: &mut [f64],
    f: &Matrix,
    weight: f64,
    ranges: &[(usize, usize)],
    pairs: &[(usize, usize)],
) {
    let Some(&(t, tau)) = pairs.last() else { return };
    let (a, b, weight) = (f.column(t), f.column(tau), 2.0 * weight);
    let (of_diagonals, of_pairs) = column.split_at_mut(ranges.len());
    for (entry, &(first, k)) in of_diagonals.iter_mut().zip(ranges) {
        *entry += weight * dot(&a[first..first + k], &b[first..first + k]);
    }
    for (entry, &(i, j)) in of_pairs.iter_mut().zip(pairs) {
        *entry += weight * (a[i] * b[j] + a[j] * b[i]);
    }
}

/// Adds tr(E^2 D) / 2 for the positive part D of G^T (N - X) G of pattern `u`, N = diag(X) / tr X. Returns
/// the first pair of the next pattern.
fn add_damping(
    columns: &mut [Vec<f64>],
    (u, first_pair): (usize, usize),
    factor: &Matrix,
    inverse: &Matrix,
    x: &Matrix,
) -> Option<usize> {
    let k = x.nrows();
    let trace: f64 = (0..k).map(|i| x[(i, i)]).sum();
    let excess =
        Matrix::from_fn(k, k, |i, j| if i == j { x[(i, i)] / trace - x[(i, i)] } else { -x[(i, j)] });
    let (values, vectors) = symmetric_eigen(&product(&product(factor.transpose(), &excess), factor)).ok()?;
    // tr(E_a E_b D) = tr(B_a Z B_b Y) for Z = G^-T G^-1 and Y = G^-T D G^-1.
    let mut half = product(inverse.transpose(), &vectors);
    for (l, value) in values.iter().enumerate() {
        half.column_mut(l).iter_mut().for_each(|x| *x *= value.max(0.0).sqrt());
    }
    let (z, y) = (product(inverse.transpose(), inverse), product(&half, half.transpose()));
    // The entries of 1 of each unknown's matrix B.
    let mut entries: Vec<(usize, Vec<(usize, usize)>)> = vec![(u, (0..k).map(|i| (i, i)).collect())];
    entries.extend(pairs(k).enumerate().map(|(at, (i, j))| (first_pair + at, vec![(i, j), (j, i)])));
    for (a, of_a) in &entries {
        for (b, of_b) in entries.iter().filter(|(b, _)| b <= a) {
            let together = of_a.iter().flat_map(|a| of_b.iter().map(move |b| (a, b)));
            let both = |(&(i, j), &(l, m)): (&(usize, usize), &(usize, usize))| {
                z[(j, l)] * y[(m, i)] + y[(j, l)] * z[(m, i)]
            };
            columns[*a][*b] += 0.25 * together.map(both).sum::<f64>();
        }
    }
    Some(first_pair + entries.len() - 1)
}

/// Returns H^-1 g, for the columns of the upper half of H.
fn solve(columns: Vec<Vec<f64>>, gradient: Vec<f64>) -> Option<Vec<f64>> {
    let m = gradient.len();
    let roots: Vec<f64> = (0..m).map(|q| columns[q][q].sqrt()).collect();
    if !roots.iter().all(|root| root.is_finite() && *root > 0.0) {
        return None;
    }
    let mut scaled = Matrix::zeros(m, m);
    for (q, column) in columns.into_iter().enumerate() {
        let target = scaled.column_mut(q).iter_mut();
        target.zip(column).zip(&roots).for_each(|((x, h), root)| *x = h / (root * roots[q]));
        scaled[(q, q)] = 1.0 + RIDGE;
    }
    let c = reverse_cholesky(&scaled).ok()?;
    drop(scaled);
    let mut x: Vec<f64> = gradient.iter().zip(&roots).map(|(g, root)| g / root).collect();
    for q in (0..m).rev() {
        let (head, tail) = x.split_at_mut(q + 1);
        head[q] = (head[q] - dot(&c.column(q)[q + 1..], tail)) / c[(q, q)];
    }
    for q in 0..m {
        let value = x[q] / c[(q, q)];
        x[q] = value;
        x[q + 1..].iter_mut().zip(&c.column(q)[q + 1..]).for_each(|(x, c)| *x -= value * c);
    }
    x.iter_mut().zip(&roots).for_each(|(x, root)| *x /= root);
    x.iter().all(|x| x.is_finite()).then_some(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: usize = 7;

    /// X with X Lambda X = M.
    fn primal(lambda: &Matrix, m: &Matrix) -> Matrix {
        // Lambda = C^T C, so that G = C^T and G^-T = C^-1.
        let c = reverse_cholesky(lambda).unwrap();
        let k = product(&product(&c, m), c.transpose());
        let half = product(&antinoise_linear::inverse(&c), &Spectrum::new(k, 0.0).unwrap().half());
        product(&half, half.transpose())
    }

    fn multipliers(blocks: &Blocks, x: &[f64]) -> Matrix {
        let g = blocks.right(&Matrix::identity(STEPS, STEPS), &blocks.factors(x));
        product(&g, g.transpose())
    }

    #[test]
    fn the_second_derivative_is_the_difference_of_gradients() {
        let groups = vec![vec![0, 3, 6], vec![1, 4], vec![2], vec![5]];
        let blocks = Blocks::new(groups.clone());
        let a =
            Matrix::from_fn(STEPS, STEPS, |i, j| if i >= j { 1.0 + 0.5 * (i * j % 3) as f64 } else { 0.0 });
        let m = product(a.transpose(), &a);
        let x: Vec<f64> = (0..4 + 9 + 4).map(|i| 0.6 + 0.3 * (1.7 * (i * i) as f64).sin()).collect();
        let lambda = multipliers(&blocks, &x);
        let within = |x: &Matrix| {
            let block = |group: &Vec<usize>| {
                Matrix::from_fn(group.len(), group.len(), |i, j| x[(group[i], group[j])])
            };
            gradient(&groups.iter().map(block).collect::<Vec<_>>())
        };

        let factors = blocks.factors(&x);
        let spectrum = Spectrum::new(blocks.congruence(&m, &factors), 0.0).unwrap();
        let mut map = spectrum.vectors.clone();
        blocks.left(&inverses(&factors), &mut map);
        let columns = second_derivative(&groups, &map, &spectrum.roots);

        let diagonals = groups.iter().map(|group| group.iter().map(|&t| (t, t)).collect::<Vec<_>>());
        let of_pairs = groups.iter().flat_map(|group| {
            pairs(group.len()).map(|(i, j)| vec![(group[i], group[j]), (group[j], group[i])])
        });
        let largest = columns.iter().flatten().fold(0.0, |most: f64, h| most.max(h.abs()));
        for (q, entries) in diagonals.chain(of_pairs).enumerate() {
            let at = |by: f64| {
                let mut lambda = lambda.clone();
                entries.iter().for_each(|&at| lambda[at] += by);
                within(&primal(&lambda, &m))
            };
            let (after, before) = (at(1e-5), at(-1e-5));
            for (p, h) in columns[q].iter().enumerate() {
                let difference = (before[p] - after[p]) / 2e-5;
                assert!((h - difference).abs() < 0.02 * largest, "{p}, {q}: {h} against {difference}");
            }
        }
    }

    #[test]
    fn sums_of_exponentials_are_reciprocals() {
        let roots = [1e-7, 1e-3, 0.2, 3.0];
        let terms = exponentials(&roots);
        for x in roots.iter().flat_map(|a| roots.iter().map(move |b| a + b)) {
            let sum: f64 = terms.iter().map(|(tau, weight)| weight * (-tau * x).exp()).sum();
            assert!((sum * x - 1.0).abs() < 0.03, "{x}: {sum}");
        }
    }
}
