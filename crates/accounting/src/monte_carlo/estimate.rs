//! Means of bounded variables, with confidence bounds.

/// Sums over independent samples.
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

    /// The sums expected of `count` samples with this mean and variance.
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

/// Half-width of a confidence interval: the mean of variables in `[0, largest]` exceeds the sample mean by
/// more than this with probability at most `failure_probability`; likewise it falls short by more.
///
/// Source: Maurer and Pontil, "Empirical Bernstein bounds and sample variance penalization" (2009),
/// theorem 4.
pub(crate) fn half_width(tally: &Tally, largest: f64, failure_probability: f64) -> f64 {
    let ln_failures = (2.0 / failure_probability).ln();
    let count = tally.count as f64;
    (2.0 * tally.variance() * ln_failures / count).sqrt()
        + 7.0 * largest * ln_failures / (3.0 * (count - 1.0))
}
