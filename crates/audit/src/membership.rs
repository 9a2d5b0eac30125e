//! Distinguishing neighbours: the most powerful test, and the lower bound on mu that follows.
//!
//! A unit that follows the sequence g moves W R by clip_norm W g, so that
//!
//! > T = <W R, q> / (nu |q|),   q = W g,
//!
//! is normal with variance 1 and the mean of its neighbour plus mu = clip_norm |W g| / nu: it is the likelihood ratio, and no test is more
//! powerful. Of many units, some that take part and some that do not, mean and spread of T give a lower bound on mu.

use crate::attack::{Sequence, length, vector};
use crate::operator::Operator;
use crate::report::Test;
use crate::stats::{chi_squared_lower_quantile, normal_quantile};

/// One sequence, with the observations of the units that follow it.
pub(crate) struct Experiment {
    name: &'static str,
    /// W^T q / (nu |q|): T is the sum over steps of these times R.
    pub(crate) weights: Vec<f64>,
    /// T of the units that took part and of those that did not.
    with: Vec<f64>,
    without: Vec<f64>,
}

impl Experiment {
    pub(crate) fn new(
        name: &'static str,
        sequence: &Sequence,
        whitening: &Operator,
        steps: usize,
        noise_std: f64,
    ) -> Self {
        let image = whitening.apply(&vector(sequence, steps));
        let scale = 1.0 / (noise_std * length(whitening, sequence, steps));
        let weights = whitening.adjoint(&image, steps).into_iter().map(|w| w * scale).collect();
        Self { name, weights, with: Vec::new(), without: Vec::new() }
    }

    pub(crate) fn add(&mut self, takes_part: bool, statistic: f64) {
        if takes_part { self.with.push(statistic) } else { self.without.push(statistic) }
    }

    /// A lower bound on mu, at confidence 1 - alpha: (difference of means) / s' - z sqrt(1/r1 + 1/r0), where s' is above
    /// the standard deviation of T, and z so, each but with probability alpha / 2.
    pub(crate) fn mu_lower(&self, alpha: f64) -> f64 {
        let (with, without) = (Moments::of(&self.with), Moments::of(&self.without));
        let freedom = with.count + without.count - 2.0;
        let squares = with.squares + without.squares;
        let spread = (squares / chi_squared_lower_quantile(0.5 * alpha, freedom)).sqrt();
        let width = normal_quantile(0.5 * alpha) * (1.0 / with.count + 1.0 / without.count).sqrt();
        let bound = (with.mean - without.mean) / spread - width;
        // NaN stays: it rejects.
        if bound < 0.0 { 0.0 } else { bound }
    }

    pub(crate) fn test(&self, alpha: f64, mu_stated: f64) -> Test {
        Test::new(format!("neighbours apart: {}", self.name), self.mu_lower(alpha), mu_stated)
    }
}

struct Moments {
    count: f64,
    mean: f64,
    /// Sum of squared distances to the mean.
    squares: f64,
}

impl Moments {
    fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        Self { count, mean, squares: values.iter().map(|x| (x - mean).powi(2)).sum() }
    }
}
