//! Codes against dense matrices, and against other strategies over buckets.

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

/// (S^T S)^-1 times the largest squared norm of a column: covariances of least squares from S, for noise
/// scaled to one row.
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
    (0..count).map(|i| (0..count).map(|j| matrix[i].get(j).map_or(0.0, |x| *x as f64)).collect()).collect()
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

/// Rows encoded without noise are decoded exactly.
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

/// A cell for each node of a tree of arity `arity`, down to the buckets.
fn tree(count: usize, arity: usize, with_root: bool) -> Dense {
    let (mut nodes, mut size) = (Vec::new(), 1);
    while size < count {
        let node = |first: usize| (0..count).map(|at| f64::from(first <= at && at < first + size)).collect();
        nodes.extend((0..count).step_by(size).map(node));
        size *= arity;
    }
    nodes.extend(with_root.then(|| vec![1.0; count]));
    nodes
}

/// The figures of docs/release.md: the largest standard deviation of a run from the first bucket, and of any
/// run, in rows.
#[test]
fn correlated_buckets_err_less_than_trees_and_flat_ones() {
    for (count, flat, best, correlated) in
        [(8, [2.65, 2.83], [2.11, 2.11], [1.57, 1.81]), (64, [7.94, 8.0], [3.19, 3.75], [2.21, 2.75])]
    {
        let from_first = |runs: &[(usize, usize)]| -> Vec<(usize, usize)> {
            runs.iter().copied().filter(|run| run.0 == 0 && run.1 < count).collect()
        };
        let runs = all_runs(count);
        let largest = |error: &dyn Fn((usize, usize)) -> f64| {
            [from_first(&runs), runs.clone()].map(|runs| runs.into_iter().map(error).fold(0.0, f64::max))
        };
        // A million points, so that the effect of floors is negligible.
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
        let trees = (2..=8).flat_map(|arity| [false, true].map(|with_root| tree(count, arity, with_root)));
        let trees = trees.map(|tree| {
            let covariances = least_squares(&tree);
            largest(&|run| variance(&covariances, run).sqrt())
        });
        close(trees.min_by(|x, y| x[1].total_cmp(&y[1])).unwrap(), best);
    }
}

/// The choice of a code is not stored in a folder: it must not change after the folder is made.
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
