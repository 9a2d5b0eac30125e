//! Minimise the mean of the squared loss over several separations of participations.
//!
//! ||A C^-1|| does not depend on the separation, so the mean is ||A C^-1||^2 times the mean of sens^2. The
//! coefficients of C are kept non-increasing, so that the sensitivity under min-sep is exact for every
//! separation.

use super::loss::{errors, in_variables};
use super::search::unit;
use super::shape::Shape;
use super::squared_error::SquaredError;
use super::sums::Sums;
use crate::design::best::Best;
use crate::numeric::lbfgs;
use crate::solution::Solution;
use crate::{Participation, Problem, Result, Separation};

/// Maximum number of terms of all evaluations together, which take about a minute.
const MAX_TERMS: usize = 4_000_000_000;

/// Returns the non-increasing coefficients of least mean squared loss over min-sep schemas with the given
/// `separations` and the problem's number of participations. The solver begins at `start`.
///
/// # Errors
/// When the participation schema or the workload is not valid for the problem's steps.
pub(crate) fn minimize_averaged(
    start: &[f64],
    separations: &[usize],
    problem: &Problem,
) -> Result<Solution<Vec<f64>>> {
    let Problem { steps, workload, participation, objective } = problem;
    let sums = separations
        .iter()
        .map(|&min_sep| {
            let separation = Separation { min_sep, ..participation.separation(*steps) };
            Sums::new(*steps, &Participation::min_sep(*steps, separation))
        })
        .collect::<Result<Vec<_>>>()?;
    let mean = |m: &[f64]| {
        let mut total = (0.0, vec![0.0; m.len()]);
        for (value, gradient) in sums.iter().map(|sums| sums.squared(m)) {
            total.0 += value / sums.len() as f64;
            total.1.iter_mut().zip(gradient).for_each(|(sum, d)| *sum += d / sums.len() as f64);
        }
        total
    };
    let errors =
        errors(problem, |exponent| SquaredError::new(*steps, start.len(), workload, *objective, exponent))?;
    let cost = |c: &[f64]| mean(c).0 * errors[0].exact(c);
    let max_iterations = (MAX_TERMS / steps.saturating_mul(sums.len())).clamp(50, 20_000);
    let settings = lbfgs::Settings { max_iterations, ..lbfgs::Settings::default() };
    let shape = Shape::Decreasing;
    let mut c = shape.coefficients(&shape.variables(start)).0;
    let mut best = Best::new(unit(&c), cost(&unit(&c)));
    for error in &errors {
        let found = lbfgs::minimize(|v| in_variables(shape, v, mean, error), shape.variables(&c), &settings);
        let found = found.map(|v| unit(&shape.coefficients(&v).0));
        c.clone_from(&found.value);
        let cost = cost(&c);
        best.offer(found, cost);
    }
    Ok(best.finished())
}
