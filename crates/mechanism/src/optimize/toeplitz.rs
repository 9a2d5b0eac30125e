//! Minimise sens(C, Pi) ||A C^-1|| over banded lower-triangular Toeplitz C.
//!
//! Variables: c_1, ..., c_{bands-1} with c_0 = 1 (the loss does not depend on the scale of C). With
//! w = C^-1 a the first column of B, ||B||_row^2 = sum w_t^2 and ||B||_F^2 = sum (n - t) w_t^2; with
//! S = sum over j < k of column jb, sens^2 = ||S||^2. The objective is ln sens^2 + ln ||B||^2; its gradient is
//! the adjoint lam = C^-T dw, dc_j = -sum_t lam_t w_{t-j}, plus that of ||S||^2.
//! O(n bands) time an evaluation for few bands, O(n log n) for many; O(n) space.

use super::lbfgs::{self, Settings};
use super::{Objective, Solution};
use crate::sensitivity::{sum_of_columns, sum_of_columns_adjoint};
use crate::toeplitz::{correlate, divide, divide_transposed, dot, norm_squared};
use crate::{Participation, Result, Workload};

/// ln(sens^2 ||B||^2) of Toeplitz strategies for one workload, schema and objective.
pub(crate) struct ToeplitzLoss {
    steps: usize,
    /// First column of A.
    workload: Vec<f64>,
    separation: (usize, usize),
    objective: Objective,
}

impl ToeplitzLoss {
    pub(crate) fn new(
        steps: usize,
        workload: &Workload,
        participation: &Participation,
        objective: Objective,
    ) -> Result<Self> {
        participation.check(steps)?;
        let separation = participation.separation(steps);
        Ok(Self { steps, workload: workload.coefficients(steps)?, separation, objective })
    }

    /// The value and its gradient in every coefficient of `c`.
    pub(crate) fn value_and_gradient(&self, c: &[f64]) -> (f64, Vec<f64>) {
        let (sensitivity_squared, d_sensitivity) = self.sensitivity_squared(c);
        let (error_squared, d_error) = self.error_squared(c);
        let gradient = d_sensitivity
            .iter()
            .zip(&d_error)
            .map(|(ds, de)| ds / sensitivity_squared + de / error_squared)
            .collect();
        (sensitivity_squared.ln() + error_squared.ln(), gradient)
    }

    fn sensitivity_squared(&self, c: &[f64]) -> (f64, Vec<f64>) {
        let (b, k) = self.separation;
        let sum = sum_of_columns(c, self.steps, b, k);
        let mut gradient = sum_of_columns_adjoint(&sum, c.len(), b, k);
        gradient.iter_mut().for_each(|g| *g *= 2.0);
        (norm_squared(&sum), gradient)
    }

    fn error_squared(&self, c: &[f64]) -> (f64, Vec<f64>) {
        let n = self.steps;
        let w = divide(&self.workload, c, n);
        let weighted: Vec<f64> = match self.objective {
            Objective::Max => w.clone(),
            Objective::Rms => w.iter().enumerate().map(|(t, w)| (n - t) as f64 * w).collect(),
        };
        let value = dot(&w, &weighted);
        let lam = divide_transposed(&weighted, c);
        let gradient = correlate(&lam, &w, c.len()).iter().map(|x| -2.0 * x).collect();
        (value, gradient)
    }
}

/// The Toeplitz C with `start.len()` bands and c_0 = 1 of least loss, found from `start`.
///
/// # Errors
/// When the schema does not fit, or the workload is not valid.
///
/// # Source
/// Monograph, Section 4.3; BandMF, Appendix.
pub fn minimize_banded(
    start: &[f64],
    steps: usize,
    workload: &Workload,
    participation: &Participation,
    objective: Objective,
) -> Result<Solution<Vec<f64>>> {
    let loss = ToeplitzLoss::new(steps, workload, participation, objective)?;
    let with_unit_diagonal = |tail: &[f64]| -> Vec<f64> { [&[1.0], tail].concat() };
    let f = |tail: &[f64]| {
        let (value, mut gradient) = loss.value_and_gradient(&with_unit_diagonal(tail));
        gradient.remove(0);
        (value, gradient)
    };
    let tail = start[1..].iter().map(|c| c / start[0]).collect();
    Ok(lbfgs::minimize(f, tail, &Settings::default()).map(|tail| with_unit_diagonal(&tail)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gradient_is_the_finite_difference() {
        let workload = Workload::Momentum { momentum: 0.7, weight_decay: 0.05 };
        for objective in [Objective::Max, Objective::Rms] {
            for participation in ["single", "full-batch", "cyclic:4,3", "min-sep:5,2", "cyclic:4,5"] {
                let participation = participation.parse().unwrap();
                let loss = ToeplitzLoss::new(20, &workload, &participation, objective).unwrap();
                let c: Vec<f64> = (0..7).map(|t| 1.0 / (1.0 + t as f64)).collect();
                let (_, gradient) = loss.value_and_gradient(&c);
                for j in 0..c.len() {
                    let at = |h: f64| {
                        let mut moved = c.clone();
                        moved[j] += h;
                        loss.value_and_gradient(&moved).0
                    };
                    let difference = (at(1e-5) - at(-1e-5)) / 2e-5;
                    let error = (difference - gradient[j]).abs();
                    assert!(error < 1e-8, "{participation} {objective} {j}: {difference} {}", gradient[j]);
                }
            }
        }
    }
}
