//! Bounds on the loss of the best strategy of any class.

use std::f64::consts::PI;

use antinoise_input::at_least;

use crate::Result;

/// Returns ln(2 n + 1) / pi, a lower bound on the max loss of every strategy for prefix sums over n = `steps`
/// steps, single participation and zero-out adjacency.
///
/// It bounds ||B||_row ||C||_col for all factorisations B C = A of the prefix sums A, where C may have any
/// number of rows.
///
/// # Errors
/// When `steps` is 0.
///
/// # Source
/// Theorem 2.4 of "Correlated Noise Mechanisms for Differentially Private Learning" (arXiv 2506.08201); the
/// bound is by Matousek, Nikolov and Talwar (2020).
///
/// ```
/// use antinoise_mechanism::bounds;
/// // One step: C = 1 costs 1.
/// assert!(bounds::prefix_max_loss_at_least(1)? < 1.0 && bounds::prefix_max_loss_at_most(1)? == 1.0);
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
pub fn prefix_max_loss_at_least(steps: usize) -> Result<f64> {
    Ok((2.0 * at_least("steps", steps, 1)? as f64 + 1.0).ln() / PI)
}

/// Returns 1 + ln(n) / pi, an upper bound on the max loss of the best strategy for prefix sums over n =
/// `steps` steps, single participation and zero-out adjacency.
///
/// # Errors
/// When `steps` is 0.
///
/// # Source
/// As [`prefix_max_loss_at_least`]; the bound is by Mathias (1993).
///
/// ```
/// use antinoise_mechanism::bounds;
/// let (lower, upper) = (bounds::prefix_max_loss_at_least(1 << 20)?, bounds::prefix_max_loss_at_most(1 << 20)?);
/// assert!(lower < upper && upper < lower + 0.8);
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
pub fn prefix_max_loss_at_most(steps: usize) -> Result<f64> {
    Ok(1.0 + (at_least("steps", steps, 1)? as f64).ln() / PI)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::Objective;
    use crate::design::StrategySpec;
    use crate::{Adjacency, Class, Problem};

    /// The dense optimum is between the two bounds. Both are nearly tight; the lower bound is loosest at one
    /// step.
    #[test]
    fn the_dense_optimum_lies_between() {
        for steps in [1, 2, 3, 5, 8, 16, 33, 64, 128] {
            let problem = Problem::prefix(steps).with_objective(Objective::Max);
            let found = StrategySpec::new(Class::Dense).design(&problem).unwrap();
            let gap = found.gap.unwrap_or(0.0);
            assert!(gap < 1e-3, "{steps} steps: gap {gap}");
            let cost = found.value.loss(&problem.workload, &problem.participation, Adjacency::ZeroOut);
            let (best, most) =
                (cost.as_ref().unwrap().max_loss * (1.0 - gap), cost.as_ref().unwrap().max_loss);
            let (lower, upper) =
                (prefix_max_loss_at_least(steps).unwrap(), prefix_max_loss_at_most(steps).unwrap());
            assert!(
                lower < best && best <= upper * (1.0 + 1e-12),
                "{steps} steps: {lower} < {best} <= {upper}"
            );
            assert!(most - lower < 0.75 && upper - most < 0.4, "{steps} steps: {lower}, {most}, {upper}");
        }
    }

    #[test]
    fn no_steps_are_refused_by_name() {
        for refused in [prefix_max_loss_at_least(0), prefix_max_loss_at_most(0)] {
            assert!(refused.unwrap_err().to_string().starts_with("steps is 0"));
        }
    }
}
