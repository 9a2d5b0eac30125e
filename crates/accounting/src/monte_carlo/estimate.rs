//! Confidence bounds on means of bounded random variables.

/// Sums over independent samples, from which their mean and variance follow.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Tally {
    pub count: usize,
    pub sum: f64,
    pub squares: f64,
}

impl Tally {
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        self.sum += value;
        self.squares += value * value;
    }

    pub fn join(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            sum: self.sum + other.sum,
            squares: self.squares + other.squares,
        }
    }

    /// The expected sums of `count` samples with this mean and variance.
    pub fn rescaled_to(&self, count: usize) -> Self {
        let times = count as f64 / self.count as f64;
        Self { count, sum: times * self.sum, squares: times * self.squares }
    }

    pub fn mean(&self) -> f64 {
        self.sum / self.count as f64
    }

    /// The unbiased sample variance.
    pub fn variance(&self) -> f64 {
        let count = self.count as f64;
        ((self.squares - self.sum * self.sum / count) / (count - 1.0)).max(0.0)
    }
}

/// Half-width of a confidence interval for the mean of random variables in `[0, largest]`. The mean exceeds
/// the sample mean by more than this with probability at most `failure_probability`, and falls short of it by
/// more than this with at most the same probability.
///
/// Source: Maurer and Pontil, "Empirical Bernstein bounds and sample variance penalization" (2009),
/// theorem 4.
pub(crate) fn half_width(tally: &Tally, largest: f64, failure_probability: f64) -> f64 {
    let ln_failures = (2.0 / failure_probability).ln();
    let count = tally.count as f64;
    (2.0 * tally.variance() * ln_failures / count).sqrt()
        + 7.0 * largest * ln_failures / (3.0 * (count - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MonteCarlo;

    /// A rescaled pilot keeps its mean and variance. The number of samples that it predicts gives the wanted
    /// half-width, and a quarter of them does not.
    #[test]
    fn a_pilot_predicts_the_half_width() {
        let mut pilot = Tally::default();
        (0..8192).for_each(|i| pilot.add(f64::from(i % 7) * f64::from(i % 3)));
        let more = pilot.rescaled_to(1 << 20);
        assert!(more.count == 1 << 20 && (more.mean() / pilot.mean() - 1.0).abs() < 1e-12);
        assert!((more.variance() / pilot.variance() - 1.0).abs() < 2e-4);
        let settings =
            MonteCarlo { failure_probability: 1e-6, max_samples: 1 << 40, ..MonteCarlo::default() };
        for wanted in [0.1, 0.01, 0.001] {
            for largest in [12.0, 1e4] {
                let count = settings.samples_for(wanted, &pilot, largest);
                let width = |count| half_width(&pilot.rescaled_to(count), largest, 0.25 * 1e-6);
                assert!(width(count) <= 1.01 * wanted, "{wanted} {largest}: {count} give {}", width(count));
                assert!(
                    count == 8192 || width(count / 4) > wanted,
                    "{wanted} {largest}: {count} are too many"
                );
            }
        }
    }
}
