//! The effect of rounding a sum of seeds N Z, with N C = I, to (N + D) Z: a bound on ||C D||.
//!
//! ||C D||^2 is at most the largest row sum times the largest column sum of magnitudes, and the magnitudes are at most those
//! of |C| |D|. The sums take O(n^2) time, and O(n log n) for trees.

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

/// Returns a bound on ||C D||, where D is the rounding error of the rows of N: of rounding them to single
/// precision, or of computing them (and, on a grid, their form with one seed per step) in double precision.
pub(super) fn lost_to_rounding(
    encoder: &Encoder,
    recursion: &Recursion,
    steps: usize,
    precision: Precision,
) -> Result<f64> {
    // All runs are equal; a truncated one has fewer rows.
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
    // Entries for trees are sums of a few numbers, weighted by products of up to one factor per height.
    // Inverses and factors sum products over rows and seeds; the error of a factor of C^T C counts once from
    // either side.
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
        // L L^T = N N^T + E, and C' = L^-1 has ||C' G||^2 <= ||C G||^2 / (1 - ||E|| ||C||^2).
        Precision::Double if is_factored(recursion, steps) => {
            let lower = rows_of(&recursion.with_one_seed_per_step(steps)?, steps);
            let products = product_bound(&noise, recursion.seeds(steps)) + product_bound(&lower, steps);
            computed + operations * ULP * products * sums.norm_squared()
        }
        Precision::Double => 2.0 * computed,
    })
}

/// Returns the bound for noise from transforms of root.len() numbers in double precision. A transform loses a
/// few units in the last place for each halving of its length, differences double that, and ||C||^2 is the
/// largest magnitude of the spectrum.
fn lost_to_transforms(root: &[f64], steps: usize, precision: Precision) -> Result<f64> {
    if precision == Precision::Double {
        let must_be = format!("at most {MAX_STORED_DENSE}, where noise of this strategy is added on a grid");
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
        | Recursion::Banded { .. }
        | Recursion::Circulant { .. } => {
            unreachable!("only listed sums of seeds are bounded by a perturbation")
        }
    }
}

/// Returns the largest row sum of |X| |X|^T, which bounds its norm.
fn product_bound(rows: &[Row], seeds: usize) -> f64 {
    let mut columns = vec![0.0; seeds];
    rows.iter().flatten().for_each(|&(seed, weight)| columns[seed] += weight.abs());
    let row = |row: &Row| row.iter().map(|&(seed, weight)| weight.abs() * columns[seed]).sum();
    largest(rows.iter().map(row))
}

/// |C|, by the sums that bounds need.
struct EncoderMagnitudes {
    form: MagnitudeForm,
    /// Sum of each column.
    columns: Vec<f64>,
}

enum MagnitudeForm {
    /// The nodes of a tree, by the largest weight of a node.
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
            // A node is above at most all steps.
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

    /// Returns a bound on ||C D|| for D by rows.
    fn bound(&self, rows: &[Row]) -> f64 {
        let row_sums: Vec<f64> = rows.iter().map(|row| row.iter().map(|(_, x)| x.abs()).sum()).collect();
        let mut column_sums = BTreeMap::new();
        for (row, above) in rows.iter().zip(&self.columns) {
            row.iter().for_each(|&(seed, x)| *column_sums.entry(seed).or_insert(0.0) += above * x.abs());
        }
        let column = largest(column_sums.into_values());
        (self.largest(&row_sums) * column).sqrt() * (1.0 + rows.len() as f64 * ULP)
    }

    /// Returns a bound on ||C||^2.
    fn norm_squared(&self) -> f64 {
        self.largest(&vec![1.0; self.columns.len()]) * largest(self.columns.iter().copied())
    }
}
