use antinoise_input::larger;

/// Two numbers with the truth between them.
///
/// ```
/// use antinoise_accounting::{Composition, SampledGaussian};
/// let epsilon = Composition::new([SampledGaussian::new(2.0, 0.1, 100)?])?.epsilon(1e-5)?;
/// assert!(epsilon.lower <= epsilon.upper);
/// # Ok::<(), antinoise_accounting::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bracket {
    /// Never above the truth.
    pub lower: f64,
    /// Never below the truth: the figure to state.
    pub upper: f64,
}

/// The relative width of a bracket that is aimed at.
pub(super) const WIDTH: f64 = 8e-4;

impl Bracket {
    pub(super) const NOTHING: Self = Self { lower: 0.0, upper: 0.0 };

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
