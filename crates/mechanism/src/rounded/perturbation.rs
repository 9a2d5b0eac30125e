//! An upper bound on ||C D||, where rounding changes a sum of seeds N Z, with N C = I, to (N + D) Z.
//!
//! ||C D||^2 is at most the largest row sum times the largest column sum of |C| |D|. These sums take O(n^2)
//! time, and O(n log n) for trees.

use std::collections::BTreeMap;

use antinoise_input::{InvalidParameter, largest};
use antinoise_linear::Matrix;

use super::precision::{Precision, ULP};
use crate::circulant::Convolution;
use crate::numeric::limits::MAX_STORED_DENSE;
use crate::recursion::one_seed::is_factored;
use crate::tree::smooth::SmoothLabels;
use crate::{Encoder, Recursion, Result};

type Row = Vec<(usize, f64)>;

/// Returns an upper bound on ||C D||, where D is the rounding error of N. The bound covers the computation of
/// N in double precision; for streams on a grid, also that of the factor of N with one seed per step; and for
/// plain streams, the rounding of N to single precision.
pub(super) fn lost_to_rounding(
    encoder: &Encoder,
    recursion: &Recursion,
    steps: usize,
    precision: Precision,
) -> Result<f64> {
    // All runs between restarts are equal, except that the last may be shorter.
    if let (Encoder::BlockDiagonal { block, period, .. }, Recursion::Restarted { inner, .. }) =
        (encoder, recursion)
    {
        return lost_to_rounding(block, inner, *period, precision);
    }
    if let Recursion::Circulant { root } = recursion {
        return lost_to_transforms(root, steps, precision);
    }
    let noise = rows_of(recursion, steps);
    let sums = EncoderMagnitudes::of(encoder);
    // Number of roundings of an entry of N. For trees, an entry is a sum of a few products of at most one
    // factor per height; otherwise it comes from a matrix inverse or factor, which sums products over rows
    // and seeds.
    let of_noise = sums.bound(&noise).max(1.0);
    let operations = match encoder {
        Encoder::Tree { weights, .. } if weights.iter().any(|&w| w != 1.0) => {
            32.0 * (8 + weights.len()) as f64
        }
        _ if sums.is_tree() => 16.0,
        _ => (2 * steps + recursion.seeds(steps) + 16) as f64,
    };
    let computed = operations * ULP * if sums.is_tree() { of_noise } else { of_noise * of_noise };
    Ok(match precision {
        Precision::Single => {
            let single = rows_of(&recursion.in_single_precision(), steps);
            let moved = single.iter().zip(&noise).map(|(single, row)| {
                single.iter().zip(row).map(|(&(seed, single), (_, weight))| (seed, single - weight)).collect()
            });
            computed + sums.bound(&moved.collect::<Vec<Row>>())
        }
        // The computed factor satisfies L L^T = N N^T + E, and ||L^-1 G||^2 <= ||C G||^2 / (1 - ||E||
        // ||C||^2).
        Precision::Double if is_factored(recursion, steps) => {
            let lower = rows_of(&recursion.with_one_seed_per_step(steps)?, steps);
            let products = product_bound(&noise, recursion.seeds(steps)) + product_bound(&lower, steps);
            computed + operations * ULP * products * sums.norm_squared()
        }
        Precision::Double => 2.0 * computed,
    })
}

/// Returns the bound for noise that is computed by Fourier transforms of root.len() numbers in double
/// precision. A transform has an error of a few units in the last place for each halving of its length,
/// differences double the error, and ||C||^2 is at most the squared largest magnitude of the spectrum.
fn lost_to_transforms(root: &[f64], steps: usize, precision: Precision) -> Result<f64> {
    if precision == Precision::Double {
        let must_be = format!("at most {MAX_STORED_DENSE} for noise of this strategy on a grid");
        return Err(InvalidParameter::new("steps", steps, must_be).into());
    }
    let halvings = (root.len() as f64).log2() + 2.0;
    Ok(2.0 * 16.0 * halvings * ULP * Convolution::new(root).largest_magnitude().powi(2))
}

/// Returns the rows of N.
fn rows_of(recursion: &Recursion, steps: usize) -> Vec<Row> {
    match recursion {
        Recursion::SeedCombination { rows } => rows[..steps].to_vec(),
        Recursion::Scaled { inner, factors } => {
            let mut rows = rows_of(inner, steps);
            for (row, factor) in rows.iter_mut().zip(factors) {
                row.iter_mut().for_each(|(_, weight)| *weight *= factor);
            }
            rows
        }
        Recursion::Restarted { inner, period } => {
            let run = rows_of(inner, steps.min(*period));
            let seeds = inner.seeds(run.len());
            let row = |t: usize| {
                let first = t / period * seeds;
                run[t % period].iter().map(|&(seed, weight)| (first + seed, weight)).collect()
            };
            (0..steps).map(row).collect()
        }
        Recursion::Independent
        | Recursion::MovingAverage { .. }
        | Recursion::AutoRegressive { .. }
        | Recursion::Blt { .. }
        | Recursion::VaryingBlt { .. }
        | Recursion::Rational { .. }
        | Recursion::Banded { .. }
        | Recursion::Circulant { .. } => {
            unreachable!("only listed sums of seeds are bounded by a perturbation")
        }
    }
}

/// Returns the largest row sum of |X| |X|^T, an upper bound on its norm, for the matrix X with these rows.
fn product_bound(rows: &[Row], seeds: usize) -> f64 {
    let mut columns = vec![0.0; seeds];
    rows.iter().flatten().for_each(|&(seed, weight)| columns[seed] += weight.abs());
    let row = |row: &Row| row.iter().map(|&(seed, weight)| weight.abs() * columns[seed]).sum();
    largest(rows.iter().map(row))
}

/// The matrix |C| of magnitudes, in the form in which its sums are computed.
struct EncoderMagnitudes {
    form: MagnitudeForm,
    /// The sum of each column of |C|, or an upper bound.
    columns: Vec<f64>,
}

enum MagnitudeForm {
    /// The nodes of a tree; the largest weight of a node.
    Tree(f64),
    Matrix(Matrix),
}

impl EncoderMagnitudes {
    fn of(encoder: &Encoder) -> Self {
        let of_tree = |steps: usize, most: f64, above_a_step: f64| Self {
            form: MagnitudeForm::Tree(most),
            columns: vec![above_a_step; steps],
        };
        match encoder {
            Encoder::Tree { steps, weights } => {
                of_tree(*steps, largest(weights.iter().copied()), weights.iter().sum())
            }
            Encoder::SmoothTree { steps } => {
                of_tree(*steps, 1.0, SmoothLabels::new(*steps).most_above() as f64)
            }
            Encoder::Toeplitz { .. }
            | Encoder::Scaled { .. }
            | Encoder::Banded { .. }
            | Encoder::Dense(_)
            | Encoder::Circulant { .. }
            | Encoder::LeadingColumns { .. }
            | Encoder::CholeskyOf(_)
            | Encoder::BlockDiagonal { .. } => {
                let c = encoder.to_dense();
                let columns = (0..c.ncols()).map(|j| c.column(j).iter().map(|x| x.abs()).sum()).collect();
                Self { form: MagnitudeForm::Matrix(c), columns }
            }
        }
    }

    fn is_tree(&self) -> bool {
        matches!(self.form, MagnitudeForm::Tree(_))
    }

    /// Returns an upper bound on the largest entry of |C| x, for x >= 0.
    fn largest(&self, x: &[f64]) -> f64 {
        match &self.form {
            // The root may be above all steps.
            MagnitudeForm::Tree(most) => most * x.iter().sum::<f64>(),
            MagnitudeForm::Matrix(c) => {
                let mut sums = vec![0.0; c.nrows()];
                for (j, x) in x.iter().enumerate() {
                    sums.iter_mut().zip(c.column(j)).for_each(|(sum, c)| *sum += c.abs() * x);
                }
                largest(sums)
            }
        }
    }

    /// Returns an upper bound on ||C D||, for the D with these rows.
    fn bound(&self, rows: &[Row]) -> f64 {
        let row_sums: Vec<f64> = rows.iter().map(|row| row.iter().map(|(_, x)| x.abs()).sum()).collect();
        let mut column_sums = BTreeMap::new();
        for (row, above) in rows.iter().zip(&self.columns) {
            row.iter().for_each(|&(seed, x)| *column_sums.entry(seed).or_insert(0.0) += above * x.abs());
        }
        let column = largest(column_sums.into_values());
        (self.largest(&row_sums) * column).sqrt() * (1.0 + rows.len() as f64 * ULP)
    }

    /// Returns an upper bound on ||C||^2.
    fn norm_squared(&self) -> f64 {
        self.largest(&vec![1.0; self.columns.len()]) * largest(self.columns.iter().copied())
    }
}
