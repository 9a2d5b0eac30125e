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

    /// What so many samples like these would give.
    pub fn of_as_many(&self, count: usize) -> Self {
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

/// How far the mean of variables in `[0, most]` may be above the mean of the sample, but for probability
/// `failure`; by symmetry as far below.
///
/// Source: Maurer and Pontil, "Empirical Bernstein bounds and sample variance penalization" (2009), theorem 4.
pub(crate) fn half_width(tally: &Tally, most: f64, failure: f64) -> f64 {
    let ln_failures = (2.0 / failure).ln();
    let count = tally.count as f64;
    (2.0 * tally.variance() * ln_failures / count).sqrt() + 7.0 * most * ln_failures / (3.0 * (count - 1.0))
}
