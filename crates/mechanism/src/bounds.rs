//! Closed-form bounds on losses, and the regret of training that they lead to.

use std::f64::consts::PI;

use antinoise_input::{at_least, non_negative, positive};

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

/// Returns (2 + ln((2 n + 1) / 3) + ln(2 n + 1) / (2 n)) / pi, a lower bound on the RMS loss of every
/// strategy for prefix sums over n = `steps` steps, single participation and zero-out adjacency.
///
/// # Errors
/// When `steps` is 0.
///
/// # Source
/// Henzinger, Upadhyay and Upadhyay (2022), theorem 2, as Choquette-Choo et al. (2023), appendix J.1, quote
/// it for zCDP.
///
/// ```
/// use antinoise_mechanism::bounds;
/// assert!(bounds::prefix_rms_loss_at_least(1)? < 1.0);
/// let (rms, max) = (bounds::prefix_rms_loss_at_least(1000)?, bounds::prefix_max_loss_at_most(1000)?);
/// assert!(rms < max && max < rms + 0.6);
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
pub fn prefix_rms_loss_at_least(steps: usize) -> Result<f64> {
    let n = at_least("steps", steps, 1)? as f64;
    let odd = 2.0 * n + 1.0;
    Ok((2.0 + (odd / 3.0).ln() + odd.ln() / (2.0 * n)) / PI)
}

/// Returns 1 + (gamma + ln(n)) / pi, an upper bound on the max loss of `toeplitz+square-root` for prefix sums
/// over n = `steps` steps, single participation and zero-out adjacency. gamma is Euler's constant.
///
/// With columns of norm 1 the bound is [`prefix_max_loss_at_most`] (theorem 2.11).
///
/// # Errors
/// When `steps` is 0.
///
/// # Source
/// Theorem 2.7 of arXiv 2506.08201.
///
/// ```
/// use antinoise_mechanism::bounds;
/// assert!(bounds::toeplitz_max_loss_at_most(1000)? < bounds::prefix_max_loss_at_most(1000)? + 0.19);
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
pub fn toeplitz_max_loss_at_most(steps: usize) -> Result<f64> {
    const GAMMA: f64 = 0.577_215_664_901_532_9;
    Ok(prefix_max_loss_at_most(steps)? + GAMMA / PI)
}

/// Returns sqrt(h (1 + h)), an upper bound on the max loss of `tree` for prefix sums over n = `steps` steps,
/// single participation and zero-out adjacency. h is log2(n) rounded up, and at least 1: one step has a node
/// too.
///
/// # Errors
/// When `steps` is 0.
///
/// # Source
/// Theorem 2.20 of arXiv 2506.08201.
///
/// ```
/// assert_eq!(antinoise_mechanism::bounds::tree_max_loss_at_most(1000)?, 110f64.sqrt());
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
pub fn tree_max_loss_at_most(steps: usize) -> Result<f64> {
    let last = at_least("steps", steps, 1)? - 1;
    let height = f64::from((usize::BITS - last.leading_zeros()).max(1));
    Ok((height * (1.0 + height)).sqrt())
}

/// Returns 1 + (1/n) sum_{a < n} 1 / sin(pi (2 a + 1) / (2 n)), an upper bound on the RMS loss of `fourier`
/// for prefix sums over n = `steps` steps, single participation and zero-out adjacency. The sum takes n
/// operations.
///
/// It counts real and imaginary parts of the noise, of which the mechanism adds only the real ones.
///
/// # Errors
/// When `steps` is 0.
///
/// # Source
/// Choquette-Choo et al. (2023), corollary J.1, which is for zCDP.
///
/// ```
/// assert_eq!(antinoise_mechanism::bounds::fourier_rms_loss_at_most(1)?, 2.0);
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
pub fn fourier_rms_loss_at_most(steps: usize) -> Result<f64> {
    let n = at_least("steps", steps, 1)? as f64;
    let sum: f64 = (0..steps).map(|a| 1.0 / (PI * (2.0 * a as f64 + 1.0) / (2.0 * n)).sin()).sum();
    Ok(1.0 + sum / n)
}

/// Online gradient descent on convex losses with noise of known size, and its regret.
///
/// The model of step t is theta_t = theta_1 - eta (g_1 + ... + g_{t-1} + z_{t-1}) for gradients g and noise z
/// of their prefix sums.
///
/// ```
/// use antinoise_mechanism::bounds::NoisyDescent;
/// let without = NoisyDescent { lipschitz: 1.0, distance: 10.0, steps: 10_000, dim: 100, noise: 0.0 };
/// let noisy = NoisyDescent { noise: 0.5, ..without };
/// assert!((without.regret_at_most(without.best_rate()?)? - 0.1).abs() < 1e-12);
/// assert!(noisy.best_rate()? < without.best_rate()?);
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NoisyDescent {
    /// L: maximum norm of a gradient, such as the clip norm.
    pub lipschitz: f64,
    /// D: distance from the first model to the one that is compared with.
    pub distance: f64,
    /// n: number of steps.
    pub steps: usize,
    /// m: number of parameters.
    pub dim: usize,
    /// s: root mean square, over the steps, of the standard deviation of a coordinate of z: noise multiplier
    /// times clip norm times RMS loss, over the batch size where gradients are means.
    pub noise: f64,
}

impl NoisyDescent {
    fn check(&self) -> Result<()> {
        positive("lipschitz", self.lipschitz)?;
        positive("distance", self.distance)?;
        at_least("steps", self.steps, 1)?;
        at_least("dim", self.dim, 1)?;
        non_negative("noise", self.noise)?;
        Ok(())
    }

    /// L^2 / 2 + L s sqrt(m): what a unit of the rate costs in each step.
    fn cost_of_rate(&self) -> f64 {
        self.lipschitz * (0.5 * self.lipschitz + self.noise * (self.dim as f64).sqrt())
    }

    /// Returns eta (L^2 / 2 + L s sqrt(m)) + D^2 / (2 eta n), an upper bound on the expected regret in the
    /// mean of the steps: how much larger the losses of the models are than that of any one model at distance
    /// D.
    ///
    /// Losses are convex, may be chosen by what was released before, and have gradients of norm at most L. In
    /// one pass over independent examples it bounds the excess risk of the mean of the models.
    ///
    /// Without noise the models satisfy sum_t <g_t, theta_t - theta> <= D^2 / (2 eta) + eta n L^2 / 2. Noise
    /// moves theta_t by eta z_{t-1}, which adds at most L eta E ||z_{t-1}||, and the mean of E ||z_t|| is at
    /// most s sqrt(m).
    ///
    /// # Errors
    /// When a field or `rate` is not positive, or `noise` is negative.
    ///
    /// # Source
    /// Denisov et al. (2022), proposition 4.1. The print has L^2 for L^2 / 2, differences of squared norms
    /// for the square of a distance, and no sqrt(m).
    ///
    /// ```
    /// use antinoise_mechanism::bounds::NoisyDescent;
    /// let descent = NoisyDescent { lipschitz: 1.0, distance: 1.0, steps: 100, dim: 1, noise: 0.0 };
    /// assert!((descent.regret_at_most(0.1)? - 0.1).abs() < 1e-12);
    /// # Ok::<(), antinoise_mechanism::Error>(())
    /// ```
    pub fn regret_at_most(&self, rate: f64) -> Result<f64> {
        self.check()?;
        let eta = positive("rate", rate)?;
        Ok(eta * self.cost_of_rate() + self.distance.powi(2) / (2.0 * eta * self.steps as f64))
    }

    /// Returns the rate with the least [`regret_at_most`](Self::regret_at_most): D / sqrt(n (L^2 + 2 L s
    /// sqrt(m))).
    ///
    /// # Errors
    /// When a field is not positive, or `noise` is negative.
    ///
    /// ```
    /// use antinoise_mechanism::bounds::NoisyDescent;
    /// let descent = NoisyDescent { lipschitz: 1.0, distance: 3.0, steps: 100, dim: 4, noise: 2.0 };
    /// let rate = descent.best_rate()?;
    /// assert!(descent.regret_at_most(rate)? < descent.regret_at_most(1.1 * rate)?);
    /// assert!(descent.regret_at_most(rate)? < descent.regret_at_most(0.9 * rate)?);
    /// # Ok::<(), antinoise_mechanism::Error>(())
    /// ```
    pub fn best_rate(&self) -> Result<f64> {
        self.check()?;
        Ok(self.distance / (2.0 * self.steps as f64 * self.cost_of_rate()).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::Objective;
    use crate::design::StrategySpec;
    use crate::{Adjacency, Class, Problem};

    fn loss(strategy: &str, problem: &Problem) -> (f64, f64, f64) {
        let found = strategy.parse::<StrategySpec>().unwrap().design(problem).unwrap();
        let loss = found.value.loss(&problem.workload, &problem.participation, Adjacency::ZeroOut).unwrap();
        (loss.max_loss, loss.rms_loss, found.gap.unwrap_or(0.0))
    }

    #[test]
    fn the_dense_optimum_of_rms_is_not_below_its_bound() {
        for steps in [1, 2, 3, 5, 8, 16, 33, 64, 128, 256] {
            let (_, found, gap) = loss("dense", &Problem::prefix(steps));
            let (lower, upper) =
                (prefix_rms_loss_at_least(steps).unwrap(), prefix_max_loss_at_most(steps).unwrap());
            assert!(gap < 1e-3, "{steps} steps: gap {gap}");
            assert!(lower < found * (1.0 - gap) && found <= upper, "{steps}: {lower} {found} {upper}");
            assert!(found - lower < 0.3, "{steps} steps: {lower} {found}");
        }
    }

    #[test]
    fn classes_are_not_above_their_bounds() {
        for steps in (1..40).chain([64, 100, 128, 129, 1000, 4096]) {
            let problem = Problem::prefix(steps).with_objective(Objective::Max);
            for (strategy, most, slack) in [
                ("toeplitz+square-root", toeplitz_max_loss_at_most(steps), 0.25),
                ("toeplitz+square-root+column-normalized", prefix_max_loss_at_most(steps), 0.35),
                ("tree", tree_max_loss_at_most(steps), 2.5),
            ] {
                let ((found, _, _), most) = (loss(strategy, &problem), most.unwrap());
                let place = format!("{strategy}, {steps} steps: {found} {most}");
                assert!(found <= most * (1.0 + 1e-12) && found > most - slack, "{place}");
            }
        }
    }

    #[test]
    fn fourier_is_not_above_its_bound() {
        for steps in [1, 2, 3, 7, 16, 100, 512] {
            let (_, found, _) = loss("fourier", &Problem::prefix(steps));
            let most = fourier_rms_loss_at_most(steps).unwrap();
            assert!(found <= most && most < 3.0 * found, "{steps} steps: {found} {most}");
        }
    }

    /// The mean regret of runs on absolute losses in the plane, whose centres follow the models so that
    /// gradients are large, with noise of independent and of correlated steps.
    #[test]
    fn regret_of_runs_is_not_above_its_bound() {
        let mut state = 3u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 11) + 1) as f64 / (1u64 << 53) as f64
        };
        let mut cases = 0;
        for steps in [10, 100, 400] {
            for (noise, growth) in [(0.0, 0.0), (0.3, 0.0), (2.0, 0.0), (0.5, 1.0)] {
                // The standard deviation of the noise in the prefix sum of t steps.
                let std = |t: usize| noise * (1.0 + growth * t as f64).sqrt();
                let square: f64 = (1..steps).map(|t| std(t).powi(2)).sum::<f64>() / steps as f64;
                let descent =
                    NoisyDescent { lipschitz: 1.0, distance: 2.0, steps, dim: 2, noise: square.sqrt() };
                let best = descent.best_rate().unwrap();
                for rate in [0.3 * best, best, 3.0 * best] {
                    let (runs, mut total) = (100, 0.0);
                    for _ in 0..runs {
                        let (mut sum, mut excess) = ((0.0, 0.0), 0.0);
                        for t in 0..steps {
                            let (angle, size) = (
                                std::f64::consts::TAU * uniform(),
                                std(t) * (-2.0 * uniform().ln()).sqrt() * f64::from(u8::from(t > 0)),
                            );
                            let z = (size * angle.cos(), size * angle.sin());
                            let model = (2.0 - rate * (sum.0 + z.0), -rate * (sum.1 + z.1));
                            let norm = model.0.hypot(model.1);
                            // The loss is the norm, least at 0, at distance 2 from the first model.
                            excess += norm;
                            if norm > 0.0 {
                                sum = (sum.0 + model.0 / norm, sum.1 + model.1 / norm);
                            }
                        }
                        total += excess / steps as f64;
                    }
                    let most = descent.regret_at_most(rate).unwrap();
                    let found = total / f64::from(runs);
                    assert!(found <= most * 1.02, "{steps} {noise} {growth} {rate}: {found} {most}");
                    assert!(most <= 12.0 * found, "{steps} {noise} {growth} {rate}: {found} {most}");
                    cases += 1;
                }
            }
        }
        assert_eq!(cases, 36);
        let descent = NoisyDescent { lipschitz: 1.0, distance: 2.0, steps: 5, dim: 2, noise: 0.0 };
        for (refused, name) in [
            (NoisyDescent { lipschitz: 0.0, ..descent }, "lipschitz"),
            (NoisyDescent { distance: f64::NAN, ..descent }, "distance"),
            (NoisyDescent { steps: 0, ..descent }, "steps"),
            (NoisyDescent { dim: 0, ..descent }, "dim"),
            (NoisyDescent { noise: -1.0, ..descent }, "noise"),
        ] {
            assert!(refused.best_rate().unwrap_err().to_string().starts_with(name));
        }
        assert!(descent.regret_at_most(0.0).unwrap_err().to_string().starts_with("rate"));
    }

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
        for refused in [
            prefix_max_loss_at_least(0),
            prefix_max_loss_at_most(0),
            prefix_rms_loss_at_least(0),
            toeplitz_max_loss_at_most(0),
            tree_max_loss_at_most(0),
            fourier_rms_loss_at_most(0),
        ] {
            assert!(refused.unwrap_err().to_string().starts_with("steps is 0"));
        }
    }
}
