//! Block-diagonal matrices with one block for each of several disjoint patterns, and free variables for the
//! multiplier matrix Lambda = G G^T (see `disjoint`).
//!
//! Block u (k x k) of Lambda has the constant diagonal v_u = y_u^2: row i of G_u is y_u h_i / ||h_i|| with
//! free h_i. Variables: y, one per pattern, then h row by row for each pattern of two steps or more. A
//! product with a full matrix takes O(n^2 k) time.

use antinoise_linear::{Matrix, inverse, product, symmetric_eigen};

use crate::Result;

/// Disjoint patterns of steps, one for each block.
pub(super) struct Blocks {
    groups: Vec<Vec<usize>>,
    steps: usize,
}

impl Blocks {
    /// Creates the blocks of `groups`, which together contain each step once.
    pub(super) fn new(groups: Vec<Vec<usize>>) -> Self {
        let steps = groups.iter().map(Vec::len).sum();
        Self { groups, steps }
    }

    pub(super) fn groups(&self) -> &[Vec<usize>] {
        &self.groups
    }

    /// Returns the variables of G_u = y_u I, where y_u^2 is the mean of `multipliers` over pattern u, and all
    /// y are scaled to sum y^2 = 1.
    pub(super) fn start(&self, multipliers: &[f64]) -> Vec<f64> {
        let mean =
            |group: &Vec<usize>| group.iter().map(|&t| multipliers[t]).sum::<f64>() / group.len() as f64;
        let mut x: Vec<f64> =
            self.groups.iter().map(|group| mean(group).max(f64::MIN_POSITIVE).sqrt()).collect();
        let norm = x.iter().map(|y| y * y).sum::<f64>().sqrt();
        x.iter_mut().for_each(|y| *y /= norm);
        // The free rows h_i get the typical size of y, so that the same step length suits both.
        let length = 1.0 / (self.groups.len() as f64).sqrt();
        for k in self.groups.iter().map(Vec::len).filter(|&k| k > 1) {
            x.extend((0..k * k).map(|at| if at % (k + 1) == 0 { length } else { 0.0 }));
        }
        x
    }

    /// Returns the unit rows h_i / ||h_i|| of each block and the lengths ||h_i||.
    fn rows(&self, x: &[f64]) -> Vec<(Matrix, Vec<f64>)> {
        let mut at = self.groups.len();
        self.groups
            .iter()
            .map(|group| {
                let k = group.len();
                if k == 1 {
                    return (Matrix::identity(1, 1), vec![1.0]);
                }
                let h = &x[at..at + k * k];
                at += k * k;
                let lengths: Vec<f64> =
                    h.chunks_exact(k).map(|row| row.iter().map(|h| h * h).sum::<f64>().sqrt()).collect();
                (Matrix::from_fn(k, k, |i, j| h[i * k + j] / lengths[i]), lengths)
            })
            .collect()
    }

    /// Returns G, block by block.
    pub(super) fn factors(&self, x: &[f64]) -> Vec<Matrix> {
        let scaled = |(u, (rows, _)): (usize, (Matrix, Vec<f64>))| {
            Matrix::from_fn(rows.nrows(), rows.ncols(), |i, j| x[u] * rows[(i, j)])
        };
        self.rows(x).into_iter().enumerate().map(scaled).collect()
    }

    /// Maps `d`, the derivative in G (block by block), to the derivative in the variables.
    pub(super) fn gradient(&self, x: &[f64], d: &[Matrix]) -> Vec<f64> {
        let mut gradient = vec![0.0; self.groups.len()];
        for (u, ((rows, lengths), d)) in self.rows(x).into_iter().zip(d).enumerate() {
            let k = rows.nrows();
            for i in 0..k {
                let along: f64 = (0..k).map(|j| d[(i, j)] * rows[(i, j)]).sum();
                gradient[u] += along;
                if k > 1 {
                    let factor = x[u] / lengths[i];
                    gradient.extend((0..k).map(|j| factor * (d[(i, j)] - along * rows[(i, j)])));
                }
            }
        }
        gradient
    }

    /// Returns M F for block-diagonal F.
    pub(super) fn right(&self, m: &Matrix, factors: &[Matrix]) -> Matrix {
        let mut out = Matrix::zeros(m.nrows(), m.ncols());
        for (group, factor) in self.groups.iter().zip(factors) {
            for (j, &t) in group.iter().enumerate() {
                let target = out.column_mut(t);
                for (i, &tau) in group.iter().enumerate() {
                    let weight = factor[(i, j)];
                    target.iter_mut().zip(m.column(tau)).for_each(|(x, m)| *x += weight * m);
                }
            }
        }
        out
    }

    /// Replaces M by F^T M, for block-diagonal F.
    pub(super) fn left(&self, factors: &[Matrix], m: &mut Matrix) {
        let mut values = Vec::new();
        for c in 0..m.ncols() {
            let x = m.column_mut(c);
            for (group, factor) in self.groups.iter().zip(factors) {
                values.clear();
                values.extend(group.iter().map(|&t| x[t]));
                for (j, &t) in group.iter().enumerate() {
                    x[t] = factor.column(j).iter().zip(&values).map(|(f, x)| f * x).sum();
                }
            }
        }
    }

    /// Returns F^T M F for block-diagonal F.
    pub(super) fn congruence(&self, m: &Matrix, factors: &[Matrix]) -> Matrix {
        let mut out = self.right(m, factors);
        self.left(factors, &mut out);
        out
    }

    /// Returns the diagonal blocks of Q diag(weights) Q^T, for non-negative weights.
    pub(super) fn of_spectrum(&self, q: &Matrix, weights: &[f64]) -> Vec<Matrix> {
        let mut diagonal = vec![0.0; self.steps];
        for (l, weight) in weights.iter().enumerate() {
            diagonal.iter_mut().zip(q.column(l)).for_each(|(sum, q)| *sum += weight * q * q);
        }
        let block = |group: &Vec<usize>| {
            if let [t] = group[..] {
                return Matrix::from_fn(1, 1, |_, _| diagonal[t]);
            }
            let rows =
                Matrix::from_fn(group.len(), weights.len(), |i, l| q[(group[i], l)] * weights[l].sqrt());
            product(&rows, rows.transpose())
        };
        self.groups.iter().map(block).collect()
    }

    /// Returns a feasible X: W^T X W, where the block of each pattern is diagonal with trace 1. For a block
    /// X_u = D^1/2 R D^1/2 with diagonal D and unit diagonal of R, W_u = D^-1/2 R^-1/2 D^1/2 / sqrt(tr D). At
    /// the optimum R is the identity.
    pub(super) fn made_feasible(&self, x: &Matrix) -> Result<Matrix> {
        let mut factors = Vec::with_capacity(self.groups.len());
        let mut diagonal = vec![0.0; self.steps];
        for group in &self.groups {
            let trace: f64 = group.iter().map(|&t| x[(t, t)]).sum();
            factors.push(orthogonalising(x, group, trace)?);
            group.iter().for_each(|&t| diagonal[t] = x[(t, t)] / trace);
        }
        let mut out = self.congruence(x, &factors);
        for group in &self.groups {
            for (&t, &tau) in group.iter().flat_map(|t| group.iter().map(move |tau| (t, tau))) {
                out[(t, tau)] = if t == tau { diagonal[t] } else { 0.0 };
            }
        }
        Ok(out)
    }
}

/// Returns the W_u of [`Blocks::made_feasible`] for one pattern.
fn orthogonalising(x: &Matrix, group: &[usize], trace: f64) -> Result<Matrix> {
    let (k, norm) = (group.len(), trace.sqrt());
    if k == 1 {
        return Ok(Matrix::from_fn(1, 1, |_, _| 1.0 / norm));
    }
    let root = |i: usize| x[(group[i], group[i])].sqrt();
    let correlations = Matrix::from_fn(k, k, |i, j| x[(group[i], group[j])] / (root(i) * root(j)));
    let (values, q) = symmetric_eigen(&correlations)?;
    let scaled = Matrix::from_fn(k, k, |i, l| q[(i, l)] / values[l].max(f64::EPSILON).sqrt());
    let whitening = product(&scaled, q.transpose());
    Ok(Matrix::from_fn(k, k, |i, j| whitening[(i, j)] * root(j) / (root(i) * norm)))
}

/// Returns G^-1, block by block.
pub(super) fn inverses(factors: &[Matrix]) -> Vec<Matrix> {
    factors.iter().map(inverse).collect()
}

/// Returns G^-T M, block by block.
pub(super) fn divided(inverses: &[Matrix], blocks: Vec<Matrix>) -> Vec<Matrix> {
    inverses.iter().zip(blocks).map(|(inverse, block)| product(inverse.transpose(), &block)).collect()
}
