//! Products A x and A^T x that do not need the entries of A.

use super::definition::Workload;
use super::last_iterate::LastIterate;
use crate::numeric::limits::check_materializable;
use crate::numeric::vector;
use crate::{Result, toeplitz};

/// A workload A over n steps, prepared for products with columns.
pub(crate) enum Operator {
    /// Toeplitz A with the generating function numerator / denominator: O(n) time a column.
    Rational { numerator: Vec<f64>, denominator: Vec<f64> },
    /// Toeplitz A, given by its first column: O(n log n) time a column.
    Series(Vec<f64>),
    /// A learning-rate schedule: A = A_pre diag(eta) M, where M is Toeplitz with coefficients beta^t. O(n)
    /// time a column.
    Schedule { rates: Vec<f64>, momentum: f64 },
    /// Responses of the last iterate and prefix sums: O(n log n) time a column.
    LastIterate(LastIterate),
    /// A given by its rows, which may end at the diagonal: O(n^2) time a column.
    Rows(Vec<Vec<f64>>),
}

impl Operator {
    pub(crate) fn new(workload: &Workload, steps: usize) -> Result<Self> {
        workload.check_steps(steps)?;
        check_materializable(steps)?;
        if let Some(last) = workload.last_iterate_rows(steps)? {
            return Ok(Self::LastIterate(last));
        }
        Ok(match (workload, workload.rational(steps), workload.schedule(steps)) {
            (_, Some((numerator, denominator)), _) => Self::Rational { numerator, denominator },
            (_, _, Some((rates, momentum))) => Self::Schedule { rates, momentum },
            (Workload::Matrix { rows } | Workload::Queries { rows }, _, _) => Self::Rows(rows.clone()),
            _ => Self::Series(workload.coefficients(steps)?.expect("what is left is Toeplitz")),
        })
    }

    /// Returns the number of entries of A x.
    pub(crate) fn queries(&self, steps: usize) -> usize {
        match self {
            Self::Rows(rows) => rows.len(),
            Self::LastIterate(last) => last.responses.len() + steps,
            _ => steps,
        }
    }

    /// Returns A x, where n = x.len().
    pub(crate) fn apply(&self, x: &[f64]) -> Vec<f64> {
        let n = x.len();
        match self {
            Self::Rational { numerator, denominator } => {
                let image = toeplitz::multiply(numerator, x, n);
                toeplitz::divide(&image, denominator, n)
            }
            Self::Series(a) => toeplitz::multiply(a, x, n),
            Self::Schedule { rates, momentum } => {
                let velocity = toeplitz::divide(x, &[1.0, -momentum], n);
                let weighted: Vec<f64> = velocity.iter().zip(rates).map(|(x, eta)| x * eta).collect();
                toeplitz::divide(&weighted, &[1.0, -1.0], n)
            }
            Self::Rows(rows) => rows.iter().map(|row| vector::dot(row, x)).collect(),
            Self::LastIterate(last) => {
                let sums = x.iter().scan(0.0, |sum, x| {
                    *sum += x;
                    Some(*sum * last.prefix_factor)
                });
                last.responses.iter().map(|u| vector::dot(u, x)).chain(sums).collect()
            }
        }
    }
}

/// Products of a square A and of A^T with several columns together, one in each lane.
impl Operator {
    /// Returns A x from row `first` on, for columns x that are 0 before row `first`.
    pub(crate) fn apply_lanes<const L: usize>(&self, x: &[[f64; L]], first: usize) -> Vec<[f64; L]> {
        match self {
            Self::Rational { numerator, denominator } => filter(numerator, denominator, x.iter()),
            Self::Schedule { rates, momentum } => {
                let mut weighted = filter(&[1.0], &[1.0, -momentum], x.iter());
                scale_rows(&mut weighted, &rates[first..]);
                filter(&[1.0], &[1.0, -1.0], weighted.iter())
            }
            _ => by_lane(x, |column| {
                let padded = [&vec![0.0; first], column].concat();
                self.apply(&padded)[first..].to_vec()
            }),
        }
    }

    /// Returns A^T x from row `first` on, which depends only on x from row `first` on.
    pub(crate) fn apply_transposed_lanes<const L: usize>(
        &self,
        x: &[[f64; L]],
        first: usize,
    ) -> Vec<[f64; L]> {
        let backwards = |numerator: &[f64], denominator: &[f64], x: &[[f64; L]]| {
            let mut image = filter(numerator, denominator, x.iter().rev());
            image.reverse();
            image
        };
        match self {
            Self::Rational { numerator, denominator } => backwards(numerator, denominator, x),
            Self::Schedule { rates, momentum } => {
                let mut image = backwards(&[1.0], &[1.0, -1.0], x);
                scale_rows(&mut image, &rates[first..]);
                backwards(&[1.0], &[1.0, -momentum], &image)
            }
            Self::Series(a) => by_lane(x, |column| {
                let reversed: Vec<f64> = column.iter().rev().copied().collect();
                let mut image = toeplitz::multiply(a, &reversed, column.len());
                image.reverse();
                image
            }),
            Self::LastIterate(_) => unreachable!("solvers take its rows one by one"),
            Self::Rows(rows) => by_lane(x, |column| {
                let mut image = vec![0.0; column.len()];
                for (row, &x) in rows[first..].iter().zip(column) {
                    image.iter_mut().zip(&row[first..]).for_each(|(sum, a)| *sum += a * x);
                }
                image
            }),
        }
    }
}

/// Applies the filter numerator / denominator to a sequence, lane by lane; denominator\[0\] = 1.
fn filter<'a, const L: usize>(
    numerator: &[f64],
    denominator: &[f64],
    x: impl ExactSizeIterator<Item = &'a [f64; L]> + Clone,
) -> Vec<[f64; L]> {
    let input: Vec<&[f64; L]> = x.collect();
    let mut out: Vec<[f64; L]> = Vec::with_capacity(input.len());
    for t in 0..input.len() {
        let mut sum = [0.0; L];
        for (a, x) in numerator.iter().zip(input[..=t].iter().rev()) {
            (0..L).for_each(|lane| sum[lane] += a * x[lane]);
        }
        for (a, past) in denominator[1..].iter().zip(out.iter().rev()) {
            (0..L).for_each(|lane| sum[lane] -= a * past[lane]);
        }
        out.push(sum);
    }
    out
}

fn scale_rows<const L: usize>(x: &mut [[f64; L]], factors: &[f64]) {
    x.iter_mut().zip(factors).for_each(|(x, factor)| x.iter_mut().for_each(|x| *x *= factor));
}

fn by_lane<const L: usize>(x: &[[f64; L]], f: impl Fn(&[f64]) -> Vec<f64>) -> Vec<[f64; L]> {
    let mut out = vec![[0.0; L]; x.len()];
    for lane in 0..L {
        let column: Vec<f64> = x.iter().map(|x| x[lane]).collect();
        out.iter_mut().zip(f(&column)).for_each(|(out, x)| out[lane] = x);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_columns_and_the_transpose_is_an_adjoint() {
        let (n, first) = (9, 2);
        let workloads = ["prefix", "momentum:0.5,0.1", "nesterov:0.5", "window:3", "cooldown:3,0.25"]
            .map(|text| text.parse::<Workload>().unwrap());
        let rows: Vec<Vec<f64>> =
            (0..n).map(|i| (0..=i).map(|j| 1.0 + (i * j % 3) as f64).collect()).collect();
        let rates = (0..n).map(|t| 1.0 / (1.0 + t as f64)).collect();
        let schedule = Workload::Schedule { rates, momentum: 0.7 };
        let others =
            [Workload::Toeplitz { coefficients: vec![1.0, 2.0, 0.5] }, Workload::Matrix { rows }, schedule];
        for workload in workloads.iter().chain(&others) {
            let a = Operator::new(workload, n).unwrap();
            let x: Vec<[f64; 2]> = (first..n).map(|t| [t as f64, (t * t % 5) as f64]).collect();
            let y: Vec<[f64; 2]> = (first..n).map(|t| [1.0 / t as f64, 1.0]).collect();
            let (image, pulled) = (a.apply_lanes(&x, first), a.apply_transposed_lanes(&y, first));
            for lane in 0..2 {
                let mut column = vec![0.0; first];
                column.extend(x.iter().map(|x| x[lane]));
                let want = a.apply(&column);
                assert!((first..n).all(|t| (image[t - first][lane] - want[t]).abs() < 1e-12), "{workload}");
                let inner = |p: &[[f64; 2]], q: &[[f64; 2]]| -> f64 {
                    p.iter().zip(q).map(|(p, q)| p[lane] * q[lane]).sum()
                };
                assert!((inner(&image, &y) - inner(&x, &pulled)).abs() < 1e-11, "{workload}");
            }
        }
    }

    #[test]
    fn every_operator_is_its_dense_matrix() {
        let n = 9;
        let x: Vec<f64> = (0..n).map(|t| 1.0 + (t * t % 7) as f64).collect();
        for text in ["prefix", "momentum:0.5,0.1", "nesterov:0.5", "decay:0.5", "window:3"] {
            let workload: Workload = text.parse().unwrap();
            let a = workload.coefficients(n).unwrap().unwrap();
            let series = Workload::Toeplitz { coefficients: a.clone() };
            let rows = (0..n).map(|i| (0..=i).map(|j| a[i - j]).collect()).collect();
            let results = [workload, series, Workload::Matrix { rows }]
                .map(|workload| Operator::new(&workload, n).unwrap().apply(&x));
            for other in &results[1..] {
                assert!(results[0].iter().zip(other).all(|(x, y)| (x - y).abs() < 1e-12), "{text}");
            }
        }
        let cooldown: Workload = "cooldown:3,0.25".parse().unwrap();
        let rates = cooldown.schedule(n).unwrap().0;
        let rows = (0..n).map(|i| rates[..=i].to_vec()).collect();
        let dense = Operator::new(&Workload::Matrix { rows }, n).unwrap().apply(&x);
        let fast = Operator::new(&cooldown, n).unwrap().apply(&x);
        assert!(fast.iter().zip(&dense).all(|(x, y)| (x - y).abs() < 1e-12));
        let sum = |i: usize, j: usize| (j..=i).map(|s| rates[s] * 0.7f64.powi((s - j) as i32)).sum();
        let rows = (0..n).map(|i| (0..=i).map(|j| sum(i, j)).collect()).collect();
        let dense = Operator::new(&Workload::Matrix { rows }, n).unwrap().apply(&x);
        let fast =
            Operator::new(&Workload::Schedule { rates: rates.clone(), momentum: 0.7 }, n).unwrap().apply(&x);
        assert!(fast.iter().zip(&dense).all(|(x, y)| (x - y).abs() < 1e-12));
    }
}
