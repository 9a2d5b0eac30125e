//! Distinguishing neighbours: the most powerful test, and the lower bound on mu that follows.
//!
//! A unit that follows the sequence g moves W R by clip_norm W g, so that
//!
//! > T = <W R, q> / (nu |q|),   q = W g,
//!
//! is normal with variance 1, and the means of neighbours are clip_norm |q| / nu apart (twice that where one
//! unit replaces another): it is the likelihood ratio, and no test is more powerful. The guess is that the
//! unit took part where T is above the middle of the two means.
//!
//! Whatever the mechanism is, if it is mu-GDP then guesses that err with rates a and b have a + b >= 2
//! Phi(-mu / 2). So of as many units that take part as units that do not, at most Phi(mu / 2) of the guesses
//! are right on average, and the share of right ones bounds mu from below. Only the experiments' independence
//! is assumed, and nothing about the law of T.

use crate::attack::{Sequence, length, vector};
use crate::operator::Operator;
use crate::report::Test;
use crate::stats::{binomial_lower_bound, binomial_upper_tail, normal_quantile, normal_tail};

/// One sequence, with the guesses about the units that follow it.
pub(crate) struct Experiment {
    name: &'static str,
    /// W^T q / (nu |q|): T is the sum over steps of these times R.
    pub(crate) weights: Vec<f64>,
    /// The middle of the two means of T.
    middle: f64,
    /// How far they are apart: mu of a mechanism that is what it claims to be, for this sequence.
    pub(crate) apart: f64,
    /// Guesses, as many of units that took part as of units that did not, and right ones.
    guesses: usize,
    right: usize,
}

impl Experiment {
    /// A unit adds `with` times g to R if it takes part, and `without` times g if it does not.
    pub(crate) fn new(
        name: &'static str,
        sequence: &Sequence,
        (whitening, steps): (&Operator, usize),
        noise_std: f64,
        (with, without): (f64, f64),
    ) -> Self {
        let image = whitening.apply(&vector(sequence, steps));
        let length = length(whitening, sequence, steps);
        let scale = 1.0 / (noise_std * length);
        let weights = whitening.adjoint(&image, steps).into_iter().map(|w| w * scale).collect();
        let (middle, apart) = (0.5 * (with + without), with - without);
        let [middle, apart] = [middle, apart].map(|mean| mean * length / noise_std);
        Self { name, weights, middle, apart, guesses: 0, right: 0 }
    }

    pub(crate) fn add(&mut self, takes_part: bool, statistic: f64) {
        self.guesses += 1;
        // NaN is no right guess of a unit that took part, and the tests of the noise reject it.
        self.right += usize::from((statistic > self.middle) == takes_part);
    }

    /// A lower bound on mu at confidence 1 - alpha: 2 Phi^-1 of a bound on the chance of a right guess.
    pub(crate) fn mu_lower(&self, alpha: f64) -> f64 {
        mu_of_chance(binomial_lower_bound(self.guesses, self.right, alpha))
    }

    pub(crate) fn test(&self, alpha: f64, mu_stated: f64) -> Test {
        Test::new(format!("neighbours apart: {}", self.name), self.mu_lower(alpha), mu_stated)
    }
}

/// mu of which Phi(mu / 2) is `chance`; 0 below one half.
fn mu_of_chance(chance: f64) -> f64 {
    if chance > 0.5 { 2.0 * normal_quantile(1.0 - chance) } else { 0.0 }
}

/// Most experiments that [`experiments_for`] asks for.
const MOST_EXPERIMENTS: usize = 1 << 26;
/// Standard deviations below their expectation at which right guesses are still to suffice.
const UNLUCKY: f64 = 3.0;

/// The number of experiments of a mechanism that is `mu`-GDP, half of them with the unit, that show `wanted`,
/// less than mu, at confidence 1 - alpha, but in one of 700 audits.
pub(crate) fn experiments_for(mu: f64, wanted: f64, alpha: f64) -> usize {
    let chance = normal_tail(-0.5 * mu);
    let wanted = normal_tail(-0.5 * wanted);
    let suffice = |n: usize| {
        let mean = n as f64 * chance;
        let right = (mean - UNLUCKY * (mean * (1.0 - chance)).sqrt() - 1.0).max(0.0);
        binomial_upper_tail(n, right as usize, wanted) <= alpha
    };
    let mut high = 64;
    while high < MOST_EXPERIMENTS && !suffice(high) {
        high *= 2;
    }
    let mut low = high / 2;
    while high - low > low / 64 + 1 {
        let middle = low + (high - low) / 2;
        if suffice(middle) { high = middle } else { low = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Guesses of a mechanism that is exactly mu-GDP: the bound is above mu as rarely as it says, and with as
    /// many experiments as are asked for it is above what is wanted.
    #[test]
    fn bounds_hold_as_often_as_they_say_and_are_sharp() {
        let mut random = Random(3);
        let operator = Operator::Toeplitz(vec![1.0]);
        let alpha = 0.02;
        for mu in [0.7, 1.0, 3.0] {
            let n = experiments_for(mu, 0.9 * mu, alpha);
            let chance = normal_tail(-0.5 * mu) * 2f64.powi(64);
            let mut above = 0;
            for _ in 0..40 {
                let mut experiment =
                    Experiment::new("", &vec![(0, 1.0)], (&operator, 1), 1.0 / mu, (1.0, 0.0));
                for i in 0..n {
                    let right = (random.next() as f64) < chance;
                    let takes_part = i % 2 == 0;
                    experiment.add(takes_part, if right == takes_part { mu } else { 0.0 });
                }
                let lower = experiment.mu_lower(alpha);
                above += usize::from(lower > mu);
                assert!(lower >= 0.89 * mu, "{mu}: {lower} of {n}");
            }
            // Binomial(40, 0.02) is above 5 once in 10,000.
            assert!(above <= 5, "{mu}: {above}");
        }
    }
}
