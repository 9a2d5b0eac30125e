//! Membership tests, the most powerful tests that distinguish neighbours, and the lower bound on mu that
//! follows from their guesses.
//!
//! Let W be the matrix that whitens the noise. A unit that follows the sequence g changes W R by clip_norm W
//! g, so that
//!
//! > T = <W R, q> / (nu |q|),   q = W g,
//!
//! is normal with variance 1, and the means for neighbours differ by clip_norm |q| / nu (twice that if one
//! unit replaces another). T is the log-likelihood ratio up to an affine map, so that no test is more
//! powerful. The guess is that the unit took part if T exceeds the midpoint of the two means.
//!
//! For any mu-GDP mechanism, guesses with error rates a and b satisfy a + b >= 2 Phi(-mu / 2). So if half of
//! the units take part, at most a fraction Phi(mu / 2) of the guesses is right on average, and the fraction
//! of right guesses gives a lower bound on mu. This assumes only that guesses are independent, and nothing
//! about the distribution of T.

use crate::operator::Operator;
use crate::report::Test;
use crate::stats::{binomial_lower_bound, binomial_upper_tail, normal_quantile, normal_tail};
use crate::worst_case::{Sequence, length, vector};

/// The membership test of one sequence, with the guesses about the units that follow it.
pub(crate) struct MembershipTest {
    name: &'static str,
    /// W^T q / (nu |q|): T is the sum over steps of these weights times R.
    pub(crate) weights: Vec<f64>,
    /// The midpoint of the two means of T.
    middle: f64,
    /// The difference of the two means, which is the mu of this sequence for a mechanism that satisfies its
    /// claim exactly.
    pub(crate) apart: f64,
    /// The number of guesses, half of them about units that took part, and the number of right guesses.
    guesses: usize,
    right: usize,
}

impl MembershipTest {
    /// Creates the test of a unit that adds `with` times g to R if it takes part, and `without` times g if it
    /// does not.
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
        // A NaN never counts as a right guess for a unit that took part, and the tests of the noise reject
        // it.
        self.right += usize::from((statistic > self.middle) == takes_part);
    }

    /// A lower bound on mu at confidence 1 - alpha: 2 Phi^-1 of a lower bound on the probability of a right
    /// guess.
    pub(crate) fn mu_lower(&self, alpha: f64) -> f64 {
        mu_of_chance(binomial_lower_bound(self.guesses, self.right, alpha))
    }

    pub(crate) fn test(&self, alpha: f64, mu_stated: f64) -> Test {
        Test::new(format!("neighbours apart: {}", self.name), self.mu_lower(alpha), mu_stated)
    }
}

/// The mu with Phi(mu / 2) = `chance`; 0 for a chance below one half.
fn mu_of_chance(chance: f64) -> f64 {
    if chance > 0.5 { 2.0 * normal_quantile(1.0 - chance) } else { 0.0 }
}

/// Maximum result of [`guesses_for`], which suffices for a mu of a thousandth.
const MOST_GUESSES: usize = 1 << 36;
/// Number of standard deviations by which the number of right guesses may be below its expectation and still
/// suffice.
const UNLUCKY: f64 = 3.0;

/// The number of guesses about a mechanism that is exactly `mu`-GDP, half of them about units that take part,
/// by which all but one in 700 audits prove the bound `wanted` < mu at confidence 1 - alpha.
pub(crate) fn guesses_for(mu: f64, wanted: f64, alpha: f64) -> usize {
    let chance = normal_tail(-0.5 * mu);
    let wanted = normal_tail(-0.5 * wanted);
    let suffice = |n: usize| {
        let mean = n as f64 * chance;
        let right = (mean - UNLUCKY * (mean * (1.0 - chance)).sqrt() - 1.0).max(0.0);
        binomial_upper_tail(n, right as usize, wanted) <= alpha
    };
    let mut high = 64;
    while high < MOST_GUESSES && !suffice(high) {
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

    /// For a mechanism that is exactly mu-GDP, the bound exceeds mu as rarely as stated, and with the
    /// computed number of guesses it exceeds the wanted mu.
    #[test]
    fn bounds_hold_as_often_as_they_say_and_are_sharp() {
        let mut random = Random(3);
        let operator = Operator::Toeplitz(vec![1.0]);
        let alpha = 0.02;
        for mu in [0.7, 1.0, 3.0] {
            let n = guesses_for(mu, 0.9 * mu, alpha);
            let chance = normal_tail(-0.5 * mu) * 2f64.powi(64);
            let mut above = 0;
            for _ in 0..40 {
                let mut test = MembershipTest::new("", &vec![(0, 1.0)], (&operator, 1), 1.0 / mu, (1.0, 0.0));
                for i in 0..n {
                    let right = (random.next() as f64) < chance;
                    let takes_part = i % 2 == 0;
                    test.add(takes_part, if right == takes_part { mu } else { 0.0 });
                }
                let lower = test.mu_lower(alpha);
                above += usize::from(lower > mu);
                assert!(lower >= 0.89 * mu, "{mu}: {lower} of {n}");
            }
            // Binomial(40, 0.02) exceeds 5 with probability 1e-4.
            assert!(above <= 5, "{mu}: {above}");
        }
    }
}
