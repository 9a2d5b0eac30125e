//! The buckets of a key on the cells of the stacked vector: as they are, or with noise that is correlated from bucket to bucket.
//!
//! For B buckets, a row in bucket j adds column j of a B x B matrix M of whole numbers, whose l2 norm is at most p, the points of a row. From noisy
//! sums y = M x + z, x the rows of each bucket and z independent noise of equal variance s^2, the rows are x + M^-1 z, and those below edge j are
//! F_j y, where F = P M^-1 and P sums. So the numbers below two edges have covariance s^2 F_j . F_k, exactly.
//!
//! M = p I is flat: a bucket's noise is s / p, and that of a run of k buckets sqrt(k) times as much. The other choice is
//! M = floor(p C), C the square root of the matrix of prefix sums with its columns scaled to norm 1 (a strategy for prefix sums over buckets, as a plan has one
//! over periods): the noise of a run grows with the logarithm of B.

/// How the buckets of a key lie on its cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    /// A cell a bucket.
    Flat,
    /// Square root of the prefix sums, columns of norm 1.
    Correlated,
}

/// Points of a row at which codes are compared, and so many at least has a row of correlated buckets.
pub(crate) const LEAST_POINTS: i64 = 256;

/// The buckets of a key, and how they are read from noisy cells.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Buckets {
    /// p, what a point stands for.
    Flat { unit: f64 },
    /// Both are lower triangular, and their rows end at the diagonal.
    Correlated {
        /// M.
        matrix: Vec<Vec<i64>>,
        /// F.
        below: Vec<Vec<f64>>,
    },
}

impl Code {
    /// The code of `count` buckets with the least largest standard deviation of the rows in any of `runs`.
    ///
    /// It is computed by sums, products, quotients and roots in one order: every machine finds the same.
    pub(crate) fn of_least_error(count: usize, runs: &[(usize, usize)]) -> Self {
        let largest = |code| {
            let buckets = Buckets::new(code, count, LEAST_POINTS);
            runs.iter().map(|run| buckets.deviation(*run)).fold(0.0, f64::max)
        };
        // Runs of one bucket need no sums, and of fewer than three buckets the other code has no advantage.
        let is_flat = count < 3 || runs.iter().all(|(from, to)| to - from <= 1);
        if is_flat || largest(Self::Flat) <= largest(Self::Correlated) {
            Self::Flat
        } else {
            Self::Correlated
        }
    }
}

impl Buckets {
    /// `count` buckets where a row has `points` points.
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

    /// M, where buckets are correlated.
    pub(crate) fn matrix(&self) -> &[Vec<i64>] {
        match self {
            Self::Flat { .. } => &[],
            Self::Correlated { matrix, .. } => matrix,
        }
    }

    /// Turns a key's rows of each bucket into points; nothing where these are too many. Flat cells have points already.
    pub(crate) fn encode(&self, cells: &mut [i64]) -> Option<()> {
        let Self::Correlated { matrix, .. } = self else { return Some(()) };
        // From the end: a cell takes from itself and those before it.
        for (cell, row) in matrix.iter().enumerate().rev() {
            let products = row.iter().zip(&*cells).map(|(entry, rows)| entry.checked_mul(*rows));
            cells[cell] = products.into_iter().try_fold(0i64, |sum, product| sum.checked_add(product?))?;
        }
        Some(())
    }

    /// Noisy rows below each edge, from the first on, and of all buckets last.
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

    /// Covariance of the rows in the first `j` and in the first `k` buckets, for noise of variance 1 in each cell.
    pub(crate) fn covariance(&self, j: usize, k: usize) -> f64 {
        match self {
            Self::Flat { unit } => j.min(k) as f64 * unit * unit,
            Self::Correlated { below, .. } => match (j.checked_sub(1), k.checked_sub(1)) {
                (Some(j), Some(k)) => below[j].iter().zip(&below[k]).map(|(x, y)| x * y).sum(),
                _ => 0.0,
            },
        }
    }

    /// Standard deviation of the rows in a run of buckets, for noise of variance 1 in each cell.
    pub(crate) fn deviation(&self, (from, to): (usize, usize)) -> f64 {
        match self {
            Self::Flat { unit } => unit * ((to - from) as f64).sqrt(),
            Self::Correlated { .. } => self.combined(1.0, to, from),
        }
    }

    /// Standard deviation of the rows in the first `j` buckets less `share` of those in the first `k`, for noise of variance 1.
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

/// M = floor(p C): no column's norm is above p.
fn correlated(count: usize, points: i64) -> Vec<Vec<i64>> {
    // By its recursion, and not by transforms: those round differently on different processors, and floors would with them.
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
    // Rounding may leave a column's norm above 1 by some units of 2^-53 for each coefficient.
    let scale = points as f64 * (1.0 - 1e-12);
    let entry =
        |row: usize, column: usize| (scale * root[row - column] / norms[count - 1 - column]).floor() as i64;
    (0..count).map(|row| (0..=row).map(|column| entry(row, column)).collect()).collect()
}

/// F = P M^-1: each row by substitution from its end, F_j M = (1, ..., 1, 0, ..., 0).
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
