//! The encoding of a key's buckets in the cells of the stacked vector: flat, or with noise correlated across
//! buckets.
//!
//! For B buckets, a row of data in bucket j adds column j of a B x B integer matrix M. Each column has l2
//! norm at most p, the largest contribution of a row in grid points. From the noisy cells y = M x + z, where
//! x counts the rows of each bucket and z is independent noise of variance s^2, the rows are estimated as
//! M^-1 y = x + M^-1 z, and the rows below edge j as F_j y, where F = P M^-1 and P is the matrix of prefix
//! sums. So the estimates below two edges have covariance s^2 F_j . F_k, exactly.
//!
//! M = p I is the flat code: a bucket's noise is s / p, and the noise of a run of k buckets is sqrt(k) times
//! that. The correlated code is M = floor(p C), where C is the square root of the matrix of prefix sums with
//! its columns scaled to norm 1 (a strategy for prefix sums over buckets, as a plan has one over periods):
//! the noise of a run grows with the logarithm of B.

/// The encoding of a key's buckets in cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    /// One cell per bucket.
    Flat,
    /// The square root of the prefix sums, with columns of norm 1.
    Correlated,
}

/// The number of points of a row with which codes are compared: also the minimum for correlated buckets.
pub(crate) const LEAST_POINTS: i64 = 256;

/// The encoding of a key's buckets in cells, with its coefficients.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Buckets {
    /// `unit`: rows per point, 1 / p.
    Flat { unit: f64 },
    /// Both matrices are lower triangular, with rows that end at the diagonal.
    Correlated {
        /// The integer matrix M.
        matrix: Vec<Vec<i64>>,
        /// The matrix F, which estimates the rows below edges.
        below: Vec<Vec<f64>>,
    },
}

impl Code {
    /// Chooses the code of `count` buckets that minimises the maximum standard deviation of the rows over
    /// `runs`.
    ///
    /// Computed with sums, products, quotients and roots in a fixed order: every machine makes the same
    /// choice.
    pub(crate) fn of_least_error(count: usize, runs: &[(usize, usize)]) -> Self {
        let largest = |code| {
            let buckets = Buckets::new(code, count, LEAST_POINTS);
            runs.iter().map(|run| buckets.deviation(*run)).fold(0.0, f64::max)
        };
        // Runs of one bucket need no sums, and with fewer than three buckets the correlated code has no
        // advantage.
        let is_flat = count < 3 || runs.iter().all(|(from, to)| to - from <= 1);
        if is_flat || largest(Self::Flat) <= largest(Self::Correlated) {
            Self::Flat
        } else {
            Self::Correlated
        }
    }
}

impl Buckets {
    /// The code of `count` buckets with `points` points per row.
    pub(crate) fn new(code: Code, count: usize, points: i64) -> Self {
        match code {
            Code::Flat => Self::Flat { unit: 1.0 / points as f64 },
            Code::Correlated => {
                let matrix = correlated(count, points);
                let below = prefixes(&matrix);
                Self::Correlated { matrix, below }
            }
        }
    }

    /// M, if buckets are correlated, else empty.
    pub(crate) fn matrix(&self) -> &[Vec<i64>] {
        match self {
            Self::Flat { .. } => &[],
            Self::Correlated { matrix, .. } => matrix,
        }
    }

    /// Converts a key's rows per bucket to points; `None` on overflow. Flat cells already hold points.
    pub(crate) fn encode(&self, cells: &mut [i64]) -> Option<()> {
        let Self::Correlated { matrix, .. } = self else { return Some(()) };
        // From the end: a cell depends on itself and earlier ones.
        for (cell, row) in matrix.iter().enumerate().rev() {
            let products = row.iter().zip(&*cells).map(|(entry, rows)| entry.checked_mul(*rows));
            cells[cell] = products.into_iter().try_fold(0i64, |sum, product| sum.checked_add(product?))?;
        }
        Some(())
    }

    /// Estimated number of rows below each edge, first edge first; the last number counts all buckets.
    pub(crate) fn below(&self, cells: &[i64]) -> Vec<f64> {
        match self {
            Self::Flat { unit } => {
                let sums = cells.iter().scan(0.0, |sum, points| {
                    *sum += *points as f64 * unit;
                    Some(*sum)
                });
                sums.collect()
            }
            Self::Correlated { below, .. } => {
                let read = |row: &Vec<f64>| row.iter().zip(cells).map(|(f, y)| f * *y as f64).sum();
                below.iter().map(read).collect()
            }
        }
    }

    /// Covariance of the estimated numbers of rows in the first `j` and in the first `k` buckets, for cells
    /// with noise of variance 1.
    pub(crate) fn covariance(&self, j: usize, k: usize) -> f64 {
        match self {
            Self::Flat { unit } => j.min(k) as f64 * unit * unit,
            Self::Correlated { below, .. } => match (j.checked_sub(1), k.checked_sub(1)) {
                (Some(j), Some(k)) => below[j].iter().zip(&below[k]).map(|(x, y)| x * y).sum(),
                _ => 0.0,
            },
        }
    }

    /// Standard deviation of the estimated number of rows in buckets `from..to`, for cells with noise of
    /// variance 1.
    pub(crate) fn deviation(&self, (from, to): (usize, usize)) -> f64 {
        match self {
            Self::Flat { unit } => unit * ((to - from) as f64).sqrt(),
            Self::Correlated { .. } => self.combined(1.0, to, from),
        }
    }

    /// Standard deviation of (rows in the first `j` buckets) - `share` * (rows in the first `k`), for cells
    /// with noise of variance 1.
    pub(crate) fn rank_deviation(&self, j: usize, share: f64, k: usize) -> f64 {
        match self {
            Self::Flat { .. } => {
                let squares = self.covariance(j, j) - 2.0 * share * self.covariance(j, k)
                    + share * share * self.covariance(k, k);
                squares.max(0.0).sqrt()
            }
            Self::Correlated { .. } => self.combined(share, j, k),
        }
    }

    /// The norm of F_j - share F_k, without cancellation.
    fn combined(&self, share: f64, j: usize, k: usize) -> f64 {
        let Self::Correlated { below, .. } = self else { return 0.0 };
        let row = |edge: usize| edge.checked_sub(1).map_or(&[][..], |edge| &below[edge][..]);
        let (x, y) = (row(j), row(k));
        let entry = |row: &[f64], i: usize| row.get(i).copied().unwrap_or(0.0);
        let squares = (0..x.len().max(y.len())).map(|i| (entry(x, i) - share * entry(y, i)).powi(2));
        squares.sum::<f64>().sqrt()
    }
}

/// M = floor(p C): no column has a norm above p.
fn correlated(count: usize, points: i64) -> Vec<Vec<i64>> {
    // Coefficients by their recursion, not by Fourier transforms: those round differently on different
    // processors, which could change the floors.
    let mut root = vec![1.0];
    for k in 1..count {
        root.push(root[k - 1] * (2 * k - 1) as f64 / (2 * k) as f64);
    }
    // The column of bucket j has the first B - j coefficients.
    let mut squares = 0.0;
    let norms: Vec<f64> = root
        .iter()
        .map(|c: &f64| {
            squares += c * c;
            squares.sqrt()
        })
        .collect();
    // Rounding may raise a column's norm above 1 by a few units of 2^-53 per coefficient.
    let scale = points as f64 * (1.0 - 1e-12);
    let entry =
        |row: usize, column: usize| (scale * root[row - column] / norms[count - 1 - column]).floor() as i64;
    (0..count).map(|row| (0..=row).map(|column| entry(row, column)).collect()).collect()
}

/// F = P M^-1: each row by back substitution of F_j M = (1, ..., 1, 0, ..., 0).
fn prefixes(matrix: &[Vec<i64>]) -> Vec<Vec<f64>> {
    let prefix = |row: usize| {
        let mut rest = vec![1.0; row + 1];
        for at in (0..=row).rev() {
            let solved = rest[at] / matrix[at][at] as f64;
            rest[at] = solved;
            for (rest, entry) in rest[..at].iter_mut().zip(&matrix[at]) {
                *rest -= solved * *entry as f64;
            }
        }
        rest
    };
    (0..matrix.len()).map(prefix).collect()
}

#[cfg(test)]
mod tests;
