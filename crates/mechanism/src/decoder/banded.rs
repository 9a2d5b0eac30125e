//! Squared norms of the rows of B = A C^-1 for banded C, and their derivatives in C, in O(n width^2) instead
//! of the O(n^2 bands) of an evaluation by columns.
//!
//! 1. Many workloads are quotients A = N K^-1 of Toeplitz matrices with few bands. So B = N D^-1, where D = C
//!    K has few bands too.
//! 2. With E = D^-1, the entries of S = E E^T near the diagonal follow from D E = 1, row by row:
//!    D_tt S_ts = \[s = t\] / D_tt - sum over tau >= 1 of D_{t, t-tau} S_{t-tau, s}, for s <= t.
//! 3. Row t of B is a combination of a few rows of E, up to row t, with the coefficients of N. So its squared
//!    norm is a short sum over S.
//! 4. The same operations in reverse order give the derivatives. Nothing is approximated.

use crate::Workload;
use crate::numeric::vector::{add_scaled, dot};

/// How many operations of the evaluation by columns take the time of one operation of this recursion.
const COLUMNS_FASTER: usize = 2;

/// The recursion for one workload N K^-1 and any C with `bands` bands.
pub(crate) struct BandedErrors {
    numerator: Vec<f64>,
    denominator: Vec<f64>,
    steps: usize,
    bands: usize,
    /// Number of entries of each row of S that are kept, from the diagonal to the left.
    width: usize,
}

/// The bands of D and S, row by row: entry (t, t + 1 - width + j) is at index t width + j.
pub(crate) struct Covariance<'a> {
    of: &'a BandedErrors,
    d: Vec<f64>,
    s: Vec<f64>,
}

impl BandedErrors {
    /// Returns `None` if A is not a quotient of matrices with few bands, or if the evaluation by columns is
    /// faster.
    pub(crate) fn new(workload: &Workload, steps: usize, bands: usize) -> Option<Self> {
        let (numerator, denominator) = workload.rational(steps)?;
        let width = (bands + denominator.len() - 1).max(numerator.len());
        // The evaluation by columns uses vector instructions and all threads.
        let worth = width.saturating_mul(width) <= steps.saturating_mul(bands) / COLUMNS_FASTER;
        worth.then_some(Self { numerator, denominator, steps, bands, width })
    }

    /// Number of operations of an evaluation.
    pub(crate) fn work(&self) -> usize {
        self.steps.saturating_mul(self.width * self.width)
    }

    /// Computes D and S; `rows` holds C\[t, t - tau\] at index t bands + tau.
    pub(crate) fn covariance(&self, rows: &[f64]) -> Covariance<'_> {
        let w = self.width;
        let d = self.times_denominator(rows);
        let mut s = vec![0.0; self.steps * w];
        for t in 0..self.steps {
            let reach = t.min(w - 1);
            let (before, here) = s.split_at_mut(t * w);
            let (row, out) = (&d[(t + 1) * w - 1 - reach..(t + 1) * w], &mut here[w - 1 - reach..w]);
            let (past, diagonal) = (&row[..reach], row[reach]);
            for (i, segment) in window(before, w, t, reach).enumerate() {
                out[i] += dot(segment, &past[..=i]);
                add_scaled(&mut out[..i], past[i], segment);
            }
            out[..reach].iter_mut().for_each(|x| *x /= -diagonal);
            out[reach] = (1.0 / diagonal - dot(past, &out[..reach])) / diagonal;
        }
        Covariance { of: self, d, s }
    }

    fn times_denominator(&self, rows: &[f64]) -> Vec<f64> {
        let (w, bands) = (self.width, self.bands);
        let mut d = vec![0.0; self.steps * w];
        for (d, c) in d.chunks_exact_mut(w).zip(rows.chunks_exact(bands)) {
            for (tau, c) in c.iter().enumerate() {
                self.denominator.iter().enumerate().for_each(|(k, factor)| d[w - 1 - tau - k] += c * factor);
            }
        }
        d
    }

    /// Maps `dd`, the derivative in D, to the derivative in C.
    fn through_denominator(&self, dd: &[f64]) -> Vec<f64> {
        let (w, bands) = (self.width, self.bands);
        let mut dc = vec![0.0; self.steps * bands];
        for (t, (dc, dd)) in dc.chunks_exact_mut(bands).zip(dd.chunks_exact(w)).enumerate() {
            for (tau, dc) in dc.iter_mut().enumerate().take(t + 1) {
                *dc = self.denominator.iter().enumerate().map(|(k, x)| x * dd[w - 1 - tau - k]).sum();
            }
        }
        dc
    }
}

/// The `reach` rows before row `t`, each from column t - `reach` to its diagonal.
fn window(before: &[f64], w: usize, t: usize, reach: usize) -> impl Iterator<Item = &[f64]> {
    (0..reach).map(move |i| &before[(t - reach + i + 1) * w - i - 1..][..=i])
}

impl Covariance<'_> {
    /// Returns the squared norm of each row of B.
    pub(crate) fn rows(&self) -> Vec<f64> {
        let mut squared = vec![0.0; self.of.steps];
        for (t, sum) in squared.iter_mut().enumerate() {
            self.products(t, |at, factor| *sum += factor * self.s[at]);
        }
        squared
    }

    /// The squared norm of row t of B is a weighted sum of entries S_{t-i, t-j}, i >= j: calls `each` with
    /// the index and the weight of each entry.
    fn products(&self, t: usize, mut each: impl FnMut(usize, f64)) {
        let (w, numerator) = (self.of.width, &self.of.numerator);
        for (i, left) in numerator.iter().enumerate().take(t + 1) {
            each((t - i + 1) * w - 1, left * left);
            for (j, right) in numerator[..i].iter().enumerate() {
                each((t - j + 1) * w - 1 - (i - j), 2.0 * left * right);
            }
        }
    }

    /// Returns the derivative in C of the weighted sum of the squared row norms, in the layout of `rows` in
    /// [`BandedErrors::covariance`].
    pub(crate) fn gradient(&self, weights: &[f64]) -> Vec<f64> {
        let w = self.of.width;
        let mut adjoint = vec![0.0; self.s.len()];
        for (t, weight) in weights.iter().enumerate() {
            self.products(t, |at, factor| adjoint[at] += weight * factor);
        }
        let mut dd = vec![0.0; self.s.len()];
        for t in (0..self.of.steps).rev() {
            let reach = t.min(w - 1);
            let end = (t + 1) * w;
            let (before, here) = adjoint.split_at_mut(t * w);
            let (s, d) = (&self.s[end - 1 - reach..end], &self.d[end - 1 - reach..end]);
            let (past, diagonal) = (&d[..reach], d[reach]);
            let (mu, g) = (&mut here[w - 1 - reach..w], &mut dd[end - 1 - reach..end]);
            // S_tt comes first, since the forward pass computes it last, from the rest of its row.
            let last = mu[reach] / diagonal;
            add_scaled(&mut mu[..reach], -last, past);
            add_scaled(g, -last, s);
            g[reach] -= last / (diagonal * diagonal);
            let mu = &mut mu[..reach];
            mu.iter_mut().for_each(|x| *x /= diagonal);
            g[reach] -= dot(mu, s);
            for (i, segment) in window(&self.s, w, t, reach).enumerate() {
                g[i] -= dot(segment, &mu[..=i]);
                add_scaled(&mut g[..i], -mu[i], segment);
                let lam = &mut before[(t - reach + i + 1) * w - i - 1..][..=i];
                for ((x, past_k), mu_k) in lam[..i].iter_mut().zip(past).zip(&*mu) {
                    *x -= past[i] * mu_k + mu[i] * past_k;
                }
                lam[i] -= past[i] * mu[i];
            }
        }
        self.of.through_denominator(&dd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Recursion;
    use crate::decoder::rows_by_columns;

    #[test]
    fn rows_are_those_of_the_columns() {
        let (steps, bands) = (90, 5);
        let rows: Vec<f64> = (0..steps * bands)
            .map(|at| 1.0 / (1.0 + (at % bands) as f64) + 0.1 * (at as f64).sin())
            .collect();
        for text in ["prefix", "momentum:0.6,0.1", "nesterov:0.5", "decay:0.7", "window:9", "window:2"] {
            let workload: Workload = text.parse().unwrap();
            let found = BandedErrors::new(&workload, steps, bands).unwrap().covariance(&rows).rows();
            let recursion = Recursion::Banded { bands, rows: rows.clone() };
            let known = rows_by_columns(&recursion, steps, &workload).unwrap();
            let off = found.iter().zip(&known).map(|(x, y)| (x / y - 1.0).abs()).fold(0.0, f64::max);
            assert!(off < 1e-12, "{text}: {off}");
        }
        assert!(BandedErrors::new(&"cooldown:5,0.2".parse().unwrap(), steps, bands).is_none());
        assert!(BandedErrors::new(&"window:80".parse().unwrap(), steps, bands).is_none());
    }
}
