//! Matrices of any shape as strategies, against dense algebra.

mod oracle;

use antinoise_input::BadInput;
use antinoise_linear::Matrix;
use antinoise_mechanism::sensitivity::Kind;
use antinoise_mechanism::strategy::Factors;
use antinoise_mechanism::{AnyStrategy, Encoder, Participation, Recursion, Result, Strategy, Workload};
use proptest::prelude::*;

const CASES: u32 = 500;

/// The structures of C that are tried.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Lower,
    Upper,
    Full,
    Tall,
    Banded,
    Toeplitz,
    /// A lower-triangular matrix times an orthogonal one from the left.
    Reflected,
}

fn matrix(shape: Shape, n: usize, numbers: &[f64]) -> oracle::Matrix {
    let number = |i: usize, j: usize| numbers[(i * 13 + j) % numbers.len()];
    let diagonal = |i: usize, j: usize| {
        let sign = if i % 3 == 1 { -1.0 } else { 1.0 };
        if i == j { sign * (2.0 + number(i, j).abs()) } else { 0.4 * number(i, j) }
    };
    let rows = if matches!(shape, Shape::Tall) { 2 * n + 1 } else { n };
    let entry = |i: usize, j: usize| match shape {
        Shape::Lower if j > i => 0.0,
        Shape::Upper if j < i => 0.0,
        Shape::Banded if j > i || i - j >= 2 => 0.0,
        Shape::Reflected if j > i => 0.0,
        Shape::Toeplitz if j > i => 0.0,
        Shape::Toeplitz => -1.5 * f64::from(i == j) + 0.3 * number(i - j, 0),
        _ => diagonal(i, j),
    };
    let c: oracle::Matrix = (0..rows).map(|i| (0..n).map(|j| entry(i, j)).collect()).collect();
    match shape {
        Shape::Reflected => {
            let normal: Vec<f64> = (0..n).map(|i| 1.0 + number(i, i)).collect();
            let square: f64 = normal.iter().map(|x| x * x).sum();
            let reflect = |i: usize, j: usize| f64::from(i == j) - 2.0 * normal[i] * normal[j] / square;
            let q = (0..n).map(|i| (0..n).map(|j| reflect(i, j)).collect()).collect();
            oracle::product(&q, &c)
        }
        _ => c,
    }
}

fn of_rows(rows: &oracle::Matrix) -> Matrix {
    Matrix::from_fn(rows.len(), rows[0].len(), |i, j| rows[i][j])
}

/// X^-1 by elimination, for X that is far from singular.
fn inverse(x: &oracle::Matrix) -> oracle::Matrix {
    let n = x.len();
    let row = |i: usize| x[i].iter().copied().chain((0..n).map(move |j| f64::from(i == j))).collect();
    let mut all: oracle::Matrix = (0..n).map(row).collect();
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| all[i][k].abs().total_cmp(&all[j][k].abs())).unwrap();
        all.swap(k, pivot);
        let scaled: Vec<f64> = all[k].iter().map(|entry| entry / all[k][k]).collect();
        for (i, row) in all.iter_mut().enumerate() {
            let factor = row[k];
            match i == k {
                true => row.clone_from(&scaled),
                false => row.iter_mut().zip(&scaled).for_each(|(entry, of)| *entry -= factor * of),
            }
        }
    }
    all.into_iter().map(|row| row[n..].to_vec()).collect()
}

fn assert_near(found: &oracle::Matrix, expected: &oracle::Matrix, what: &str) {
    let size = expected.iter().flatten().fold(0.0, |most: f64, x| most.max(x.abs()));
    for (x, y) in found.iter().flatten().zip(expected.iter().flatten()) {
        assert!((x - y).abs() <= 1e-11 * size, "{what}: {x} instead of {y}");
    }
}

fn schemas(n: usize) -> Vec<Participation> {
    let mut all = vec![Participation::Single, Participation::FullBatch];
    for (min_sep, max_participations) in [(1, 2), (2, 2), (n.div_ceil(3), 3), (n, 1)] {
        all.push(Participation::Cyclic { min_sep, max_participations });
        all.push(Participation::MinSep { min_sep, max_participations });
    }
    all.push(Participation::Patterns { patterns: vec![(0..n).step_by(2).collect()] });
    all.retain(|schema| schema.check(n).is_ok());
    all
}

/// Sensitivity under every schema, errors, and the covariance of the noise, against the matrix as it was
/// given.
fn assert_strategy_of(rows: &oracle::Matrix, what: &str) {
    let n = rows[0].len();
    let strategy = AnyStrategy::of_matrix(&of_rows(rows)).unwrap();
    assert_eq!(strategy.steps(), n);
    let gram = oracle::product(&oracle::transposed(rows), rows);
    let covariance = inverse(&gram);
    let noise = oracle::of_recursion(&strategy.recursion().unwrap(), n);
    assert_near(&oracle::product(&noise, &oracle::transposed(&noise)), &covariance, what);
    assert!(noise.iter().enumerate().all(|(i, row)| row[i + 1..].iter().all(|&x| x == 0.0)), "{what}");
    for workload in [Workload::Prefix, Workload::Momentum { momentum: 0.9, weight_decay: 0.0 }] {
        let a = oracle::workload(&workload, n);
        let squares = oracle::product(&oracle::product(&a, &covariance), &oracle::transposed(&a));
        let (b, error) = (oracle::product(&a, &noise), strategy.error(&workload).unwrap());
        assert!((error.max / oracle::max_row_norm(&b) - 1.0).abs() < 1e-10, "{what}: {workload}");
        assert!((error.rms / oracle::rms(&b) - 1.0).abs() < 1e-10, "{what}: {workload}");
        for (t, error) in strategy.row_errors(&workload).unwrap().into_iter().enumerate() {
            assert!((error / squares[t][t].sqrt() - 1.0).abs() < 1e-10, "{what}: {workload} row {t}");
        }
    }
    for schema in schemas(n) {
        let (found, brute) = (strategy.sensitivity(&schema).unwrap(), oracle::sensitivity(rows, &schema));
        let holds = match found.kind {
            Kind::Exact => (found.value / brute - 1.0).abs() < 1e-10,
            Kind::UpperBound => found.value >= brute * (1.0 - 1e-10),
        };
        assert!(holds, "{what} under {schema}: {found:?} against {brute}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: CASES,
        rng_seed: prop::test_runner::RngSeed::Fixed(29),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_matrix_has_the_sensitivity_the_errors_and_the_noise_of_dense_algebra(
        shape in prop::sample::select(vec![
            Shape::Lower, Shape::Upper, Shape::Full, Shape::Tall, Shape::Banded, Shape::Toeplitz, Shape::Reflected,
        ]),
        n in 1usize..=9,
        numbers in prop::collection::vec(-1.0f64..1.0, 37),
    ) {
        assert_strategy_of(&matrix(shape, n, &numbers), &format!("{shape:?} n={n}"));
    }
}

#[test]
fn a_matrix_is_held_by_the_class_of_least_state_to_the_last_bit() {
    let numbers: Vec<f64> = (0..37).map(|i| f64::from(i * 7 % 11) / 11.0 - 0.4).collect();
    for (shape, class) in [
        (Shape::Lower, "dense"),
        (Shape::Full, "dense"),
        (Shape::Tall, "dense"),
        (Shape::Banded, "banded"),
        (Shape::Toeplitz, "toeplitz"),
    ] {
        let rows = matrix(shape, 8, &numbers);
        let strategy = AnyStrategy::of_matrix(&of_rows(&rows)).unwrap();
        assert_eq!(strategy.class().name(), class, "{shape:?}");
        if matches!(shape, Shape::Lower | Shape::Banded | Shape::Toeplitz) {
            let held = strategy.encoder().unwrap().to_dense();
            for i in 0..8 {
                let sign = rows[i][i].signum();
                assert!((0..8).all(|j| held[(i, j)] == sign * rows[i][j]), "{shape:?} row {i}");
            }
        }
    }
    let twice = Matrix::from_fn(5, 5, |i, j| if i == j { 2.0 } else { 0.0 });
    assert_eq!(AnyStrategy::of_matrix(&twice).unwrap().class().name(), "banded-toeplitz");
}

/// The columns of one example's participations differ by 300 orders of magnitude in size.
#[test]
fn columns_of_any_size_keep_their_digits() {
    let scales = [1e-120, 1.0, 1e130];
    let rows: oracle::Matrix = (0..4)
        .map(|i| (0..3).map(|j| (f64::from(i == j) + 0.2 * (i + j) as f64) * scales[j]).collect())
        .collect();
    let held = AnyStrategy::of_matrix(&of_rows(&rows)).unwrap().encoder().unwrap().to_dense();
    for j in 0..3 {
        for k in j..3 {
            let given: f64 = rows.iter().map(|row| row[j] / scales[j] * (row[k] / scales[k])).sum();
            let found: f64 = (0..3).map(|i| held[(i, j)] / scales[j] * (held[(i, k)] / scales[k])).sum();
            assert!((found - given).abs() < 1e-14, "{j} {k}: {found} {given}");
        }
    }
}

#[test]
fn matrices_without_noise_are_refused_by_name() {
    let refused = |c: Matrix, name: &str| {
        let error = AnyStrategy::of_matrix(&c).unwrap_err();
        assert!(error.is_bad_input() && error.to_string().starts_with(name), "{error}");
    };
    let ones = |rows, columns| Matrix::from_fn(rows, columns, |_, _| 1.0);
    refused(Matrix::zeros(0, 0), "columns of C is 0");
    refused(Matrix::from_fn(2, 3, |i, j| f64::from(i == j)), "rows of C is 2 but must be at least 3");
    refused(ones(3, 3), "C is a matrix in which column 1 ");
    refused(ones(5, 2), "C is a matrix in which column 0 ");
    refused(
        Matrix::from_fn(3, 3, |i, j| if i >= j && i != 1 { 1.0 } else { 0.0 }),
        "C is a matrix in which column 1 ",
    );
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        refused(
            Matrix::from_fn(3, 2, |i, j| if (i, j) == (2, 1) { bad } else { f64::from(i == j) }),
            "C[2, 1] is ",
        );
    }
    refused(
        Matrix::from_fn(3, 2, |i, j| if i == j { f64::MAX } else { -f64::MAX }),
        "C is a matrix in which the norm of column 0 is beyond double precision",
    );
    // Within rounding of a singular matrix.
    let near = |i: usize, j: usize| if (i, j) == (2, 2) { 1.0 + 2.0 * f64::EPSILON } else { (j + 1) as f64 };
    refused(Matrix::from_fn(3, 3, near), "C is a matrix in which column ");
}

#[test]
fn factors_must_be_those_of_the_workload() {
    let ones = Matrix::from_fn(4, 4, |i, j| if i >= j { 1.0 } else { 0.0 });
    let b = Matrix::identity(4, 4);
    let factors = Factors { b: Some(b.clone()), a: Some(ones.clone()), ..Factors::new(ones.clone()) };
    assert!(factors.strategy(&Workload::Prefix).is_ok());
    let refused = |factors: &Factors, workload: &Workload, name: &str| {
        let error = factors.strategy(workload).unwrap_err();
        assert!(error.is_bad_input() && error.to_string().starts_with(name), "{error}");
    };
    let decay = Workload::Decay { gamma: 0.5 };
    refused(&factors, &decay, "A[1, 0] is 1 but must be 0.5");
    refused(&Factors { a: None, ..factors.clone() }, &decay, "B C[1, 0] is 1 but must be 0.5");
    let wide = Factors { b: Some(Matrix::identity(4, 5)), ..Factors::new(ones.clone()) };
    refused(&wide, &Workload::Prefix, "columns of B is 5 but must be 4");
    let short = Factors { b: Some(Matrix::identity(3, 4)), ..Factors::new(ones.clone()) };
    refused(&short, &Workload::Prefix, "shape of B C is 3 x 4 but must be 4 x 4");
    // Single precision is rounding; a thousandth is not.
    let moved = |by: f64| Matrix::from_fn(4, 4, |i, j| if i == j { 1.0 + by } else { 0.0 });
    let with = |by| Factors { b: Some(moved(by)), ..Factors::new(ones.clone()) };
    assert!(with(1e-7).strategy(&Workload::Prefix).is_ok());
    refused(&with(1e-3), &Workload::Prefix, "B C[0, 0] is 1.001");
}

/// A strategy of another crate: C = I + a e_0^T, with a recursion of its own.
struct Spike(Vec<f64>);

impl Strategy for Spike {
    fn steps(&self) -> usize {
        self.0.len()
    }

    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn encoder(&self) -> Result<Encoder> {
        let (n, a) = (self.0.len(), &self.0);
        let entry = |i: usize, j: usize| f64::from(i == j) + if j == 0 && i > 0 { a[i] } else { 0.0 };
        Ok(Encoder::Dense(Matrix::from_fn(n, n, entry)))
    }

    fn recursion(&self) -> Result<Recursion> {
        let row = |t: usize| if t == 0 { vec![(0, 1.0)] } else { vec![(0, -self.0[t]), (t, 1.0)] };
        Ok(Recursion::SeedCombination { rows: (0..self.0.len()).map(row).collect() })
    }
}

#[test]
fn a_strategy_of_another_crate_has_a_form_that_files_hold() {
    let spike = Spike(vec![0.0, 0.5, -0.25, 0.125]);
    let held = AnyStrategy::of(&spike).unwrap();
    let [own, of_matrix] =
        [spike.recursion(), held.recursion()].map(|r| oracle::of_recursion(&r.unwrap(), 4));
    assert_near(&own, &of_matrix, "noise");
    assert_eq!(toml::from_str::<AnyStrategy>(&toml::to_string(&held).unwrap()).unwrap(), held);
    // Strategies of this crate keep their form where it is coefficients or bands.
    for spec in ["identity", "toeplitz", "banded-toeplitz:2", "banded:2", "tree"] {
        let spec: antinoise_mechanism::design::StrategySpec = spec.parse().unwrap();
        let designed = spec.design(&antinoise_mechanism::Problem::prefix(6)).unwrap().value;
        let held = AnyStrategy::of(&*designed).unwrap();
        for schema in schemas(6) {
            let [given, found] = [&designed, &held].map(|s| s.sensitivity(&schema).unwrap());
            assert!((found.value / given.value - 1.0).abs() < 1e-12, "{spec} {schema}: {found:?} {given:?}");
        }
    }
}
