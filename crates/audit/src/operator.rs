//! C as a linear map, and the map that whitens correlated noise.
//!
//! For square C the whitening map W is C itself. A tree or a circulant has more rows than columns: its noise
//! N Z, with N C = I, has covariance N N^T, and W with W^T W = (N N^T)^-1 whitens it. W loses no information
//! about N Z, and |W g| <= |C g|, so that an attack on W is an attack on the mechanism. All these maps are
//! lower triangular, so that their upper-left blocks whiten the noise of the first steps.

use antinoise_linear::{Matrix, inverse, product, reverse_cholesky};
use antinoise_mechanism::toeplitz::multiply;
use antinoise_mechanism::{Encoder, Recursion};

use crate::Error;

/// Maximum number of steps for a strategy that has to be written as an explicit matrix with more rows than
/// columns.
pub(crate) const MOST_RECTANGULAR: usize = 1024;

/// A linear map of vectors with one entry per step. For shorter vectors, its upper-left block is used.
#[derive(Debug)]
pub(crate) enum Operator {
    /// Toeplitz, given by the first column.
    Toeplitz(Vec<f64>),
    /// T diag(scales), where T is Toeplitz.
    Scaled { coefficients: Vec<f64>, scales: Vec<f64> },
    /// Banded; entry (t, t - tau) is at index t * bands + tau.
    Banded { bands: usize, rows: Vec<f64> },
    /// Square and lower triangular, or with more rows than columns.
    Dense(Matrix),
    /// Block diagonal: `block` repeated every `period` steps.
    Stamped { block: Box<Operator>, period: usize },
}

impl Operator {
    /// Returns the map that whitens the noise of `recursion`, for the strategy `encoder`, over `steps` steps.
    ///
    /// # Errors
    /// If the noise has a singular covariance.
    pub(crate) fn whitening(encoder: &Encoder, recursion: &Recursion, steps: usize) -> Result<Self, Error> {
        if let (Encoder::BlockDiagonal { block, period, .. }, Recursion::Restarted { inner, period: same }) =
            (encoder, recursion)
            && period == same
        {
            let block = Box::new(Self::whitening(block, inner, steps.min(*period))?);
            return Ok(Self::Stamped { block, period: *period });
        }
        match Self::of(encoder, steps) {
            Self::Dense(c) if !is_lower_square(&c) => {
                let noise = noise_matrix(recursion, steps);
                let covariance = product(&noise, noise.transpose());
                let factor = reverse_cholesky(&inverse(&covariance));
                factor.map(Self::Dense).map_err(|error| Error::Singular(error.to_string()))
            }
            square => Ok(square),
        }
    }

    /// Returns the map of the first `steps` columns of `encoder`.
    pub(crate) fn of(encoder: &Encoder, steps: usize) -> Self {
        match encoder {
            Encoder::Toeplitz { coefficients, .. } => Self::Toeplitz(coefficients.clone()),
            Encoder::Scaled { coefficients, scales } => {
                Self::Scaled { coefficients: coefficients.clone(), scales: scales.clone() }
            }
            Encoder::Banded { bands, rows } => Self::Banded { bands: *bands, rows: rows.clone() },
            Encoder::BlockDiagonal { block, period, .. } => {
                Self::Stamped { block: Box::new(Self::of(block, steps.min(*period))), period: *period }
            }
            other => {
                let c = other.to_dense();
                let rows = if c.nrows() == c.ncols() { steps } else { c.nrows() };
                Self::Dense(Matrix::from_fn(rows, steps, |i, j| c[(i, j)]))
            }
        }
    }

    /// Returns C x.
    pub(crate) fn apply(&self, x: &[f64]) -> Vec<f64> {
        let n = x.len();
        match self {
            Self::Toeplitz(c) => multiply(c, x, n),
            Self::Scaled { coefficients, scales } => {
                multiply(coefficients, &x.iter().zip(scales).map(|(x, s)| x * s).collect::<Vec<_>>(), n)
            }
            Self::Banded { bands, rows } => (0..n)
                .map(|t| (0..=t.min(bands - 1)).map(|tau| rows[t * bands + tau] * x[t - tau]).sum())
                .collect(),
            Self::Dense(c) => {
                let mut y = vec![0.0; if is_square(c) { n } else { c.nrows() }];
                for (j, &x) in x.iter().enumerate().filter(|(_, x)| **x != 0.0) {
                    let column = c.column(j);
                    y.iter_mut().zip(column).for_each(|(y, c)| *y += c * x);
                }
                y
            }
            Self::Stamped { block, period } => x.chunks(*period).flat_map(|run| block.apply(run)).collect(),
        }
    }

    /// Returns C^T y, where y = C x for an x with `steps` entries.
    pub(crate) fn adjoint(&self, y: &[f64], steps: usize) -> Vec<f64> {
        match self {
            Self::Toeplitz(c) => {
                let mut x = multiply(c, &y.iter().rev().copied().collect::<Vec<_>>(), steps);
                x.reverse();
                x
            }
            Self::Scaled { coefficients, scales } => {
                let mut x: Vec<f64> = y.iter().rev().copied().collect();
                x = multiply(coefficients, &x, steps);
                x.iter().rev().zip(scales).map(|(x, s)| x * s).collect()
            }
            Self::Banded { bands, rows } => (0..steps)
                .map(|j| (j..steps.min(j + bands)).map(|t| rows[t * bands + t - j] * y[t]).sum())
                .collect(),
            Self::Dense(c) => {
                (0..steps).map(|j| c.column(j).iter().zip(y).map(|(c, y)| c * y).sum()).collect()
            }
            Self::Stamped { block, period } => {
                let mut rest = y;
                let mut x = Vec::with_capacity(steps);
                while x.len() < steps {
                    let run = (*period).min(steps - x.len());
                    let (head, tail) = rest.split_at(block.rows(run).min(rest.len()));
                    x.extend(block.adjoint(head, run));
                    rest = tail;
                }
                x
            }
        }
    }

    /// Number of entries of C x for an x with `steps` entries.
    fn rows(&self, steps: usize) -> usize {
        match self {
            Self::Dense(c) if !is_square(c) => c.nrows(),
            Self::Stamped { block, period } => {
                let rest = steps % period;
                steps / period * block.rows(*period) + if rest > 0 { block.rows(rest) } else { 0 }
            }
            _ => steps,
        }
    }
}

/// Whether C has more rows than columns, so that whitening the noise needs an explicit matrix.
pub(crate) fn is_rectangular(encoder: &Encoder) -> bool {
    match encoder {
        Encoder::Toeplitz { .. }
        | Encoder::Scaled { .. }
        | Encoder::Banded { .. }
        | Encoder::CholeskyOf(_) => false,
        Encoder::Dense(c) => !is_square(c),
        Encoder::BlockDiagonal { block, .. } => is_rectangular(block),
        Encoder::Tree { .. }
        | Encoder::SmoothTree { .. }
        | Encoder::Circulant { .. }
        | Encoder::LeadingColumns { .. } => true,
    }
}

fn is_square(c: &Matrix) -> bool {
    c.nrows() == c.ncols()
}

fn is_lower_square(c: &Matrix) -> bool {
    is_square(c) && (0..c.ncols()).all(|j| (0..j).all(|i| c[(i, j)] == 0.0))
}

/// The noise matrix N (steps x seeds).
fn noise_matrix(recursion: &Recursion, steps: usize) -> Matrix {
    let seeds = recursion.seeds(steps);
    match recursion {
        Recursion::SeedCombination { rows } => {
            let mut noise = Matrix::zeros(steps, seeds);
            for (t, row) in rows[..steps].iter().enumerate() {
                row.iter().for_each(|&(seed, weight)| noise[(t, seed)] += weight);
            }
            noise
        }
        Recursion::Scaled { inner, factors } => {
            let inner = noise_matrix(inner, steps);
            Matrix::from_fn(steps, seeds, |t, seed| factors[t] * inner[(t, seed)])
        }
        _ => {
            let column = |seed: usize| {
                let unit: Vec<f64> = (0..seeds).map(|s| f64::from(u8::from(s == seed))).collect();
                recursion.apply(steps, &unit)
            };
            let columns: Vec<Vec<f64>> = (0..seeds).map(column).collect();
            Matrix::from_fn(steps, seeds, |t, seed| columns[seed][t])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cases() -> Vec<(Encoder, usize)> {
        let banded = Encoder::Banded { bands: 2, rows: (0..14).map(|i| 1.0 / (1.0 + i as f64)).collect() };
        let tree = Encoder::Tree { steps: 5, weights: vec![1.0; 4] };
        let stamp =
            |block: Encoder, period, steps| Encoder::BlockDiagonal { block: Box::new(block), period, steps };
        vec![
            (Encoder::Toeplitz { steps: 7, coefficients: vec![1.0, 0.5, -0.2] }, 7),
            (Encoder::Scaled { coefficients: vec![1.0, 0.5], scales: vec![1.0, 2.0, 3.0] }, 3),
            (banded.clone(), 7),
            (tree.clone(), 5),
            (Encoder::CholeskyOf(Box::new(tree.clone())), 5),
            (stamp(banded, 7, 10), 10),
        ]
    }

    #[test]
    fn products_are_those_of_the_dense_matrix() {
        for (encoder, n) in cases() {
            let (c, operator) = (encoder.to_dense(), Operator::of(&encoder, n));
            let x: Vec<f64> = (0..n).map(|t| (1.0 + t as f64).sin()).collect();
            let y = operator.apply(&x);
            let z: Vec<f64> = (0..y.len()).map(|i| (2.0 + i as f64).cos()).collect();
            for (i, y) in y.iter().enumerate() {
                let want: f64 = (0..n).map(|j| c[(i, j)] * x[j]).sum();
                assert!((y - want).abs() < 1e-12, "{encoder:?}: row {i}: {y} against {want}");
            }
            for (j, x) in operator.adjoint(&z, n).iter().enumerate() {
                let want: f64 = (0..y.len()).map(|i| c[(i, j)] * z[i]).sum();
                assert!((x - want).abs() < 1e-12, "{encoder:?}: column {j}: {x} against {want}");
            }
        }
    }
}
