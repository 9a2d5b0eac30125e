//! How far one privacy unit can move C G: sens(C, Pi), exact or an upper bound, and by which result.
//!
//! With gradients of norm at most 1, sens^2 = max over patterns pi of sum over t, tau in pi of
//! (C^T C)\[t, tau\], exact in every dimension where those entries are not negative; with absolute values it
//! is an upper bound. Hypotheses are checked on the numbers.

mod general;
mod perturbed;
mod running;
mod toeplitz;

pub(crate) use general::of_encoder;
pub use running::{OUTPUT_ROUNDING, Precision, of_running};
use serde::{Deserialize, Serialize};
pub use toeplitz::of_toeplitz;
pub(crate) use toeplitz::{orthogonal_counts, sum_of_columns, sum_of_columns_adjoint};

use crate::Adjacency;

/// Whether a sensitivity is attained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Some pair of adjacent inputs attains it.
    Exact,
    /// No pair of adjacent inputs exceeds it.
    UpperBound,
}

/// sens(C, Pi) for gradients of norm 1, with its proof.
///
/// ```
/// use antinoise_mechanism::{Adjacency, Participation, sensitivity};
/// let twice = Participation::Cyclic { min_sep: 2, max_participations: 2 };
/// let of_prefix_sums = sensitivity::of_toeplitz(&[1.0; 3], 3, &twice)?;
/// assert_eq!(of_prefix_sums.value, 6f64.sqrt()); // columns 0 and 2 add up to (1, 1, 2)
/// assert_eq!(of_prefix_sums.under(Adjacency::ReplaceOne).value, 2.0 * 6f64.sqrt());
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sensitivity {
    /// The l2 sensitivity, in clip norms.
    pub value: f64,
    /// Exact or an upper bound.
    pub kind: Kind,
    /// The result that says so.
    pub source: String,
}

impl Sensitivity {
    pub(crate) fn exact(value: f64, source: &str) -> Self {
        Self { value, kind: Kind::Exact, source: source.into() }
    }

    pub(crate) fn upper_bound(value: f64, source: &str) -> Self {
        Self { value, kind: Kind::UpperBound, source: source.into() }
    }

    /// The sensitivity under an adjacency: replace-one doubles what zero-out costs.
    pub fn under(mut self, adjacency: Adjacency) -> Self {
        self.value *= adjacency.sensitivity_factor();
        self
    }
}
