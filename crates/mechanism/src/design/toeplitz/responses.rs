//! The sum of the squared norms of the rows C^-T u of B, for the responses u of the last iterate and Toeplitz
//! C, with its derivatives in the first column of C or of C^-1.
//!
//! With p the first column of C^-1, entry s of C^-T u is the sum over t of u_{s+t} p_t. So the sum is p^T G
//! p, where G_kl is the sum of u_{s+k} u_{s+l} over s and all responses, and G_{k+1,l+1} = G_kl - sum over
//! responses of u_k u_l. For few steps G is computed once, for more of them each row is.

use crate::numeric::parallel;
use crate::numeric::vector::dot;
use crate::toeplitz::{DIRECT_TERMS, correlate, divide, divide_transposed, invert, multiply};

/// Maximum number of steps n for which the n^2 numbers of G are stored.
const MAX_STEPS_OF_GRAM: usize = 2048;

/// The responses, by their rows and, for few steps, by G.
pub(crate) struct Responses {
    pub(super) rows: Vec<Vec<f64>>,
    gram: Option<Vec<Vec<f64>>>,
}

impl Responses {
    pub(super) fn new(rows: Vec<Vec<f64>>, steps: usize) -> Self {
        let gram = (steps <= MAX_STEPS_OF_GRAM).then(|| gram(&rows, steps));
        Self { rows, gram }
    }

    /// Returns the value and its gradient in every coefficient of `c`.
    pub(super) fn of_column(&self, c: &[f64], steps: usize) -> (f64, Vec<f64>) {
        if self.gram.is_some() {
            let inverse = divide(&[1.0], c, steps);
            let (value, slopes) = self.of_inverse(&inverse, steps);
            let lam = divide_transposed(&slopes, c);
            return (value, correlate(&lam, &inverse, c.len()).into_iter().map(|x| -x).collect());
        }
        // If c is long, 1 / c is computed once for all quotients.
        let inverse = (c.len() > DIRECT_TERMS).then(|| invert(c, steps));
        self.sum(c.len(), |u| {
            let (row, back) = match &inverse {
                Some(inverse) => {
                    let row = correlate(u, inverse, steps);
                    let back = multiply(inverse, &row, steps);
                    (row, back)
                }
                None => {
                    let row = divide_transposed(u, c);
                    let back = divide(&row, c, steps);
                    (row, back)
                }
            };
            let slopes = correlate(&row, &back, c.len());
            (dot(&row, &row), slopes.into_iter().map(|x| -2.0 * x).collect())
        })
    }

    /// Returns the value and its gradient in every coefficient of the first column `p` of C^-1.
    pub(super) fn of_inverse(&self, p: &[f64], steps: usize) -> (f64, Vec<f64>) {
        if let Some(gram) = &self.gram {
            let half: Vec<f64> = gram[..p.len()].iter().map(|row| dot(&row[..p.len()], p)).collect();
            return (dot(&half, p), half.into_iter().map(|x| 2.0 * x).collect());
        }
        self.sum(p.len(), |u| {
            let row = correlate(u, p, steps);
            let slopes = correlate(u, &row, p.len());
            (dot(&row, &row), slopes.into_iter().map(|x| 2.0 * x).collect())
        })
    }

    /// Adds the values and gradients of all responses, in their order.
    fn sum(&self, length: usize, of_response: impl Fn(&[f64]) -> (f64, Vec<f64>) + Sync) -> (f64, Vec<f64>) {
        let terms = self.rows.iter().map(Vec::len).sum();
        let parts = parallel::map(self.rows.len(), terms, |i| of_response(&self.rows[i]));
        let mut total = (0.0, vec![0.0; length]);
        for (squared, slopes) in parts {
            total.0 += squared;
            total.1.iter_mut().zip(slopes).for_each(|(sum, d)| *sum += d);
        }
        total
    }
}

fn gram(rows: &[Vec<f64>], steps: usize) -> Vec<Vec<f64>> {
    let mut gram = vec![vec![0.0; steps]; steps];
    // From the last terms back, so that sums of positive terms are not differences.
    for u in rows {
        for lag in 0..steps {
            let mut sum = 0.0;
            for k in (0..steps - lag).rev() {
                sum += u[k] * u[k + lag];
                gram[k][k + lag] += sum;
            }
        }
    }
    for k in 1..steps {
        let (above, row) = gram.split_at_mut(k);
        (0..k).for_each(|l| row[0][l] = above[l][k]);
    }
    gram
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Workload;
    use crate::testing::{Tolerance, assert_gradient};

    #[test]
    fn the_forms_agree_and_the_gradients_are_the_finite_differences() {
        let (steps, bands) = (150, 140);
        let workload: Workload = "last-iterate:0.6".parse().unwrap();
        let rows = workload.last_iterate(steps).unwrap().unwrap().responses;
        let by_gram = Responses::new(rows, steps);
        let by_rows = Responses { rows: by_gram.rows.clone(), gram: None };
        for length in [1, 5, bands] {
            let c: Vec<f64> = (0..length).map(|t| 1.0 / (1.0 + t as f64)).collect();
            let (found, known) = (by_gram.of_column(&c, steps), by_rows.of_column(&c, steps));
            let (back, straight) = (by_gram.of_inverse(&c, steps), by_rows.of_inverse(&c, steps));
            for (found, known) in [(&found, &known), (&back, &straight)] {
                assert!((found.0 / known.0 - 1.0).abs() < 1e-11, "{length}");
                let size = known.1.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
                assert!(found.1.iter().zip(&known.1).all(|(x, y)| (x - y).abs() < 1e-10 * size), "{length}");
            }
            let f = |c: &[f64]| by_rows.of_column(c, steps).0.ln();
            let slopes: Vec<f64> = known.1.iter().map(|d| d / known.0).collect();
            assert_gradient("column", f, &c, &slopes, 1e-5, Tolerance::absolute(1e-7));
            let f = |p: &[f64]| by_gram.of_inverse(p, steps).0.ln();
            let slopes: Vec<f64> = back.1.iter().map(|d| d / back.0).collect();
            assert_gradient("inverse", f, &c, &slopes, 1e-5, Tolerance::absolute(1e-7));
        }
    }
}
