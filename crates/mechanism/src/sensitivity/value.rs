//! The value of a sensitivity, and the theorem that proves it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::numeric::limits::{norm_in_range, out_of_range};
use crate::{Adjacency, Result};

/// Whether a sensitivity is exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// An exact value: some pair of adjacent inputs attains it.
    Exact,
    /// An upper bound: no pair of adjacent inputs exceeds it.
    UpperBound,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exact => "exact",
            Self::UpperBound => "upper bound",
        })
    }
}

/// sens(C, Pi) for gradients of norm at most 1, and the result that proves it.
///
/// ```
/// use antinoise_mechanism::{Adjacency, Participation, Strategy, strategy::Toeplitz};
/// let twice = Participation::Cyclic { min_sep: 2, max_participations: 2 };
/// let found = Toeplitz::new(3, vec![1.0; 3])?.sensitivity(&twice)?;
/// assert_eq!(found.value, 6f64.sqrt()); // columns 0 and 2 add up to (1, 1, 2)
/// assert_eq!(found.under(Adjacency::ReplaceOne).value, 2.0 * 6f64.sqrt());
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Sensitivity {
    /// The l2 sensitivity, in clip norms.
    pub value: f64,
    /// Whether the value is exact or an upper bound.
    pub kind: Kind,
    /// The theorem or lemma that proves the value.
    pub source: String,
}

impl Sensitivity {
    /// # Errors
    /// When the value is NaN, or its square is outside the range of double precision.
    pub(crate) fn exact(value: f64, source: &str) -> Result<Self> {
        Self { value, kind: Kind::Exact, source: source.into() }.checked()
    }

    /// # Errors
    /// As [`Sensitivity::exact`].
    pub(crate) fn upper_bound(value: f64, source: &str) -> Result<Self> {
        Self { value, kind: Kind::UpperBound, source: source.into() }.checked()
    }

    fn checked(self) -> Result<Self> {
        if norm_in_range(self.value) {
            return Ok(self);
        }
        Err(out_of_range(&format!("the sensitivity is {:e}", self.value)))
    }

    /// Returns the sensitivity under an adjacency: replace-one doubles the sensitivity under zero-out.
    pub fn under(mut self, adjacency: Adjacency) -> Self {
        self.value *= adjacency.sensitivity_factor();
        self
    }
}
