//! Minimise sens(C, Pi) ||A C^-1|| over banded lower-triangular Toeplitz C.
//!
//! Variables: c_1, ..., c_{bands-1} with c_0 = 1 (the loss does not depend on the scale of C). With
//! w = C^-1 a the first column of B, ||B||_row^2 = sum w_t^2 and ||B||_F^2 = sum (n - t) w_t^2; with
//! S = sum over j < k of column jb, sens^2 = ||S||^2. The objective is ln sens^2 + ln ||B||^2; its gradient is
//! the adjoint lam = C^-T dw, dc_j = -sum_t lam_t w_{t-j}, plus that of ||S||^2.
//! O(n bands) time an evaluation for few bands, O(n log n) for many; O(n) space. Beyond 10^7 steps of prefix
//! sums w is constant after a horizon of O(bands^2) steps, which then replaces n.

use super::lbfgs::{self, Settings};
use super::{Objective, Solution, Status};
use crate::sensitivity::{self, Kind, orthogonal_counts, sum_of_columns, sum_of_columns_adjoint};
use crate::strategy::must_be_toeplitz;
use crate::toeplitz::{correlate, divide, divide_transposed, dot, norm_squared};
use crate::{Participation, Result, Workload, stationary};

/// ln(sens^2 ||B||^2) of Toeplitz strategies for one workload, schema and objective.
pub(crate) struct ToeplitzLoss {
    steps: usize,
    /// First column of A, up to the horizon.
    workload: Vec<f64>,
    /// Of w_t^2 in ||B||^2, and of its limit's square beyond the horizon.
    weights: (Vec<f64>, f64),
    separation: (usize, usize),
}

impl ToeplitzLoss {
    pub(crate) fn new(
        steps: usize,
        bands: usize,
        workload: &Workload,
        participation: &Participation,
        objective: Objective,
    ) -> Result<Self> {
        participation.check(steps)?;
        let separation = participation.separation(steps);
        let horizon = stationary::horizon(steps, bands, workload);
        let a = workload.coefficients(horizon)?.ok_or_else(|| must_be_toeplitz(workload))?;
        let weights = stationary::weights(steps, horizon, objective);
        Ok(Self { steps, workload: a, weights, separation })
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
        if c.len() <= b {
            let counts = orthogonal_counts(c.len(), self.steps, b, k);
            let gradient: Vec<f64> = c.iter().zip(&counts).map(|(c, count)| 2.0 * count * c).collect();
            return (0.5 * dot(&gradient, c), gradient);
        }
        let sum = sum_of_columns(c, self.steps, b, k);
        let mut gradient = sum_of_columns_adjoint(&sum, c.len(), b, k);
        gradient.iter_mut().for_each(|g| *g *= 2.0);
        (norm_squared(&sum), gradient)
    }

    fn error_squared(&self, c: &[f64]) -> (f64, Vec<f64>) {
        let w = divide(&self.workload, c, self.workload.len());
        let (weights, rest) = &self.weights;
        let weighted: Vec<f64> = w.iter().zip(weights).map(|(w, weight)| weight * w).collect();
        let limit = 1.0 / c.iter().sum::<f64>();
        let beyond = if *rest > 0.0 { rest * limit * limit } else { 0.0 };
        let value = dot(&w, &weighted) + beyond;
        let lam = divide_transposed(&weighted, c);
        let d_beyond = if *rest > 0.0 { beyond * limit } else { 0.0 };
        let gradient = correlate(&lam, &w, c.len()).iter().map(|x| -2.0 * (x + d_beyond)).collect();
        (value, gradient)
    }
}

/// The coefficients for which ||S|| is the sensitivity, and free variables v for them; c_0 = 1 always.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Shape {
    /// c_t = v_t: no more bands than the separation, or a single participation.
    Free,
    /// c_t = e^{v_t}: non-negative, which cyclic schemas need.
    NonNegative,
    /// c_t = c_{t-1} / (1 + e^{-v_t}): positive and decreasing, which min-sep needs.
    Decreasing,
}

impl Shape {
    fn needed(bands: usize, separation: (usize, usize), participation: &Participation) -> Self {
        match participation {
            _ if separation.1 == 1 || bands <= separation.0 => Self::Free,
            Participation::MinSep { .. } | Participation::Patterns { .. } => Self::Decreasing,
            _ => Self::NonNegative,
        }
    }

    /// v for c_1, c_2, ..., moved into the open set where they do not fit.
    fn variables(self, c: &[f64]) -> Vec<f64> {
        const LEAST: f64 = 1e-9;
        match self {
            Self::Free => c[1..].to_vec(),
            Self::NonNegative => c[1..].iter().map(|c| c.max(LEAST).ln()).collect(),
            Self::Decreasing => c
                .windows(2)
                .map(|pair| {
                    let ratio = if pair[0] > 0.0 { pair[1] / pair[0] } else { 0.0 };
                    let ratio = ratio.clamp(LEAST, 1.0 - LEAST);
                    (ratio / (1.0 - ratio)).ln()
                })
                .collect(),
        }
    }

    fn coefficients(self, v: &[f64]) -> Vec<f64> {
        let mut c = vec![1.0];
        for &v in v {
            c.push(match self {
                Self::Free => v,
                Self::NonNegative => v.exp(),
                Self::Decreasing => c[c.len() - 1] / (1.0 + (-v).exp()),
            });
        }
        c
    }

    /// d/dv from d/dc.
    fn gradient(self, v: &[f64], c: &[f64], dc: &[f64]) -> Vec<f64> {
        let weighted = c[1..].iter().zip(&dc[1..]).map(|(c, dc)| c * dc);
        match self {
            Self::Free => dc[1..].to_vec(),
            Self::NonNegative => weighted.collect(),
            Self::Decreasing => {
                // v_t moves the logarithms of c_t and all that follow alike.
                let mut gradient: Vec<f64> = weighted.collect();
                for t in (1..gradient.len()).rev() {
                    gradient[t - 1] += gradient[t];
                }
                gradient.iter().zip(v).map(|(g, v)| g / (1.0 + v.exp())).collect()
            }
        }
    }
}

/// The Toeplitz C with `start.len()` bands and c_0 = 1 of least loss, found from `start`.
///
/// With more bands than the separation of several participations, C is kept non-negative (cyclic) or also
/// decreasing (min-sep), so that its sensitivity is exact.
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
    let loss = ToeplitzLoss::new(steps, start.len(), workload, participation, objective)?;
    let shape = Shape::needed(start.len(), loss.separation, participation);
    let f = |v: &[f64]| {
        let c = shape.coefficients(v);
        let (value, dc) = loss.value_and_gradient(&c);
        (value, shape.gradient(v, &c, &dc))
    };
    let unit_start: Vec<f64> = start.iter().map(|c| c / start[0]).collect();
    let found = lbfgs::minimize(f, shape.variables(&unit_start), &Settings::default());
    Ok(found.map(|v| shape.coefficients(&v)))
}

/// The first column of the banded C^-1 (`start.len()` bands, first entry 1) of least loss, found from `start`.
///
/// The same loss as [`minimize_banded`], seen through c = 1 / c': dc'_j = -sum_t lam_t c_{t-j} with
/// lam = C'^-T dc. O(n log n) an evaluation. Where the optimum is not a strategy whose sensitivity ||S|| is
/// exact, the start is returned.
///
/// # Errors
/// When the schema does not fit, or the workload is not valid.
pub fn minimize_banded_inverse(
    start: &[f64],
    steps: usize,
    workload: &Workload,
    participation: &Participation,
    objective: Objective,
) -> Result<Solution<Vec<f64>>> {
    let loss = ToeplitzLoss::new(steps, steps, workload, participation, objective)?;
    let with_unit_diagonal = |tail: &[f64]| -> Vec<f64> { [&[1.0], tail].concat() };
    let f = |tail: &[f64]| {
        let inverse = with_unit_diagonal(tail);
        let c = divide(&[1.0], &inverse, steps);
        let (value, dc) = loss.value_and_gradient(&c);
        let lam = divide_transposed(&dc, &inverse);
        (value, correlate(&lam, &c, inverse.len())[1..].iter().map(|x| -x).collect())
    };
    let unit_start: Vec<f64> = start.iter().map(|c| c / start[0]).collect();
    let found = lbfgs::minimize(f, unit_start[1..].to_vec(), &Settings::default());
    let found = found.map(|tail| with_unit_diagonal(&tail));
    let c = divide(&[1.0], &found.value, steps);
    match sensitivity::of_toeplitz(&c, steps, participation)?.kind {
        Kind::Exact => Ok(found),
        Kind::UpperBound => Ok(Solution { status: Status::Stalled, ..found.map(|_| unit_start) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_return_what_they_are_given_and_chain_the_gradient() {
        let c = [1.0, 0.5, 0.25, 0.2, 0.1];
        let f = |c: &[f64]| c.iter().enumerate().map(|(t, c)| (t + 1) as f64 * c * c).sum::<f64>();
        for shape in [Shape::Free, Shape::NonNegative, Shape::Decreasing] {
            let v = shape.variables(&c);
            let back = shape.coefficients(&v);
            assert!(back.iter().zip(&c).all(|(x, y)| (x - y).abs() < 1e-15));
            let dc: Vec<f64> = back.iter().enumerate().map(|(t, c)| 2.0 * (t + 1) as f64 * c).collect();
            let gradient = shape.gradient(&v, &back, &dc);
            for j in 0..v.len() {
                let at = |h: f64| {
                    let mut moved = v.clone();
                    moved[j] += h;
                    f(&shape.coefficients(&moved))
                };
                let difference = (at(1e-5) - at(-1e-5)) / 2e-5;
                assert!((difference - gradient[j]).abs() < 1e-9, "{shape:?} {j}");
            }
        }
    }

    #[test]
    fn coefficients_of_zero_have_finite_variables() {
        for shape in [Shape::Free, Shape::NonNegative, Shape::Decreasing] {
            let back = shape.coefficients(&shape.variables(&[1.0, 0.0, 0.0, -0.5, 0.0]));
            assert!(back.iter().all(|c| c.is_finite()), "{shape:?}: {back:?}");
        }
    }

    #[test]
    fn the_gradient_is_the_finite_difference() {
        let workload = Workload::Momentum { momentum: 0.7, weight_decay: 0.05 };
        for objective in [Objective::Max, Objective::Rms] {
            for participation in ["single", "full-batch", "cyclic:4,3", "min-sep:5,2", "cyclic:4,5"] {
                let participation = participation.parse().unwrap();
                let loss = ToeplitzLoss::new(20, 7, &workload, &participation, objective).unwrap();
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
