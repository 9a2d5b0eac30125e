//! Guesses about one run, and the lower bound on epsilon that they prove.

use antinoise_input::{InvalidParameter, between, in_open_unit};

use crate::stats::log_binomial;

/// The result of an auditor's guesses about one run. Each of `canaries` canaries was included independently
/// with probability 1/2; the auditor guessed about `guesses` of them, a number that was fixed in advance, and
/// abstained on the rest.
///
/// ```
/// use antinoise_audit::Guesses;
/// // All of 100 guesses are right. Under epsilon each is right with probability 1 / (1 + e^-epsilon) at most.
/// let found = Guesses::new(1000, 100, 100)?.epsilon_lower(0.0, 0.05)?;
/// let accuracy = 0.05f64.powf(0.01);
/// assert!((found / (accuracy / (1.0 - accuracy)).ln() - 1.0).abs() < 1e-9);
/// // Half of them right proves nothing.
/// assert_eq!(Guesses::new(1000, 100, 50)?.epsilon_lower(1e-5, 0.05)?, 0.0);
/// # Ok::<(), antinoise_input::InvalidParameter>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guesses {
    canaries: usize,
    guesses: usize,
    correct: usize,
}

/// Number of bisections, which determine a double to its last bits.
const HALVINGS: usize = 60;
/// Maximum epsilon in the search; no number of guesses proves more.
const MOST_EPSILON: f64 = 64.0;

impl Guesses {
    /// Creates the result in which `correct` of `guesses` guesses were right.
    ///
    /// # Errors
    /// Unless `correct <= guesses <= canaries` and there is at least one canary.
    pub fn new(canaries: usize, guesses: usize, correct: usize) -> Result<Self, InvalidParameter> {
        antinoise_input::at_least("canaries", canaries, 1)?;
        between("guesses", guesses, 0, canaries, "canaries")?;
        between("correct", correct, 0, guesses, "guesses")?;
        Ok(Self { canaries, guesses, correct })
    }

    /// Upper bound on the probability of at least `correct` right guesses about an (epsilon, delta)-private
    /// mechanism, under which neighbours differ by adding, removing or zeroing out a canary:
    ///
    /// > P(W >= v) + 2 m delta max over i of P(v > W >= v - i) / i,   W ~ Binomial(r, 1 / (1 + e^-epsilon)),
    ///
    /// for m canaries, r guesses and v correct ones.
    ///
    /// # Source
    /// Steinke, Nasr and Jagielski (2023), Privacy auditing with one (1) training run, Theorem 5.2 and
    /// appendix D.
    pub fn p_value(self, epsilon: f64, delta: f64) -> f64 {
        let probability = |k: usize| log_guesses(self.guesses, k, epsilon).exp();
        let tail: f64 = (self.correct..=self.guesses).rev().map(probability).sum();
        let (mut below, mut densest) = (0.0, 0.0f64);
        for i in 1..=self.correct {
            below += probability(self.correct - i);
            densest = densest.max(below / i as f64);
        }
        (tail + 2.0 * self.canaries as f64 * delta * densest).min(1.0)
    }

    /// A lower bound on the mechanism's epsilon at this delta, at confidence 1 - `alpha`: an (epsilon,
    /// delta)-private mechanism gives as many right guesses with probability at most `alpha`. It is 0 if the
    /// guesses prove nothing.
    ///
    /// # Errors
    /// If `delta` is not in \[0, 1) or `alpha` not in (0, 1).
    pub fn epsilon_lower(self, delta: f64, alpha: f64) -> Result<f64, InvalidParameter> {
        antinoise_input::below_one("delta", delta)?;
        in_open_unit("alpha", alpha)?;
        let (mut low, mut high) = (0.0, MOST_EPSILON);
        // The result is an epsilon whose p-value was computed, so that rounding and non-monotone p-values can
        // only make the bound weaker.
        for _ in 0..HALVINGS {
            let middle = 0.5 * (low + high);
            if self.p_value(middle, delta) <= alpha { low = middle } else { high = middle }
        }
        Ok(low)
    }
}

/// ln P(W = k), W ~ Binomial(n, 1 / (1 + e^-epsilon)).
fn log_guesses(n: usize, k: usize, epsilon: f64) -> f64 {
    let log_right = -(-epsilon).exp().ln_1p();
    log_binomial(n, k, log_right, log_right - epsilon)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exact probability that the bound exceeds the true epsilon, for randomised response, the worst-case
    /// mechanism: each guess is right with probability e^epsilon / (1 + e^epsilon), and with probability
    /// delta (here: always) everything is revealed.
    #[test]
    fn the_bound_holds_as_often_as_it_says() {
        let mut nearest = 0f64;
        for guesses in [1, 2, 7, 40, 200] {
            for epsilon in [0.1, 1.0, 3.0] {
                for alpha in [0.5, 0.05, 1e-3] {
                    let wrong: f64 = (0..=guesses)
                        .filter(|&v| {
                            let of = Guesses::new(guesses, guesses, v).unwrap();
                            of.epsilon_lower(0.0, alpha).unwrap() > epsilon
                        })
                        .map(|v| log_guesses(guesses, v, epsilon).exp())
                        .sum();
                    assert!(wrong <= alpha * (1.0 + 1e-9), "{guesses} {epsilon} {alpha}: {wrong}");
                    nearest = nearest.max(wrong / alpha);
                }
            }
        }
        assert!(nearest > 0.8, "far from sharp: {nearest}");
    }

    /// A mechanism that reveals everything with probability delta is (0, delta)-private, so that the bound
    /// may be above 0 with probability at most alpha.
    #[test]
    fn delta_may_reveal_all() {
        for (canaries, delta) in [(100, 1e-3), (1000, 1e-4), (20, 0.01)] {
            // Each canary is revealed independently with probability delta; the other guesses are random.
            let alpha = 0.05;
            let as_epsilon = ((1.0 + delta) / (1.0f64 - delta)).ln();
            let wrong: f64 = (0..=canaries)
                .filter(|&v| {
                    Guesses::new(canaries, canaries, v).unwrap().epsilon_lower(delta, alpha).unwrap() > 0.0
                })
                .map(|v| log_guesses(canaries, v, as_epsilon).exp())
                .sum();
            assert!(wrong <= alpha, "{canaries} {delta}: {wrong}");
        }
    }

    #[test]
    fn more_correct_guesses_prove_more_and_a_larger_delta_less() {
        for guesses in [10, 300] {
            let lower = |correct, delta| {
                Guesses::new(1000, guesses, correct).unwrap().epsilon_lower(delta, 0.05).unwrap()
            };
            for correct in 1..=guesses {
                assert!(lower(correct, 1e-5) >= lower(correct - 1, 1e-5) - 1e-9, "{correct} of {guesses}");
                assert!(lower(correct, 1e-3) <= lower(correct, 1e-5) + 1e-9, "{correct} of {guesses}");
            }
            assert!(lower(guesses, 0.0) > 1.0 && lower(guesses, 0.0).is_finite());
        }
        assert!(Guesses::new(10, 11, 0).is_err() && Guesses::new(10, 5, 6).is_err());
        assert!(Guesses::new(0, 0, 0).is_err());
        assert!(Guesses::new(1, 1, 1).unwrap().epsilon_lower(-0.1, 0.05).is_err());
        assert!(Guesses::new(1, 1, 1).unwrap().epsilon_lower(0.0, 1.0).is_err());
    }
}
