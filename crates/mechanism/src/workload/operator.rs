//! y = A x without writing A out.

use super::Workload;
use crate::{Result, toeplitz};

/// A over n steps, ready to be applied to columns.
pub(crate) enum Operator {
    /// Toeplitz A = numerator / denominator: O(n) a column for the few terms that workloads have.
    Rational { numerator: Vec<f64>, denominator: Vec<f64> },
    /// Toeplitz A by its first column: O(n log n).
    Series(Vec<f64>),
    /// A_pre diag(eta): O(n).
    Schedule(Vec<f64>),
    /// Rows of the lower triangle: O(n^2).
    Rows(Vec<Vec<f64>>),
}

impl Operator {
    pub(crate) fn new(workload: &Workload, steps: usize) -> Result<Self> {
        workload.check_steps(steps)?;
        Ok(match (workload, workload.rational(steps), workload.rates(steps)) {
            (_, Some((numerator, denominator)), _) => Self::Rational { numerator, denominator },
            (_, _, Some(rates)) => Self::Schedule(rates),
            (Workload::Matrix { rows }, _, _) => Self::Rows(rows.clone()),
            _ => Self::Series(workload.coefficients(steps)?.expect("what is left is Toeplitz")),
        })
    }

    /// A x, n = x.len().
    pub(crate) fn apply(&self, x: &[f64]) -> Vec<f64> {
        let n = x.len();
        match self {
            Self::Rational { numerator, denominator } => {
                let image = toeplitz::multiply(numerator, x, n);
                toeplitz::divide(&image, denominator, n)
            }
            Self::Series(a) => toeplitz::multiply(a, x, n),
            Self::Schedule(rates) => {
                let weighted: Vec<f64> = x.iter().zip(rates).map(|(x, eta)| x * eta).collect();
                toeplitz::divide(&weighted, &[1.0, -1.0], n)
            }
            Self::Rows(rows) => rows.iter().map(|row| toeplitz::dot(row, x)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let rates = cooldown.rates(n).unwrap();
        let rows = (0..n).map(|i| rates[..=i].to_vec()).collect();
        let dense = Operator::new(&Workload::Matrix { rows }, n).unwrap().apply(&x);
        let fast = Operator::new(&cooldown, n).unwrap().apply(&x);
        assert!(fast.iter().zip(&dense).all(|(x, y)| (x - y).abs() < 1e-12));
    }
}
