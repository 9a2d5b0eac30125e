//! The workload in the dual problem, A^T P A, with weights P = diag(p) of the queries.
//!
//! The RMS loss weighs all queries equally. The weights of the max loss are optimised with the other
//! multipliers: p_i = z_i^2 + softness ||z||^2 / n. With softness 0, queries whose weight vanishes leave X
//! undetermined. With positive softness, the dual is that of (max + softness * mean) / (1 + softness) of the
//! squared row norms, which adds at most `softness` to the relative gap.

use std::borrow::Cow;

use antinoise_linear::{Matrix, product};

use super::spectrum::Spectrum;
use crate::problem::Objective;
use crate::workload::Operator;
use crate::{Result, Workload};

/// A divided by its largest entry, in the form that the objective needs.
pub(super) enum Queries {
    /// A and A^T A, for queries of equal weight.
    Rms(Matrix, Matrix),
    /// A itself, and the softness of the queries' weights.
    Max(Matrix, f64),
}

/// Returns the weights p_i = z_i^2 + softness ||z||^2 / n.
pub(super) fn soft_weights(z: &[f64], softness: f64) -> Vec<f64> {
    let least = softness * z.iter().map(|z| z * z).sum::<f64>() / z.len() as f64;
    z.iter().map(|z| z * z + least).collect()
}

/// Maps `d`, the derivative in the weights p, to the derivative in z.
pub(super) fn soft_gradient(z: &[f64], d: &[f64], softness: f64) -> Vec<f64> {
    let shared = softness * d.iter().sum::<f64>() / z.len() as f64;
    z.iter().zip(d).map(|(z, d)| 2.0 * z * (d + shared)).collect()
}

/// Returns A as a matrix, divided by its largest magnitude, and that magnitude.
pub(super) fn materialized(workload: &Workload, steps: usize) -> Result<(Matrix, f64)> {
    let operator = Operator::new(workload, steps)?;
    let mut a = Matrix::zeros(operator.queries(steps), steps);
    let mut unit = vec![0.0; steps];
    for j in 0..steps {
        unit[j] = 1.0;
        a.column_mut(j).copy_from_slice(&operator.apply(&unit));
        unit[j] = 0.0;
    }
    let largest = (0..steps).flat_map(|j| a.column(j)).fold(0.0, |most: f64, x| most.max(x.abs()));
    if largest > 0.0 {
        (0..steps).for_each(|j| a.column_mut(j).iter_mut().for_each(|x| *x /= largest));
    }
    Ok((a, largest))
}

impl Queries {
    pub(super) fn new(a: Matrix, objective: Objective) -> Self {
        match objective {
            Objective::Rms => {
                let gram = product(a.transpose(), &a);
                Self::Rms(a, gram)
            }
            Objective::Max => Self::Max(a, 0.0),
        }
    }

    pub(super) fn soften(&mut self, by: f64) {
        if let Self::Max(_, softness) = self {
            *softness = by;
        }
    }

    /// Returns the number of variables z.
    pub(super) fn variables(&self) -> usize {
        match self {
            Self::Rms(..) => 0,
            Self::Max(a, _) => a.nrows(),
        }
    }

    /// Returns the weights p, or nothing if all queries have the same weight.
    pub(super) fn weights(&self, z: &[f64]) -> Vec<f64> {
        match self {
            Self::Rms(..) => Vec::new(),
            Self::Max(_, softness) => soft_weights(z, *softness),
        }
    }

    /// Returns A.
    pub(super) fn matrix(&self) -> &Matrix {
        let (Self::Rms(a, _) | Self::Max(a, _)) = self;
        a
    }

    /// Returns A^T P A.
    pub(super) fn gram(&self, p: &[f64]) -> Cow<'_, Matrix> {
        match self {
            Self::Rms(_, gram) => Cow::Borrowed(gram),
            Self::Max(a, _) => {
                let roots: Vec<f64> = p.iter().map(|p| p.sqrt()).collect();
                let weighted = Matrix::from_fn(a.nrows(), a.ncols(), |i, j| roots[i] * a[(i, j)]);
                Cow::Owned(product(weighted.transpose(), &weighted))
            }
        }
    }

    /// Returns the derivative of ln sum p - 2 ln T in z, where T = tr K^1/2, K = G^T A^T P A G = Q diag(w)
    /// Q^T, and `map` is G Q. It follows from dT/dp_i = ||row i of A G Q diag(w)^-1/4||^2 / 2.
    pub(super) fn gradient(&self, z: &[f64], p: &[f64], mut map: Matrix, spectrum: &Spectrum) -> Vec<f64> {
        let Self::Max(a, softness) = self else { return Vec::new() };
        for (l, root) in spectrum.roots.iter().enumerate() {
            map.column_mut(l).iter_mut().for_each(|x| *x /= root.sqrt());
        }
        let b = product(a, &map);
        let mut squared = vec![0.0; z.len()];
        for l in 0..b.ncols() {
            squared.iter_mut().zip(b.column(l)).for_each(|(sum, b)| *sum += b * b);
        }
        let (total, trace) = (p.iter().sum::<f64>(), spectrum.trace());
        let d: Vec<f64> = squared.iter().map(|squared| 1.0 / total - squared / trace).collect();
        soft_gradient(z, &d, *softness)
    }
}
