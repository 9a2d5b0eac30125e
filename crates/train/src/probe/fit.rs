//! Weights of curvatures that fit measured growths.

use antinoise_input::InvalidParameter;
use antinoise_mechanism::Workload;

use super::definition::Probe;
use super::growth::Growth;
use crate::Error;

impl Probe<'_> {
    /// The workload of the last iterate whose weights w_h are at least 0 and fit the growths best by least
    /// squares, with a share of prefix sums: noise of early steps can leave the region where the loss is
    /// quadratic.
    ///
    /// # Errors
    /// As [`equal_weights`](Self::equal_weights), and if a step of `growths` is not one of the run, or noise
    /// raises the loss nowhere, so that no weights follow.
    pub fn workload(&self, growths: &[Growth], prefix_share: f64) -> Result<Workload, Error> {
        let equal = self.equal_weights(prefix_share)?;
        let rows = equal.responses(self.steps).map_err(antinoise_plan::Error::from)?;
        if let Some(growth) = growths.iter().find(|growth| growth.step >= self.steps) {
            let must_be = format!("below {}, the steps of the run", self.steps);
            return Err(InvalidParameter::new("step of a growth", growth.step, must_be).into());
        }
        let squares: Vec<Vec<f64>> =
            rows.iter().map(|u| growths.iter().map(|growth| u[growth.step].powi(2)).collect()).collect();
        let measured: Vec<f64> = growths.iter().map(|growth| growth.mean).collect();
        let weights = non_negative_least_squares(&squares, &measured);
        let must_be = "measured with more repeats or more noise: noise raises the final loss at no step";
        let refused = || InvalidParameter::new("growths", "0 or below", must_be).into();
        self.weighted(&weights, prefix_share)?.ok_or_else(refused)
    }
}

/// Maximum number of passes over all weights of the fit.
const MOST_PASSES: usize = 100_000;

/// Returns weights of at least 0 for which the weighted sum of `columns` is nearest to `wanted`, by
/// coordinate descent.
fn non_negative_least_squares(columns: &[Vec<f64>], wanted: &[f64]) -> Vec<f64> {
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let (mut weights, mut left) = (vec![0.0_f64; columns.len()], wanted.to_vec());
    let lengths: Vec<f64> = columns.iter().map(|column| dot(column, column)).collect();
    for _ in 0..MOST_PASSES {
        let mut moved: f64 = 0.0;
        for ((weight, column), length) in weights.iter_mut().zip(columns).zip(&lengths) {
            if *length == 0.0 {
                continue;
            }
            let next = (*weight + dot(column, &left) / length).max(0.0);
            let change = next - *weight;
            left.iter_mut().zip(column).for_each(|(left, x)| *left -= change * x);
            moved = moved.max(change.abs() * length.sqrt());
            *weight = next;
        }
        if moved <= 1e-12 * dot(wanted, wanted).sqrt() {
            break;
        }
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::super::examples::{draws, logistic_digits, probe};
    use super::*;

    /// The conditions of Kuhn and Tucker in 300 random problems: no gradient along weights above 0, and none
    /// that asks for more of a weight of 0.
    #[test]
    fn the_fit_is_the_best_one_without_negative_weights() {
        let mut draw = draws(7);
        for _ in 0..300 {
            let (terms, points) = (1 + (draw() * 6.0) as usize, 8);
            let columns: Vec<Vec<f64>> = (0..terms).map(|_| (0..points).map(|_| draw()).collect()).collect();
            let wanted: Vec<f64> = (0..points).map(|_| draw() - 0.3).collect();
            let weights = non_negative_least_squares(&columns, &wanted);
            let mut left = wanted.clone();
            for (weight, column) in weights.iter().zip(&columns) {
                left.iter_mut().zip(column).for_each(|(left, x)| *left -= weight * x);
            }
            for (weight, column) in weights.iter().zip(&columns) {
                let slope: f64 = column.iter().zip(&left).map(|(x, y)| x * y).sum();
                assert!(
                    *weight >= 0.0 && slope < 1e-8 && (*weight == 0.0 || slope > -1e-8),
                    "{weight} {slope}"
                );
            }
        }
    }

    #[test]
    fn weights_of_known_growths_are_found_again() {
        let (model, dataset) = logistic_digits();
        let probe = probe(&model, &dataset);
        let equal = probe.optimizer.design_workload(probe.steps);
        let rows = equal.responses(probe.steps).unwrap();
        let growth = |step: usize| {
            // The largest weight of a fit is 1.
            let mean = rows[1][step].powi(2) + rows[6][step].powi(2) / 3.0;
            Growth { step, mean, error: 0.0 }
        };
        let growths: Vec<Growth> = (0..probe.steps).map(growth).collect();
        let Workload::LastIterate { weights, .. } = probe.workload(&growths, 0.05).unwrap() else {
            unreachable!("SGD")
        };
        let fitted = |step: usize| rows.iter().zip(&weights).map(|(u, w)| w * u[step].powi(2)).sum::<f64>();
        for growth in &growths {
            assert!((fitted(growth.step) / growth.mean - 1.0).abs() < 1e-2, "{growth:?} {weights:?}");
        }
    }

    #[test]
    fn growths_that_say_nothing_are_refused() {
        let (model, dataset) = logistic_digits();
        let probe = probe(&model, &dataset);
        let at = |step, mean| Growth { step, mean, error: 0.0 };
        for growths in [vec![], vec![at(3, -1.0), at(9, 0.0)], vec![at(45, 1.0)]] {
            let error = probe.workload(&growths, 0.05).unwrap_err();
            assert!(matches!(error, Error::Invalid(_)), "{error}");
        }
    }
}
