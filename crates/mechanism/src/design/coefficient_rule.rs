//! The rules by which coefficients of Toeplitz classes are chosen.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The rule by which Toeplitz coefficients are chosen. Classes without Toeplitz coefficients accept only the
/// default.
///
/// ```
/// use antinoise_mechanism::design::{CoefficientRule, StrategySpec};
/// let spec: StrategySpec = "banded-toeplitz:400+tapered:200".parse()?;
/// assert_eq!(spec.rule, CoefficientRule::Tapered { from: 200 });
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CoefficientRule {
    /// Coefficients of least loss.
    #[default]
    Optimized,
    /// The coefficients of sqrt(A), truncated (monograph, Theorem 2.5).
    SquareRoot,
    /// The coefficients of sqrt(A) times (1 - damping)^t, for strongly convex problems, whose gradients damp
    /// noise (monograph, Equation 3.27).
    Damped {
        /// nu, in (0, 1).
        damping: f64,
    },
    /// 1 / i + c for i = 1, 2, ..., with the c >= 0 of least loss (BandMF, Appendix J).
    Harmonic,
    /// Coefficients of least loss for a separation equal to the number of bands, tapered so that the loss
    /// stays low for separations down to `from`: coefficient i, counted from 1, is multiplied by (bands - i)
    /// / (bands - from) for i >= from (BandMF, Appendix H).
    Tapered {
        /// b_0, at least 1 and below the bands.
        from: usize,
    },
    /// Coefficients of least mean squared loss over the separations from `from` to the number of bands (over
    /// 33 of them, evenly spaced, if there are more): an optimum where `Tapered` is a heuristic, left open in
    /// BandMF, Appendix H.
    Averaged {
        /// b_0, at least 1 and below the bands.
        from: usize,
    },
    /// For BLTs of prefix sums alone: a rational approximation of 1 / sqrt(1 - x), the generating function of
    /// the square root, without a solver (monograph, Theorem 2.18).
    RationalApproximation,
}

impl CoefficientRule {
    /// Returns the rule as a suffix of a spec's text; `None` for the default.
    pub(super) fn name(self) -> Option<String> {
        match self {
            Self::Optimized => None,
            Self::SquareRoot => Some("square-root".into()),
            Self::Damped { damping } => Some(format!("damped:{damping}")),
            Self::Harmonic => Some("harmonic".into()),
            Self::Tapered { from } => Some(format!("tapered:{from}")),
            Self::Averaged { from } => Some(format!("averaged:{from}")),
            Self::RationalApproximation => Some("rational-approximation".into()),
        }
    }

    /// Parses a suffix of a spec's text as a rule.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (name, argument) = text.split_once(':').unwrap_or((text, ""));
        let from = || argument.parse().ok();
        Some(match (name, argument) {
            ("square-root", "") => Self::SquareRoot,
            ("harmonic", "") => Self::Harmonic,
            ("rational-approximation", "") => Self::RationalApproximation,
            ("damped", _) => Self::Damped { damping: argument.parse().ok()? },
            ("tapered", _) => Self::Tapered { from: from()? },
            ("averaged", _) => Self::Averaged { from: from()? },
            _ => return None,
        })
    }
}

impl fmt::Display for CoefficientRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name().as_deref().unwrap_or("optimized"))
    }
}
