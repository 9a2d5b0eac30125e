//! Checks each operation of faer and of the reference against its definition, and the two against each other.
//! (Without the feature `faer`, both are the reference.)

use super::*;

/// Sizes of the matrices: all small ones, and some at which faer uses other algorithms (threads, divide and
/// conquer).
fn sizes() -> impl Iterator<Item = usize> {
    (1..=40).chain([97, 130])
}

/// Pseudorandom numbers from -1 to 1, the same in each run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    fn matrix(&mut self, rows: usize, columns: usize) -> Matrix {
        Matrix::from_fn(rows, columns, |_, _| self.next())
    }

    /// An orthogonal matrix: a product of reflections, each from its definition.
    fn orthogonal(&mut self, n: usize) -> Matrix {
        let mut q = Matrix::identity(n, n);
        for _ in 0..4 {
            let u: Vec<f64> = (0..n).map(|_| self.next()).collect();
            let squared: f64 = u.iter().map(|u| u * u).sum();
            for j in 0..n {
                let along: f64 = q.column(j).iter().zip(&u).map(|(q, u)| q * u).sum();
                q.column_mut(j).iter_mut().zip(&u).for_each(|(q, u)| *q -= 2.0 * along / squared * u);
            }
        }
        q
    }
}

/// Spectra of n increasing numbers, easy and hard: spread, all equal, in two clusters, from 1 down to the
/// size of rounding errors, mostly zero, of both signs.
fn spectra(n: usize) -> Vec<Vec<f64>> {
    let part = |i: usize| (i + 1) as f64 / n as f64;
    let of = |entry: &dyn Fn(usize) -> f64| (0..n).map(entry).collect::<Vec<f64>>();
    vec![
        of(&part),
        of(&|_| 3.0),
        of(&|i| if i < n / 2 { 1.0 + 1e-14 * part(i) } else { 2.0 }),
        of(&|i| 10f64.powf(-18.0 * (1.0 - part(i)))),
        of(&|i| if i + 2 < n { 0.0 } else { part(i) }),
        of(&|i| part(i) - 0.5),
    ]
}

/// Q diag(values) Q^T, with exactly equal entries below and above the diagonal.
fn symmetric(values: &[f64], q: &Matrix) -> Matrix {
    let n = values.len();
    let entry = |i: usize, j: usize| (0..n).map(|l| q[(i, l)] * values[l] * q[(j, l)]).sum();
    Matrix::from_fn(n, n, |i, j| entry(i.max(j), i.min(j)))
}

/// Symmetric matrices and their eigenvalues, exact up to rounding.
fn symmetric_cases() -> impl Iterator<Item = (Matrix, Vec<f64>)> {
    sizes().flat_map(|n| {
        let q = Numbers(n as u64).orthogonal(n);
        let of = move |values: Vec<f64>| (symmetric(&values, &q), values);
        spectra(n).into_iter().map(of).collect::<Vec<_>>()
    })
}

fn largest(numbers: &[f64]) -> f64 {
    numbers.iter().fold(0.0, |most, x| most.max(x.abs()))
}

/// Asserts equal shapes, and that entries differ by at most `most`.
#[track_caller]
fn assert_within(most: f64, a: &Matrix, b: &Matrix) {
    assert_eq!((a.nrows(), a.ncols()), (b.nrows(), b.ncols()));
    let apart = a.entries().iter().zip(b.entries()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    let finite = a.entries().iter().chain(b.entries()).all(|x| x.is_finite());
    assert!(finite && apart <= most, "{apart:e} apart, {most:e} allowed, {} x {}", a.nrows(), a.ncols());
}

/// Asserts that columns are orthogonal and of length 1.
#[track_caller]
fn assert_orthonormal(q: &Matrix) {
    assert_within(1e-13, &product(q.transpose(), q), &Matrix::identity(q.ncols(), q.ncols()));
}

/// A B by its definition.
fn defined(a: &Matrix, b: &Matrix) -> Matrix {
    Matrix::from_fn(a.nrows(), b.ncols(), |i, j| (0..a.ncols()).map(|k| a[(i, k)] * b[(k, j)]).sum())
}

fn scaled(u: &Matrix, values: &[f64]) -> Matrix {
    Matrix::from_fn(u.nrows(), values.len(), |i, j| u[(i, j)] * values[j])
}

#[test]
fn products_are_sums_of_products() {
    let mut numbers = Numbers(1);
    for n in sizes().chain([0]) {
        for (m, k) in [(n, n), (n + 3, n / 2), (n / 3, 2 * n), (1, n), (n, 0)] {
            let (a, b) = (numbers.matrix(n, k), numbers.matrix(k, m));
            let expected = defined(&a, &b);
            let (a_turned, b_turned) = (a.transpose().to_owned(), b.transpose().to_owned());
            let views: [[View; 2]; 4] = [
                [(&a).into(), (&b).into()],
                [a_turned.transpose(), (&b).into()],
                [(&a).into(), b_turned.transpose()],
                [a_turned.transpose(), b_turned.transpose()],
            ];
            for [a, b] in views {
                let most = 2.0 * k as f64 * f64::EPSILON;
                assert_within(most, &product(a, b), &expected);
                assert_within(most, &reference::product(a, b), &expected);
            }
        }
    }
}

#[test]
fn a_factor_is_triangular_and_its_gram_matrix_is_what_it_was_made_of() {
    let mut factored = 0;
    for (x, values) in symmetric_cases() {
        let (n, most) = (x.nrows(), largest(&values));
        let rounding = 4.0 * n as f64 * f64::EPSILON;
        for reverse_cholesky in [reverse_cholesky, reference::reverse_cholesky] {
            match reverse_cholesky(&x) {
                Ok(c) => {
                    assert!((0..n).all(|j| c[(j, j)] > 0.0 && (0..j).all(|i| c[(i, j)] == 0.0)));
                    assert_within(rounding * most, &defined(&c.transpose().to_owned(), &c), &x);
                    assert!(values[0] > -rounding * most, "{values:?}");
                    factored += 1;
                }
                Err(error) => {
                    assert_eq!(error, Error::NotPositiveDefinite(n));
                    assert!(values[0] < rounding * most, "{values:?}");
                }
            }
        }
        if values[0] > 1e-4 * most {
            assert_within(
                1e5 * rounding * most.sqrt(),
                &reverse_cholesky(&x).unwrap(),
                &reference::reverse_cholesky(&x).unwrap(),
            );
        }
    }
    assert!(factored > 200, "{factored}");
}

#[test]
fn the_factor_of_a_matrix_is_triangular_and_has_its_gram_matrix() {
    let mut numbers = Numbers(2);
    for n in sizes() {
        for (r, spread) in [(n, 0), (n + 1, 0), (2 * n + 3, 0), (n, 3), (n + 5, 300)] {
            let scale = |j: usize| 10f64.powi((j % 3) as i32 * spread / 2 - spread / 2);
            let random = numbers.matrix(r, n);
            let c = Matrix::from_fn(r, n, |i, j| (random[(i, j)] + 2.0 * f64::from(i == j)) * scale(j));
            let expected = scaled_gram(&c, scale);
            for upper_factor in [backend::upper_factor, reference::upper_factor] {
                let l = factored(&c, upper_factor).unwrap();
                assert!((0..n).all(|j| l[(j, j)] > 0.0 && (0..j).all(|i| l[(i, j)] == 0.0)));
                let most =
                    16.0 * r as f64 * f64::EPSILON * (0..n).map(|j| expected[(j, j)]).fold(0.0, f64::max);
                assert_within(most, &scaled_gram(&l, scale), &expected);
            }
        }
    }
}

/// C^T C of the C whose columns are divided by `scale`.
fn scaled_gram(c: &Matrix, scale: impl Fn(usize) -> f64) -> Matrix {
    let c = Matrix::from_fn(c.nrows(), c.ncols(), |i, j| c[(i, j)] / scale(j));
    defined(&c.transpose().to_owned(), &c)
}

#[test]
fn dependent_columns_have_no_factor() {
    let mut numbers = Numbers(3);
    for n in sizes().filter(|&n| n > 1) {
        // The last column depends on no later one.
        for dependent in [0, (n - 2) / 2, n - 2] {
            for zero in [false, true] {
                let random = numbers.matrix(n + 2, n);
                let entry = |i: usize, j: usize| match j == dependent {
                    true if zero => 0.0,
                    true => 3.0 * (random[(i, n - 1)] + 2.0 * f64::from(i == n - 1)),
                    false => random[(i, j)] + 2.0 * f64::from(i == j),
                };
                let c = Matrix::from_fn(n + 2, n, entry);
                for upper_factor in [backend::upper_factor, reference::upper_factor] {
                    let found = factored(&c, upper_factor);
                    assert!(
                        matches!(found, Err(Error::Dependent(j)) if j <= dependent),
                        "{n} {dependent} {zero}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_factor_reads_the_upper_half_and_eigenvalues_the_lower() {
    for n in sizes() {
        let q = Numbers(3).orthogonal(n);
        let x = symmetric(&spectra(n)[0], &q);
        let upper = Matrix::from_fn(n, n, |i, j| if i <= j { x[(i, j)] } else { f64::NAN });
        let lower = upper.transpose().to_owned();
        assert_eq!(reverse_cholesky(&upper), reverse_cholesky(&x));
        assert_eq!(reference::reverse_cholesky(&upper), reference::reverse_cholesky(&x));
        assert_eq!(symmetric_eigen(&lower), symmetric_eigen(&x));
        assert_eq!(reference::symmetric_eigen(&lower), reference::symmetric_eigen(&x));
        assert_eq!(symmetric_eigenvalues(&lower), symmetric_eigenvalues(&x));
        assert_eq!(reference::symmetric_eigenvalues(&lower), reference::symmetric_eigenvalues(&x));
        let factor = reverse_cholesky(&x).unwrap();
        let filled = Matrix::from_fn(n, n, |i, j| if i >= j { factor[(i, j)] } else { f64::NAN });
        assert_eq!(lower_inverse(&filled), lower_inverse(&factor));
        assert_eq!(reference::lower_inverse(&filled), reference::lower_inverse(&factor));
    }
}

#[test]
fn a_matrix_times_its_inverse_is_the_identity() {
    let mut numbers = Numbers(5);
    for n in sizes() {
        let identity = Matrix::identity(n, n);
        // Decreasing columns, as encoders have.
        let c = Matrix::from_fn(n, n, |i, j| if i < j { 0.0 } else { 1.0 / (1.0 + (i - j) as f64).sqrt() });
        for lower_inverse in [lower_inverse, reference::lower_inverse] {
            let inverse = lower_inverse(&c);
            assert!((0..n).all(|j| (0..j).all(|i| inverse[(i, j)] == 0.0)));
            assert_within(1e-13, &defined(&inverse, &c), &identity);
        }
        assert_within(1e-13, &lower_inverse(&c), &reference::lower_inverse(&c));
        let a = numbers.matrix(n, n);
        // Its diagonal entries are too small for pivots.
        let hollow = Matrix::from_fn(n, n, |i, j| match i + j + 1 {
            sum if sum == n => 1.0,
            _ if i == j => 1e-14 * numbers.next(),
            _ => 0.1 * numbers.next() / n as f64,
        });
        for a in [a, hollow] {
            // Singular values: the roots of the eigenvalues of A^T A.
            let squares = reference::symmetric_eigenvalues(&defined(&a.transpose().to_owned(), &a)).unwrap();
            let (least, most) = (squares[0].sqrt(), squares[n - 1].sqrt());
            let rounding = 10.0 * n as f64 * f64::EPSILON * most / least;
            for inverse in [inverse, reference::inverse] {
                assert_within(rounding, &defined(&inverse(&a), &a), &identity);
            }
            assert_within(rounding / least, &inverse(&a), &reference::inverse(&a));
        }
    }
}

#[test]
fn what_has_no_inverse_gets_entries_that_are_not_finite() {
    for n in sizes() {
        let mut holed = Matrix::identity(n, n);
        holed[(n / 2, n / 2)] = 0.0;
        for inverse in [lower_inverse, reference::lower_inverse, inverse, reference::inverse] {
            for singular in [&Matrix::zeros(n, n), &holed] {
                assert!(inverse(singular).entries().iter().any(|x| !x.is_finite()), "{n}");
            }
        }
    }
}

/// Bound on the rounding error of an eigenvalue, relative to the largest.
const ROUNDING: f64 = 5e-14;

#[track_caller]
fn assert_values(most: f64, found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    let close = |(a, b): (&f64, &f64)| (a - b).abs() <= most;
    assert!(found.iter().zip(expected).all(close), "within {most:e}: {found:?} {expected:?}");
}

/// Asserts X = Q diag(values) Q^T, and the values.
#[track_caller]
fn assert_eigen(x: &Matrix, (values, q): &(Vec<f64>, Matrix), expected: &[f64]) {
    let rounding = ROUNDING * largest(expected);
    assert!(values.is_sorted());
    assert_values(rounding, values, expected);
    assert_orthonormal(q);
    assert_within(rounding, &defined(&scaled(q, values), &q.transpose().to_owned()), x);
}

#[test]
fn eigenvectors_are_orthonormal_and_give_their_matrix_back() {
    for (x, expected) in symmetric_cases() {
        assert_eigen(&x, &symmetric_eigen(&x).unwrap(), &expected);
        assert_eigen(&x, &reference::symmetric_eigen(&x).unwrap(), &expected);
        let rounding = ROUNDING * largest(&expected);
        assert_values(rounding, &symmetric_eigenvalues(&x).unwrap(), &expected);
        assert_values(rounding, &reference::symmetric_eigenvalues(&x).unwrap(), &expected);
    }
}

#[test]
fn entries_far_from_one_lose_no_digits() {
    for n in [1, 2, 5, 40, 130] {
        let q = Numbers(n as u64).orthogonal(n);
        let (of_one, expected) = (symmetric(&spectra(n)[0], &q), &spectra(n)[0]);
        for power in [-1060, -500, -100, -30, -8, -4, 14, 20, 21, 30, 100, 500, 1020] {
            let times = |x: f64| x * 2f64.powi(power / 2) * 2f64.powi(power - power / 2);
            let x = Matrix::from_fn(n, n, |i, j| times(of_one[(i, j)]));
            // Subnormal numbers have fewer digits.
            let lost = if power < -1000 { 1e10 } else { 1.0 };
            let back = |values: Vec<f64>| values.iter().map(|v| v / times(1.0)).collect::<Vec<f64>>();
            let (values, vectors) = symmetric_eigen(&x).unwrap();
            assert_orthonormal(&vectors);
            let values = back(values);
            assert_values(lost * ROUNDING, &values, expected);
            let again = defined(&scaled(&vectors, &values), &vectors.transpose().to_owned());
            assert_within(lost * ROUNDING, &again, &of_one);
            assert_values(lost * ROUNDING, &back(symmetric_eigenvalues(&x).unwrap()), expected);
        }
    }
}

#[test]
fn entries_whose_squares_vanish_turn_no_vector() {
    for n in [2, 3, 10, 40] {
        for tiny in [1e-140, 1e-150, 1e-158, 1e-162, 1e-170, 1e-300, 5e-324] {
            let x = Matrix::from_fn(n, n, |i, j| if i == j { 1.0 + i as f64 } else { tiny });
            let expected: Vec<f64> = (1..=n).map(|value| value as f64).collect();
            assert_eigen(&x, &symmetric_eigen(&x).unwrap(), &expected);
            assert_eigen(&x, &reference::symmetric_eigen(&x).unwrap(), &expected);
        }
    }
}

#[test]
fn what_is_not_finite_is_an_error_or_stays_so() {
    for n in sizes() {
        let x = Matrix::from_fn(n, n, |i, j| if i == j { n as f64 } else { 0.5 });
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for (i, j) in [(0, 0), (n / 2, n / 2), (n - 1, n - 1), (n - 1, 0), (n / 2, n / 3)] {
                let mut bad_x = x.clone();
                (bad_x[(i, j)], bad_x[(j, i)]) = (bad, bad);
                let lower = Matrix::from_fn(n, n, |i, j| if i >= j { bad_x[(i, j)] } else { 0.0 });
                let any_left = |found: &Matrix| found.entries().iter().any(|x| !x.is_finite());
                for reverse_cholesky in [reverse_cholesky, reference::reverse_cholesky] {
                    assert!(reverse_cholesky(&bad_x).as_ref().map_or(true, any_left), "{n} {i} {j} {bad}");
                }
                for inverse in [inverse, reference::inverse] {
                    inverse(&bad_x);
                }
                for lower_inverse in [lower_inverse, reference::lower_inverse] {
                    lower_inverse(&lower);
                }
                let none = Error::NoConvergence(n);
                assert_eq!(symmetric_eigen(&bad_x).unwrap_err(), none);
                assert_eq!(symmetric_eigenvalues(&bad_x).unwrap_err(), none);
                assert!(
                    any_left(&product(&bad_x, &x))
                        && any_left(&reference::product((&bad_x).into(), (&x).into()))
                );
            }
        }
    }
}

#[test]
fn matrices_of_no_rows_are_taken() {
    let none = Matrix::zeros(0, 0);
    for inverse in [lower_inverse, reference::lower_inverse, inverse, reference::inverse] {
        assert_eq!(inverse(&none), none);
    }
    assert_eq!(symmetric_eigen(&none), Ok((vec![], none.clone())));
    assert_eq!(reference::symmetric_eigen(&none), Ok((vec![], none.clone())));
    assert_eq!(symmetric_eigenvalues(&none), Ok(vec![]));
    assert_eq!(reference::symmetric_eigenvalues(&none), Ok(vec![]));
    assert_eq!(reverse_cholesky(&none), Ok(none.clone()));
    assert_eq!(reference::reverse_cholesky(&none), Ok(none));
}

#[test]
fn shapes_that_do_not_fit_panic() {
    let (tall, wide) = (Matrix::identity(3, 2), Matrix::identity(2, 3));
    let panics = |run: &dyn Fn()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err();
    for x in [&tall, &wide] {
        assert!(panics(&|| drop(reverse_cholesky(x))));
        assert!(panics(&|| drop(lower_inverse(x))));
        assert!(panics(&|| drop(inverse(x))));
        assert!(panics(&|| drop(symmetric_eigen(x))));
        assert!(panics(&|| drop(symmetric_eigenvalues(x))));
        assert!(panics(&|| drop(product(x, x))));
        assert!(panics(&|| drop(reference::product(x.into(), x.into()))));
    }
}
