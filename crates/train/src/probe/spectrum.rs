//! Weights of the last iterate's curvatures from the spectrum of curvatures at the end of a training.
//!
//! 1. Near an optimum the loss is 1/2 sum over i of lambda_i theta_i^2. Noise at step s of the same variance
//!    along all theta_i raises it in proportion to the sum over i of lambda_i u_{h_i}(s)^2, where h_i is
//!    lambda_i in units of (1 - beta) / eta: the weight of a curvature is lambda times the number of
//!    directions that have it.
//! 2. The numbers of directions follow from stochastic Lanczos quadrature: for a vector v of random signs the
//!    mean of v^T f(A) v is the sum over i of f(lambda_i). Each repeat has one v and parameters of its own.
//! 3. A is the derivative of the mean of the clipped gradients, since training forgets noise by these; where
//!    gradients are clipped, it is smaller than the Hessian of the loss, and it need not be symmetric. Its
//!    symmetric part counts, and the loss is taken to be curved in proportion.
//! 4. A curvature between two of the workload's is split between them, linearly in ln h. Below the least,
//!    1 / (3 n), training forgets nothing, so that all curvatures have the same response: the least takes
//!    the weight. Above 1 a direction counts as one of curvature 1: with momentum the sum over s of h
//!    u_h(s)^2 is nearly the same for all h that are forgotten within the run and do not diverge, so that
//!    independent noise raises the loss as much as it should. Along negative curvatures there is no optimum,
//!    and they have no weight.
//!
//! # Source
//! S. Ubaru, J. Chen, Y. Saad, Fast estimation of tr(f(A)) via stochastic Lanczos quadrature, SIAM J. Matrix
//! Anal. Appl. 38 (2017); B. Ghorbani, S. Krishnan, Y. Xiao, An Investigation into Neural Net Optimization
//! via Hessian Eigenvalue Density, arXiv:1901.10159.

use std::sync::atomic::{AtomicBool, Ordering};

use antinoise_input::{InvalidParameter, at_least};
use antinoise_mechanism::Workload;
use serde::Serialize;

use super::definition::Probe;
use super::lanczos::quadrature;
use super::product::Field;
use super::training::Training;
use crate::Error;
use crate::optimizer::UpdateRule;

/// The fewest products for a spectrum: with one, all curvatures would be their mean.
const FEWEST_PRODUCTS: usize = 4;

/// A curvature, and the number of directions of the parameters that have it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Curvature {
    /// The second derivative of the loss, in nats.
    pub curvature: f64,
    /// A mean over repeats, which need not be whole.
    pub directions: f64,
}

/// m_eff = tr H / |H|: the sum of the curvatures above 0 over the largest. Excess risk of linear regression
/// with correlated noise grows with m_eff, with independent noise as the number of parameters. 0 for a
/// spectrum without curvature above 0.
///
/// # Source
/// The monograph, section 3.5.2.
///
/// ```
/// use antinoise_train::probe::{Curvature, effective_dimension};
/// let of = |curvature, directions| Curvature { curvature, directions };
/// assert_eq!(effective_dimension(&[of(2.0, 3.0), of(0.5, 4.0), of(-1.0, 9.0)]), 4.0);
/// ```
pub fn effective_dimension(spectrum: &[Curvature]) -> f64 {
    let above = || spectrum.iter().filter(|node| node.curvature > 0.0 && node.directions > 0.0);
    let largest = above().map(|node| node.curvature).fold(0.0, f64::max);
    above().map(|node| node.directions * (node.curvature / largest)).sum()
}

impl Probe<'_> {
    /// The curvatures at the end of each repeat's training, by `products` products with the curvature matrix
    /// in each, or fewer if these span all curvatures. Calls `progress` after each product. Returns `None` if
    /// `stop` becomes true.
    ///
    /// ```
    /// use std::sync::atomic::AtomicBool;
    /// use antinoise_train::{data, model::Model, optimizer::UpdateRule, probe::Probe};
    /// let dataset = data::digits();
    /// let model = Model::logistic(dataset.shape, dataset.classes)?;
    /// let probe = Probe {
    ///     model: &model,
    ///     dataset: &dataset,
    ///     optimizer: UpdateRule::Sgd { learning_rate: 0.5, momentum: 0.0 }.into(),
    ///     batch_size: 96,
    ///     steps: 30,
    ///     clip_norm: 1.0,
    ///     noise_multiplier: 1.0,
    ///     repeats: 2,
    ///     seed: 1,
    /// };
    /// let spectrum = probe.spectrum(8, &AtomicBool::new(false), || ())?.unwrap();
    /// let directions: f64 = spectrum.iter().map(|node| node.directions).sum();
    /// assert!((directions - 650.0).abs() < 1e-6);
    /// let workload = probe.workload_of_spectrum(&spectrum, 0.05)?;
    /// assert!(workload.check_steps(30).is_ok());
    /// # Ok::<(), antinoise_train::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a number is out of range, the optimizer's schedule does not fit, a step fails, or a final loss is
    /// not finite.
    pub fn spectrum(
        &self,
        products: usize,
        stop: &AtomicBool,
        mut progress: impl FnMut(),
    ) -> Result<Option<Vec<Curvature>>, Error> {
        self.check()?;
        at_least("products", products, FEWEST_PRODUCTS)?;
        let mut spectrum = Vec::new();
        for repeat in 0..self.repeats {
            match self.of_repeat(repeat, products, stop, &mut progress)? {
                Some(curvatures) => spectrum.extend(curvatures),
                None => return Ok(None),
            }
        }
        Ok(Some(spectrum))
    }

    fn of_repeat(
        &self,
        repeat: usize,
        products: usize,
        stop: &AtomicBool,
        progress: &mut impl FnMut(),
    ) -> Result<Option<Vec<Curvature>>, Error> {
        let training = Training::new(self, repeat)?;
        let mut state = training.start()?;
        for t in 0..self.steps {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            training.step(t, &mut state, 0.0)?;
        }
        training.final_loss(&state)?;
        let dim = self.model.parameters() as f64;
        let start = training.signs(2 * self.steps).iter().map(|&sign| f64::from(sign) / dim.sqrt()).collect();
        let field = Field { model: self.model, examples: &self.dataset.train, clip_norm: self.clip_norm };
        let product = |direction: &[f64]| {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let product = field.product(&state.0, direction)?;
            progress();
            Ok(Some(product))
        };
        let share = dim / self.repeats as f64;
        let counted = |(curvature, weight)| Curvature { curvature, directions: weight * share };
        Ok(quadrature(start, products, product)?.map(|nodes| nodes.into_iter().map(counted).collect()))
    }

    /// The workload of the last iterate whose weights are those of `spectrum`, with a share of prefix sums.
    ///
    /// # Errors
    /// As [`equal_weights`](Self::equal_weights), and if no curvature is above 0.
    pub fn workload_of_spectrum(&self, spectrum: &[Curvature], prefix_share: f64) -> Result<Workload, Error> {
        let grid = self.equal_weights(prefix_share)?.curvatures(self.steps);
        let must_be = "above 0 somewhere: train for more steps or with less noise";
        let refused = || InvalidParameter::new("curvatures", "0 or below everywhere", must_be).into();
        self.weighted(&weights(spectrum, &grid, self.unit()), prefix_share)?.ok_or_else(refused)
    }

    /// (1 - beta) / eta for the largest eta.
    fn unit(&self) -> f64 {
        let largest = self.optimizer.schedule.shares(self.steps).into_iter().fold(0.0, f64::max);
        let momentum = match self.optimizer.rule {
            UpdateRule::Sgd { momentum, .. } | UpdateRule::Nesterov { momentum, .. } => momentum,
            UpdateRule::Ftrl { .. } | UpdateRule::Adam { .. } => 0.0,
        };
        (1.0 - momentum) / (largest * self.optimizer.rule.learning_rate())
    }
}

/// The weight of each curvature of `grid`, which falls from 1; those of `spectrum` are in units of `unit`.
fn weights(spectrum: &[Curvature], grid: &[f64], unit: f64) -> Vec<f64> {
    let mut weights = vec![0.0; grid.len()];
    for node in spectrum {
        let h = (node.curvature / unit).min(1.0);
        if h <= 0.0 {
            continue;
        }
        let weight = h * node.directions;
        // The first curvature below h, and the one before it.
        match grid.partition_point(|&of_grid| of_grid >= h) {
            below if below == grid.len() => weights[below - 1] += weight,
            below => {
                let share = (h / grid[below]).ln() / (grid[below - 1] / grid[below]).ln();
                weights[below - 1] += share * weight;
                weights[below] += (1.0 - share) * weight;
            }
        }
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::super::examples::{draws, logistic_digits, probe};
    use super::*;

    /// Squared responses of SGD with momentum to noise at each step, of a direction of curvature `h`.
    fn squares(h: f64, steps: usize, momentum: f64) -> Vec<f64> {
        let (mut by_iterate, mut by_velocity) = (1.0, 0.0);
        let mut squares = vec![0.0; steps];
        for square in squares.iter_mut().rev() {
            let effect = (1.0 - momentum) * by_iterate - by_velocity;
            (by_iterate, by_velocity) = (by_iterate - h * effect, -momentum * effect);
            *square = effect * effect;
        }
        squares
    }

    /// The sum of squared responses by weights, against that of all directions of a quadratic loss.
    #[test]
    fn weights_of_known_curvatures_say_how_a_quadratic_loss_grows() {
        let mut draw = draws(17);
        for case in 0..60 {
            let (steps, momentum) = (20 + 13 * (case % 11), [0.0, 0.5, 0.9][case % 3]);
            let grid = Workload::last_iterate(momentum).curvatures(steps);
            // From a tenth of the least of the grid to the largest.
            let curvature = |x: f64| (steps as f64 * 30.0).powf(-x);
            let spectrum: Vec<Curvature> = (0..40)
                .map(|_| Curvature { curvature: curvature(draw()), directions: 1.0 + draw() })
                .collect();
            let sum = |terms: &[(f64, f64)]| -> Vec<f64> {
                let mut sum = vec![0.0; steps];
                for &(h, weight) in terms {
                    sum.iter_mut().zip(squares(h, steps, momentum)).for_each(|(sum, x)| *sum += weight * x);
                }
                sum
            };
            let direct: Vec<(f64, f64)> =
                spectrum.iter().map(|node| (node.curvature, node.curvature * node.directions)).collect();
            let by_weights: Vec<(f64, f64)> =
                grid.iter().copied().zip(weights(&spectrum, &grid, 1.0)).collect();
            let (known, found) = (sum(&direct), sum(&by_weights));
            let total = |sum: &[f64]| sum.iter().sum::<f64>();
            assert!((total(&found) / total(&known) - 1.0).abs() < 0.1, "{case}: {known:?} {found:?}");
            let apart: f64 = known.iter().zip(&found).map(|(x, y)| (x - y).powi(2)).sum();
            let size: f64 = known.iter().map(|x| x * x).sum();
            assert!(apart < 0.02 * size, "{case}: {} {known:?} {found:?}", apart / size);
        }
    }

    #[test]
    fn a_direction_above_the_grid_adds_what_one_of_curvature_1_adds() {
        let total = |h: f64| h * squares(h, 200, 0.9).iter().sum::<f64>();
        for h in [1.0, 1.5, 2.0, 3.0, 4.0] {
            assert!((total(h) / total(1.0) - 1.0).abs() < 0.1, "{h}: {} {}", total(h), total(1.0));
        }
    }

    /// No weight is negative, negative curvatures and the order of curvatures change nothing, and all weight
    /// between the ends of the grid is kept.
    #[test]
    fn weights_are_positive_and_add_up() {
        let mut draw = draws(23);
        for _ in 0..300 {
            let grid = Workload::last_iterate(0.9).curvatures(2 + (draw() * 500.0) as usize);
            let unit = 0.01 + draw();
            let mut spectrum: Vec<Curvature> = (0..20)
                .map(|_| Curvature { curvature: unit * (1.3 * draw() - 0.3), directions: 9.0 * draw() })
                .collect();
            let found = weights(&spectrum, &grid, unit);
            assert!(found.iter().all(|&weight| weight >= 0.0), "{found:?}");
            let mass: f64 = spectrum.iter().map(|node| node.curvature.max(0.0) * node.directions).sum();
            assert!((found.iter().sum::<f64>() * unit / mass - 1.0).abs() < 1e-12);
            spectrum.retain(|node| node.curvature > 0.0);
            spectrum.reverse();
            for (x, y) in weights(&spectrum, &grid, unit).iter().zip(&found) {
                assert!((x - y).abs() <= 1e-12 * y, "{x} {y}");
            }
        }
        let grid = Workload::last_iterate(0.0).curvatures(10);
        let node = |curvature| Curvature { curvature, directions: 3.0 };
        for (i, &h) in grid.iter().enumerate() {
            let found = weights(&[node(h)], &grid, 1.0);
            assert!(
                (found[i] - 3.0 * h).abs() < 1e-12 && (found.iter().sum::<f64>() - found[i]).abs() < 1e-12
            );
        }
        assert_eq!(weights(&[node(7.0)], &grid, 1.0), weights(&[node(1.0)], &grid, 1.0));
        assert_eq!(weights(&[node(-1.0), node(0.0)], &grid, 1.0), vec![0.0; grid.len()]);
    }

    fn correlation(x: &[f64], y: &[f64]) -> f64 {
        let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
        let product = |x: &[f64], y: &[f64]| -> f64 {
            x.iter().zip(y).map(|(a, b)| (a - mean(x)) * (b - mean(y))).sum()
        };
        product(x, y) / (product(x, x) * product(y, y)).sqrt()
    }

    #[test]
    fn the_spectrum_predicts_the_growths_that_trainings_measure() {
        let (model, dataset) = logistic_digits();
        let probe = Probe { noise_multiplier: 16.0, ..probe(&model, &dataset) };
        let never = AtomicBool::new(false);
        let mut products = 0;
        let spectrum = probe.spectrum(12, &never, || products += 1).unwrap().unwrap();
        assert_eq!(products, 3 * 12);
        assert_eq!(probe.spectrum(12, &never, || ()).unwrap().unwrap(), spectrum);
        let workload = probe.workload_of_spectrum(&spectrum, 0.05).unwrap();
        let rows = workload.responses(probe.steps).unwrap();
        let growths = probe.growths(10, &never, || ()).unwrap().unwrap();
        let predicted = |step: usize| rows.iter().map(|u| u[step].powi(2)).sum::<f64>();
        let predicted: Vec<f64> = growths.iter().map(|growth| predicted(growth.step)).collect();
        let measured: Vec<f64> = growths.iter().map(|growth| growth.mean).collect();
        let found = correlation(&predicted, &measured);
        assert!(found > 0.9, "{found}: {predicted:?} {measured:?}");
    }

    #[test]
    fn spectra_that_cannot_be_used_are_refused() {
        let (model, dataset) = logistic_digits();
        let probe = probe(&model, &dataset);
        let stopped = probe.spectrum(4, &AtomicBool::new(true), || ()).unwrap();
        assert_eq!(stopped, None);
        let flat = [Curvature { curvature: -1.0, directions: 650.0 }];
        for error in [
            probe.spectrum(0, &AtomicBool::new(false), || ()).unwrap_err(),
            probe.workload_of_spectrum(&flat, 0.05).unwrap_err(),
        ] {
            assert!(matches!(error, Error::Invalid(_)), "{error}");
        }
    }
}
