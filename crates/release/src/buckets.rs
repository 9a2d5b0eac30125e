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
mod tests {
    use super::*;

    type Dense = Vec<Vec<f64>>;

    fn product(x: &Dense, y: &Dense) -> Dense {
        let dot = |row: &[f64], at: usize| row.iter().zip(y).map(|(a, row)| a * row[at]).sum();
        x.iter().map(|row| (0..y[0].len()).map(|at| dot(row, at)).collect()).collect()
    }

    fn transposed(x: &Dense) -> Dense {
        (0..x[0].len()).map(|at| x.iter().map(|row| row[at]).collect()).collect()
    }

    /// By elimination of a positive definite matrix.
    fn inverse(x: &Dense) -> Dense {
        let n = x.len();
        let unit = |at: usize| (0..n).map(move |i| f64::from(i == at));
        let mut rows: Dense =
            x.iter().zip(0..).map(|(row, at)| row.iter().copied().chain(unit(at)).collect()).collect();
        for at in 0..n {
            let pivot = rows[at][at];
            rows[at].iter_mut().for_each(|x| *x /= pivot);
            for other in (0..n).filter(|other| *other != at) {
                let (factor, row) = (rows[other][at], rows[at].clone());
                rows[other].iter_mut().zip(row).for_each(|(x, y)| *x -= factor * y);
            }
        }
        rows.into_iter().map(|row| row[n..].to_vec()).collect()
    }

    /// (S^T S)^-1 times the largest squared norm of a column: covariances of least squares from S, for noise scaled to one row.
    fn least_squares(strategy: &Dense) -> Dense {
        let gram = product(&transposed(strategy), strategy);
        let sensitivity = (0..gram.len()).map(|at| gram[at][at]).fold(0.0, f64::max);
        let scale = |row: Vec<f64>| row.into_iter().map(|x| x * sensitivity).collect();
        inverse(&gram).into_iter().map(scale).collect()
    }

    fn variance(covariances: &Dense, (from, to): (usize, usize)) -> f64 {
        covariances[from..to].iter().map(|row| row[from..to].iter().sum::<f64>()).sum()
    }

    fn all_runs(count: usize) -> Vec<(usize, usize)> {
        (0..count).flat_map(|from| (from + 1..=count).map(move |to| (from, to))).collect()
    }

    fn dense(buckets: &Buckets, count: usize) -> Dense {
        let matrix = buckets.matrix();
        (0..count)
            .map(|i| (0..count).map(|j| matrix[i].get(j).map_or(0.0, |x| *x as f64)).collect())
            .collect()
    }

    #[test]
    fn errors_are_those_of_the_dense_matrix_and_columns_are_within_the_points() {
        for (count, points) in [(1, 256), (2, 300), (3, 256), (7, 1 << 20), (24, 256), (65, 777)] {
            let buckets = Buckets::new(Code::Correlated, count, points);
            for column in 0..count {
                let squares: i128 =
                    buckets.matrix()[column..].iter().map(|row| i128::from(row[column]).pow(2)).sum();
                let bound = i128::from(points).pow(2);
                assert!(squares <= bound, "{count} {points} {column}: {squares}");
                assert!(squares as f64 > 0.98 * bound as f64, "{count} {points} {column}: {squares}");
            }
            let matrix = dense(&buckets, count);
            let covariances = inverse(&product(&transposed(&matrix), &matrix));
            for run in all_runs(count) {
                let (found, wanted) = (buckets.deviation(run), variance(&covariances, run).sqrt());
                assert!((found / wanted - 1.0).abs() < 1e-9, "{count} {run:?}: {found} {wanted}");
            }
            for (j, k) in all_runs(count) {
                let wanted: f64 = covariances[..j].iter().map(|row| row[..k].iter().sum::<f64>()).sum();
                assert!((buckets.covariance(j, k) - wanted).abs() < 1e-9 * wanted.abs().max(1e-6));
                let wanted =
                    variance(&covariances, (0, j)) - 0.6 * wanted + 0.09 * variance(&covariances, (0, k));
                assert!((buckets.rank_deviation(j, 0.3, k).powi(2) / wanted - 1.0).abs() < 1e-8);
            }
        }
    }

    /// What is encoded without noise is read as it was.
    #[test]
    fn rows_without_noise_are_read_as_they_were() {
        for (code, count) in [(Code::Flat, 9), (Code::Correlated, 9), (Code::Correlated, 100)] {
            let buckets = Buckets::new(code, count, 5000);
            let rows: Vec<i64> = (0..count as i64).map(|at| at * at * 31 % 1009).collect();
            let mut cells: Vec<i64> = match code {
                Code::Flat => rows.iter().map(|rows| rows * 5000).collect(),
                Code::Correlated => rows.clone(),
            };
            buckets.encode(&mut cells).unwrap();
            let mut sum = 0.0;
            for (below, rows) in buckets.below(&cells).iter().zip(rows) {
                sum += rows as f64;
                assert!((below - sum).abs() < 1e-6, "{below} {sum}");
            }
        }
        let mut cells = vec![i64::MAX / 100; 3];
        assert!(Buckets::new(Code::Correlated, 3, 256).encode(&mut cells).is_none());
    }

    /// Nodes over `arity` nodes below, down to the buckets; without the root, which is no use to least squares where there are many levels.
    fn tree(count: usize, arity: usize) -> Dense {
        let (mut nodes, mut size) = (Vec::new(), 1);
        while size < count {
            let node =
                |first: usize| (0..count).map(|at| f64::from(first <= at && at < first + size)).collect();
            nodes.extend((0..count).step_by(size).map(node));
            size *= arity;
        }
        nodes
    }

    /// The numbers of docs/release.md: the largest standard deviation of a run from the first bucket, and of any run, in rows.
    #[test]
    fn correlated_buckets_err_less_than_trees_and_flat_ones() {
        for (count, flat, best, correlated) in
            [(8, [2.65, 2.83], [1.85, 2.18], [1.57, 1.81]), (64, [7.94, 8.0], [3.19, 3.75], [2.21, 2.75])]
        {
            let from_first = |runs: &[(usize, usize)]| -> Vec<(usize, usize)> {
                runs.iter().copied().filter(|run| run.0 == 0 && run.1 < count).collect()
            };
            let runs = all_runs(count);
            let largest = |error: &dyn Fn((usize, usize)) -> f64| {
                [from_first(&runs), runs.clone()].map(|runs| runs.into_iter().map(error).fold(0.0, f64::max))
            };
            // A million points, so that floors do not show.
            let points = 1 << 20;
            let of_code = |code| {
                let buckets = Buckets::new(code, count, points);
                largest(&|run| buckets.deviation(run) * points as f64)
            };
            let close = |found: [f64; 2], wanted: [f64; 2]| {
                (0..2).for_each(|i| assert!((found[i] - wanted[i]).abs() < 0.006, "{count}: {found:?}"));
            };
            close(of_code(Code::Flat), flat);
            close(of_code(Code::Correlated), correlated);
            let trees = (2..=8).map(|arity| {
                let covariances = least_squares(&tree(count, arity));
                largest(&|run| variance(&covariances, run).sqrt())
            });
            close(trees.min_by(|x, y| x[1].total_cmp(&y[1])).unwrap(), best);
        }
    }

    /// What is chosen is written into no folder: it must stay what it was when folders were made.
    #[test]
    fn codes_stay_as_they_are() {
        let below = |count: usize| (1..count).map(|edge| (0, edge)).collect::<Vec<_>>();
        for (count, runs, code) in [
            (2, below(2), Code::Flat),
            (3, below(3), Code::Correlated),
            (64, below(64), Code::Correlated),
            (64, (0..64).map(|at| (at, at + 1)).collect(), Code::Flat),
            (64, vec![(10, 12)], Code::Flat),
            (64, vec![(10, 40)], Code::Correlated),
        ] {
            assert_eq!(Code::of_least_error(count, &runs), code, "{count} {runs:?}");
        }
    }
}
