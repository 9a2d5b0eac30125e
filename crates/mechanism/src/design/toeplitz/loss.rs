//! The loss of Toeplitz coefficients, as the objective of solvers.

use super::shape::Shape;
use super::squared_error::SquaredError;
use super::sums::Sums;
use crate::numeric::softmax::ROW_EXPONENTS;
use crate::problem::Objective;
use crate::{Participation, Problem, Result, Workload};

/// ln(sens^2 ||B||^2) as a function of non-negative, non-increasing Toeplitz coefficients, such as those of
/// BLTs.
pub(crate) struct ToeplitzLoss {
    sums: Sums,
    error: SquaredError,
}

impl ToeplitzLoss {
    pub(crate) fn new(
        steps: usize,
        bands: usize,
        workload: &Workload,
        participation: &Participation,
        objective: Objective,
        exponent: f64,
    ) -> Result<Self> {
        let sums = Sums::new(steps, participation)?;
        Ok(Self { sums, error: SquaredError::new(steps, bands, workload, objective, exponent)? })
    }

    /// Returns the value and its gradient in every coefficient of `c`.
    pub(crate) fn value_and_gradient(&self, c: &[f64]) -> (f64, Vec<f64>) {
        let (sensitivity, d_sensitivity) = self.sums.squared(c);
        let (error, d_error) = self.error.of_column(c);
        let slopes = d_sensitivity.iter().zip(&d_error);
        (sensitivity.ln() + error.ln(), slopes.map(|(ds, de)| ds / sensitivity + de / error).collect())
    }

    /// Returns the squared loss with the exact maximum of the row norms, not a p-norm.
    pub(crate) fn cost(&self, c: &[f64]) -> f64 {
        self.sums.squared(c).0 * self.error.exact(c)
    }
}

/// Returns the squared errors of the successive solves: one for each exponent of the p-norm that replaces the
/// maximum row norm, or a single one if nothing is smoothed.
pub(crate) fn errors(
    problem: &Problem,
    of: impl Fn(f64) -> Result<SquaredError>,
) -> Result<Vec<SquaredError>> {
    let plain = problem.objective == Objective::Rms || problem.workload.is_toeplitz();
    let exponents = if plain { &ROW_EXPONENTS[..1] } else { &ROW_EXPONENTS };
    exponents.iter().map(|&exponent| of(exponent)).collect()
}

/// Returns ln(sens^2 ||B||^2) and its gradient in the variables v of `shape`. `sensitivity` maps magnitudes m
/// to sens^2 and its gradient in m.
pub(super) fn in_variables(
    shape: Shape,
    v: &[f64],
    sensitivity: impl Fn(&[f64]) -> (f64, Vec<f64>),
    error: &SquaredError,
) -> (f64, Vec<f64>) {
    let (c, m) = shape.coefficients(v);
    let ((sensitivity, dm), (error, dc)) = (sensitivity(&m), error.of_column(&c));
    let over = |d: Vec<f64>, by: f64| d.into_iter().map(|d| d / by).collect::<Vec<f64>>();
    (sensitivity.ln() + error.ln(), shape.gradient(v, &over(dc, error), &over(dm, sensitivity)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Tolerance, assert_gradient};

    #[test]
    fn the_gradient_is_the_finite_difference() {
        let toeplitz = Workload::Momentum { momentum: 0.7, weight_decay: 0.05 };
        let workloads =
            [toeplitz, Workload::Cooldown { start: 12, last: 0.3 }, "last-iterate:0.5,0.2".parse().unwrap()];
        let cases =
            workloads.iter().flat_map(|a| [Objective::Max, Objective::Rms].map(|objective| (a, objective)));
        for (workload, objective) in cases {
            for participation in ["single", "full-batch", "cyclic:4,3", "min-sep:5,2", "cyclic:4,5"] {
                let participation = participation.parse().unwrap();
                let loss = ToeplitzLoss::new(20, 7, workload, &participation, objective, 8.0).unwrap();
                let c: Vec<f64> = (0..7).map(|t| 1.0 / (1.0 + t as f64)).collect();
                let (_, gradient) = loss.value_and_gradient(&c);
                let f = |c: &[f64]| loss.value_and_gradient(c).0;
                let case = format!("{participation} {objective}");
                assert_gradient(&case, f, &c, &gradient, 1e-5, Tolerance::absolute(1e-8));
            }
        }
    }
}
