//! Marginals against dense matrices.

use super::*;

type Dense = Vec<Vec<f64>>;

fn random(state: &mut u64) -> f64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 11) as f64 / (1u64 << 53) as f64
}

/// The Kronecker product over attributes of the identity, for those of the table, and of a row of ones.
fn kronecker(sizes: &[usize], attributes: &[usize]) -> Dense {
    let mut product: Dense = vec![vec![1.0]];
    for (at, size) in sizes.iter().enumerate() {
        let unit = |class: usize| (0..*size).map(|other| f64::from(other == class)).collect();
        let factor: Dense =
            if attributes.contains(&at) { (0..*size).map(unit).collect() } else { vec![vec![1.0; *size]] };
        let row = |x: &Vec<f64>, y: &Vec<f64>| x.iter().flat_map(|a| y.iter().map(move |b| a * b)).collect();
        product = product.iter().flat_map(|x| factor.iter().map(move |y| row(x, y))).collect();
    }
    product
}

/// The dense matrix of what a row of each combination of classes adds to the cells of all tables.
fn stacked(marginals: &Marginals, sizes: &[usize], codes: &[Vec<i64>]) -> Dense {
    let mut rows = Vec::new();
    for (at, table) in marginals.tables.tables.iter().enumerate() {
        let counted = kronecker(sizes, &table.attributes);
        let own: Vec<usize> = table.attributes.iter().map(|at| sizes[*at]).collect();
        let mut code = vec![vec![0.0; table.cells]; table.cells];
        for (set, number) in codes[at].iter().enumerate() {
            // I for attributes of the set, 1 1^T for the others.
            let inside: Vec<usize> = (0..own.len()).filter(|at| set >> at & 1 == 1).collect();
            let summed = kronecker(&own, &inside);
            for sums in &summed {
                for (x, row) in sums.iter().zip(&mut code) {
                    row.iter_mut().zip(sums).for_each(|(entry, y)| *entry += x * y * *number as f64);
                }
            }
        }
        for row in code {
            let mut added = vec![0.0; counted[0].len()];
            for (entry, counted) in row.iter().zip(&counted).filter(|(entry, _)| **entry != 0.0) {
                added.iter_mut().zip(counted).for_each(|(added, count)| *added += entry * count);
            }
            rows.push(added);
        }
    }
    rows
}

/// A solution x of M^T M x = b, by elimination with pivots. What M does not observe changes no table.
fn solved(gram: &Dense, right: &[f64]) -> Vec<f64> {
    let count = gram.len();
    let mut rows: Dense =
        gram.iter().zip(right).map(|(row, b)| row.iter().copied().chain([*b]).collect()).collect();
    let scale = (0..count).map(|at| gram[at][at]).fold(0.0, f64::max);
    let mut pivots = Vec::new();
    let mut next = 0;
    for column in 0..count {
        let best = (next..count).max_by(|a, b| rows[*a][column].abs().total_cmp(&rows[*b][column].abs()));
        let Some(best) = best.filter(|best| rows[*best][column].abs() > 1e-9 * scale) else { continue };
        rows.swap(next, best);
        let pivot = rows[next].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|(at, _)| *at != next) {
            let factor = row[column] / pivot[column];
            row.iter_mut().zip(&pivot).for_each(|(x, y)| *x -= factor * y);
        }
        pivots.push((next, column));
        next += 1;
    }
    let mut x = vec![0.0; count];
    for (row, column) in pivots {
        x[column] = rows[row][count] / rows[row][column];
    }
    x
}

fn cells_of_all(marginals: &Marginals) -> usize {
    marginals.tables.tables.iter().map(|table| table.cells).sum()
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(a, b)| a * b).sum()
}

fn gram(rows: &Dense) -> Dense {
    let count = rows[0].len();
    let entry = |i: usize, j: usize| rows.iter().map(|row| row[i] * row[j]).sum();
    (0..count).map(|i| (0..count).map(|j| entry(i, j)).collect()).collect()
}

fn shapes() -> Vec<(Vec<usize>, Vec<usize>)> {
    let mut shapes = vec![(vec![4], vec![0, 1]), (vec![2, 2, 2, 2], vec![1]), (vec![2, 3], vec![2])];
    let mut state = 1;
    for _ in 0..25 {
        let mut next = |count: usize| (random(&mut state) * count as f64) as usize;
        let sizes: Vec<usize> = (0..1 + next(4)).map(|_| 2 + next(3)).collect();
        let ways: Vec<usize> = (0..=sizes.len()).filter(|_| next(2) == 0).collect();
        if ways.iter().any(|way| *way > 0) {
            shapes.push((sizes, ways));
        }
    }
    shapes
}

/// The norm of each column of the dense matrix, in integers, is the one that is computed, within the points
/// and near them; encoding a row gives its column.
#[test]
fn a_row_moves_the_cells_by_at_most_its_points() {
    for (sizes, ways) in shapes() {
        let marginals = Marginals::new(sizes.clone(), &ways);
        for all in [marginals.least_points().ceil() as i64, 1 << 20, 77_777, 40, 3, 1] {
            let codes = marginals.codes(all);
            let dense = stacked(&marginals, &sizes, &codes);
            let bound = i128::from(all).pow(2);
            let norm = marginals.squared_norm(&codes).unwrap();
            assert!(norm <= bound, "{sizes:?} {ways:?}: {norm} {bound}");
            assert!(all < 256 || norm as f64 > 0.98 * bound as f64, "{sizes:?} {ways:?}: {norm} {bound}");
            for cell in 0..dense[0].len() {
                let squares: i128 = dense.iter().map(|row| (row[cell] as i128).pow(2)).sum();
                assert_eq!(squares, norm, "{sizes:?} {ways:?}");
                let mut rows = vec![0i64; dense.len()];
                let classes = classes(&sizes, cell);
                marginals.tables.cells_of(&classes).for_each(|cell| rows[cell] += 1);
                marginals.encode(&codes, &mut rows).unwrap();
                let wanted: Vec<i64> = dense.iter().map(|row| row[cell] as i64).collect();
                assert_eq!(rows, wanted, "{sizes:?} {ways:?}");
            }
        }
    }
    let marginals = Marginals::new(vec![2, 2], &[1, 2]);
    let codes = marginals.codes(1 << 20);
    assert!(marginals.encode(&codes, &mut [i64::MAX / 1000; 9]).is_none());
}

fn classes(sizes: &[usize], mut cell: usize) -> Vec<usize> {
    let of_size = |size: &usize| {
        let class = cell % size;
        cell /= size;
        class
    };
    let mut classes: Vec<usize> = sizes.iter().rev().map(of_size).collect();
    classes.reverse();
    classes
}

/// Estimates and their variances are those of dense least squares, and tables agree.
#[test]
fn estimates_are_those_of_dense_least_squares() {
    let mut state = 5;
    for (sizes, ways) in shapes() {
        let marginals = Marginals::new(sizes.clone(), &ways);
        let all = marginals.least_points().ceil() as i64;
        let squares = LeastSquares::new(&marginals, all);
        let dense = stacked(&marginals, &sizes, &marginals.codes(all));
        let gram = gram(&dense);
        let cells: Vec<i64> = dense.iter().map(|_| (random(&mut state) * 2e6) as i64 - 500_000).collect();
        let noisy: Vec<f64> = cells.iter().map(|cell| *cell as f64).collect();
        let right: Vec<f64> = (0..gram.len())
            .map(|column| dense.iter().zip(&noisy).map(|(row, y)| row[column] * y).sum())
            .collect();
        let joint = solved(&gram, &right);
        for (table, counts) in squares.asked().zip(squares.counts(&cells)) {
            let attributes = &marginals.tables.tables[table].attributes;
            let queries = kronecker(&sizes, attributes);
            assert_eq!(queries.len(), counts.len());
            for (query, count) in queries.iter().zip(&counts) {
                let wanted = dot(query, &joint);
                assert!((count - wanted).abs() < 1e-6 * wanted.abs().max(1e3), "{count} {wanted}");
                let wanted = dot(query, &solved(&gram, query)).sqrt();
                let found = squares.deviation(table);
                assert!((found / wanted - 1.0).abs() < 1e-7, "{sizes:?} {ways:?}: {found} {wanted}");
            }
        }
    }
}

/// Sums of each published table are the cells of each smaller one.
#[test]
fn tables_agree_with_each_other() {
    let mut state = 9;
    let marginals = Marginals::new(vec![10, 5, 4, 3], &[0, 1, 2, 3]);
    let squares = LeastSquares::new(&marginals, 100_000);
    let cells: Vec<i64> = (0..cells_of_all(&marginals)).map(|_| (random(&mut state) * 1e9) as i64).collect();
    let counts = squares.counts(&cells);
    let asked: Vec<usize> = squares.asked().collect();
    for (&from, counted) in asked.iter().zip(&counts) {
        for to in marginals.tables.subsets[from].iter().filter(|to| asked.contains(to)) {
            let mut sums = vec![0.0; marginals.tables.tables[*to].cells];
            let places = marginals.tables.projection(from, *to);
            counted.iter().zip(places).for_each(|(count, place)| sums[place] += count);
            let at = asked.iter().position(|table| table == to).unwrap();
            for (sum, count) in sums.iter().zip(&counts[at]) {
                assert!((sum - count).abs() < 1e-6, "{from} {to}: {sum} {count}");
            }
        }
    }
}

/// Counts without noise are read as they were.
#[test]
fn rows_without_noise_are_read_as_they_were() {
    let mut state = 3;
    for (sizes, ways) in [(vec![7, 2, 5], vec![1, 3]), (vec![2; 6], vec![1, 2])] {
        let marginals = Marginals::new(sizes.clone(), &ways);
        let squares = LeastSquares::new(&marginals, 5000);
        let mut cells = vec![0i64; cells_of_all(&marginals)];
        for _ in 0..5000 {
            let classes: Vec<usize> =
                sizes.iter().map(|size| (random(&mut state) * *size as f64) as usize).collect();
            marginals.tables.cells_of(&classes).for_each(|cell| cells[cell] += 1);
        }
        let truth = cells.clone();
        marginals.encode(&marginals.codes(5000), &mut cells).unwrap();
        for (table, counts) in squares.asked().zip(squares.counts(&cells)) {
            let table = &marginals.tables.tables[table];
            for (count, truth) in counts.iter().zip(&truth[table.first..]) {
                assert!((count - *truth as f64).abs() < 1e-8, "{count} {truth}");
            }
        }
    }
}

/// The sum over published tables of the variance of a cell is the smallest of any strategy, up to rounding.
#[test]
fn no_strategy_is_better() {
    let large = [(vec![10, 10], vec![1, 2]), (vec![10, 5, 4], vec![1, 2]), (vec![2; 8], vec![1, 2])];
    let larger = [
        (vec![2; 16], vec![2]),
        (vec![4; 8], vec![2]),
        (vec![2; 9], vec![9]),
        (vec![1000, 1000], vec![1, 2]),
    ];
    for (sizes, ways) in shapes().into_iter().chain(large).chain(larger) {
        let marginals = Marginals::new(sizes.clone(), &ways);
        let bound = precision::bound(&marginals.tables);
        let loss = precision::loss(&marginals.tables, &marginals.precisions.factors);
        assert!(loss >= bound * (1.0 - 1e-9), "{sizes:?} {ways:?}: {loss} {bound}");
        assert!(loss <= bound * 1.002, "{sizes:?} {ways:?}: {}", loss / bound);
        let all = marginals.least_points().ceil();
        let squares = LeastSquares::new(&marginals, all as i64);
        let variances = squares.asked().map(|table| squares.deviation(table).powi(2));
        let rounded = variances.sum::<f64>() * all * all;
        assert!(rounded >= bound && rounded <= 1.02 * bound, "{sizes:?} {ways:?}: {}", rounded / bound);
    }
}

/// The bound over all strategies holds for random dense ones, each with columns of norm 1 at most.
#[test]
fn random_strategies_do_no_better_than_the_bound() {
    let mut state = 11;
    for (sizes, ways) in [(vec![3, 2], vec![1, 2]), (vec![2, 2, 2], vec![1]), (vec![3, 3], vec![0, 1])] {
        let marginals = Marginals::new(sizes.clone(), &ways);
        let count: usize = sizes.iter().product();
        for round in 0..60 {
            let mut rows: Dense = (0..count)
                .map(|i| {
                    (0..count)
                        .map(|j| random(&mut state) - 0.5 + f64::from(i == j) * f64::from(round % 5))
                        .collect()
                })
                .collect();
            let norm = |rows: &Dense, j: usize| rows.iter().map(|row| row[j] * row[j]).sum::<f64>().sqrt();
            let most = (0..count).map(|j| norm(&rows, j)).fold(0.0, f64::max);
            rows.iter_mut().flatten().for_each(|x| *x /= most);
            let gram = gram(&rows);
            let mut loss = 0.0;
            for table in marginals.tables.tables.iter().filter(|table| table.is_asked) {
                let queries = kronecker(&sizes, &table.attributes);
                let sum: f64 = queries.iter().map(|query| dot(query, &solved(&gram, query))).sum();
                loss += sum / queries.len() as f64;
            }
            assert!(loss >= precision::bound(&marginals.tables) * (1.0 - 1e-6), "{loss}");
        }
    }
}

#[test]
fn tables_are_counted_before_they_are_made() {
    for (sizes, ways) in shapes().into_iter().chain([(vec![2; 16], vec![0, 2]), (vec![3; 10], vec![10])]) {
        let (made, most) = (Tables::new(sizes.clone(), &ways), *ways.last().unwrap());
        assert_eq!(made.tables.len(), tables::count(sizes.len(), most));
        assert_eq!(made.tables.iter().map(|table| table.cells).sum::<usize>(), tables::cells(&sizes, most));
    }
    assert_eq!(tables::cells(&[usize::MAX; 16], 16), usize::MAX);
}

/// Codes are not stored in a folder: they must not change after the folder is made.
#[test]
fn codes_stay_as_they_are() {
    let codes = Marginals::new(vec![3, 2], &[1, 2]).codes(100_000);
    assert_eq!(codes, [vec![0], vec![-1363, 52_652], vec![-2208, 56_859], vec![-867, 0, 0, 66_974]]);
}
