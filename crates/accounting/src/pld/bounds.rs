use antinoise_input::larger;

/// A lower and an upper bound on a true value.
///
/// ```
/// use antinoise_accounting::{Composition, PoissonSampledGaussian};
/// let epsilon = Composition::new([PoissonSampledGaussian::new(2.0, 0.1, 100)?])?.epsilon(1e-5)?;
/// assert!(epsilon.lower <= epsilon.upper);
/// # Ok::<(), antinoise_accounting::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Lower bound.
    pub lower: f64,
    /// Upper bound, which is the figure to state.
    pub upper: f64,
}

/// Target relative width of the bounds.
pub(super) const WIDTH: f64 = 8e-4;

impl Bounds {
    pub(super) const ZERO: Self = Self { lower: 0.0, upper: 0.0 };

    pub(super) fn worse(self, other: Self) -> Self {
        Self { lower: self.lower.max(other.lower), upper: larger(self.upper, other.upper) }
    }

    pub(super) fn capped(self, most: f64) -> Self {
        Self { lower: self.lower.min(most), upper: self.upper.min(most) }
    }

    pub(super) fn narrow(&self) -> bool {
        self.upper - self.lower <= WIDTH * self.upper
    }
}
