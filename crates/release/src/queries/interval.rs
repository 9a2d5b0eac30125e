//! Figures with 95% intervals: sums, and ratios of two sums.

/// The 97.5% quantile of the standard normal distribution.
pub(crate) const QUANTILE: f64 = 1.959_963_984_540_054;

/// A figure and its 95% interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Interval {
    pub(crate) value: f64,
    pub(crate) lower: f64,
    pub(crate) upper: f64,
}

/// A ratio of two noisy sums, jointly normal around their true values with known covariance.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ratio {
    pub(crate) above: f64,
    pub(crate) below: f64,
    pub(crate) above_variance: f64,
    pub(crate) covariance: f64,
    pub(crate) below_variance: f64,
    /// Bound on the difference between the true ratio and the ratio of interest, because rows were rounded.
    pub(crate) slack: f64,
}

impl Interval {
    /// The interval of a normal figure. For a true value that is whole, both ends are rounded inwards: the
    /// interval contains the same whole numbers.
    pub(crate) fn new(value: f64, deviation: f64, is_whole: bool) -> Self {
        let (lower, upper) = (value - QUANTILE * deviation, value + QUANTILE * deviation);
        if is_whole {
            // If the noise is so small that the interval contains no whole number, it is widened to the
            // rounded value.
            let value = value.round_ties_even();
            Self { value, lower: lower.ceil().min(value), upper: upper.floor().max(value) }
        } else {
            Self { value, lower, upper }
        }
    }

    /// Fieller's set of a ratio in \[least, most\]: all m for which above - m below, a normal number with
    /// mean 0 at the true m, is within 1.96 standard deviations of 0. It contains the true m, whatever its
    /// value, with probability 95%.
    ///
    /// If `below` is less than 1.96 standard deviations above 0, the set is unbounded, and the interval is
    /// all of \[least, most\]. The value is then shrunk towards 0: the divisor is those 1.96 standard
    /// deviations.
    pub(crate) fn of_ratio(ratio: Ratio, least: f64, most: f64) -> Self {
        let Ratio { above, below, above_variance, covariance, below_variance, slack } = ratio;
        let surely = QUANTILE * below_variance.sqrt();
        let within = |x: f64| x.clamp(least, most);
        if below <= surely {
            return Self { value: within(above / surely), lower: least, upper: most };
        }
        // The roots of above^2 - 2 m above below + m^2 below^2 = z^2 (variance of above - m below), divided
        // by below^2.
        let (m, z) = (above / below, QUANTILE / below);
        let share = z * z * below_variance;
        let middle = m - z * z * covariance;
        let spread = above_variance - 2.0 * m * covariance + m * m * below_variance;
        let lost = z * z * (above_variance * below_variance - covariance * covariance);
        let half = z * (spread - lost).max(0.0).sqrt();
        let end = |sign: f64| within((middle + sign * half) / (1.0 - share) + sign * slack);
        let value = within(m);
        Self { value, lower: end(-1.0).min(value), upper: end(1.0).max(value) }
    }

    /// This interval moved by `by`, and clamped to \[least, most\].
    pub(crate) fn moved(self, by: f64, least: f64, most: f64) -> Self {
        let within = |x: f64| (x + by).clamp(least, most);
        Self { value: within(self.value), lower: within(self.lower), upper: within(self.upper) }
    }

    /// Raises the figure to at least `least`, and its interval with it; the lower end is at least 0.
    pub(crate) fn raise(&mut self, least: f64) {
        self.value = self.value.max(least);
        self.upper = self.upper.max(self.value);
        self.lower = self.lower.max(0.0).min(self.value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A simple generator, so that tests need no further crate.
    fn random(state: &mut u64) -> f64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Every m in [least, most] is in the interval exactly if it satisfies Fieller's inequality, or the
    /// interval is the whole range.
    #[test]
    fn an_interval_of_a_ratio_is_the_set_that_fieller_defines() {
        let (mut state, mut bounded) = (1, 0);
        for _ in 0..20_000 {
            let mut next = |scale: f64| (2.0 * random(&mut state) - 1.0) * scale;
            let (above, below) = (next(100.0), next(100.0) + 50.0);
            let (a, b, c) = (next(10.0), next(10.0), next(10.0));
            let (above_variance, covariance, below_variance) = (a * a, a * b, b * b + c * c);
            let (least, most) = (-1.0 + next(1.0), 1.5 + next(0.5));
            let slack = 0.0;
            let ratio = Ratio { above, below, above_variance, covariance, below_variance, slack };
            let told = Interval::of_ratio(ratio, least, most);
            assert!(least <= told.lower && told.lower <= told.value, "{ratio:?} {told:?}");
            assert!(told.value <= told.upper && told.upper <= most, "{ratio:?} {told:?}");
            if below <= QUANTILE * below_variance.sqrt() {
                assert_eq!((told.lower, told.upper), (least, most));
                continue;
            }
            bounded += 1;
            for i in 0..=50 {
                let m = least + (most - least) * f64::from(i) / 50.0;
                let variance = above_variance - 2.0 * m * covariance + m * m * below_variance;
                let beyond = (above - m * below).abs() - QUANTILE * variance.max(0.0).sqrt();
                let is_in = told.lower - 1e-9 <= m && m <= told.upper + 1e-9;
                assert!(beyond > -1e-7 || is_in, "{ratio:?} {told:?} {m} {beyond}");
                // If the whole set lies outside, the interval is the nearest end.
                let at_end = told.lower == told.upper;
                let inside = told.lower + 1e-9 < m && m < told.upper - 1e-9;
                assert!(beyond < 1e-7 || !inside || at_end, "{ratio:?} {told:?} {m} {beyond}");
            }
        }
        assert!(bounded > 5_000, "{bounded}");
    }
}
