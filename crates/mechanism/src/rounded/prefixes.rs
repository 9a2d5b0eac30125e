//! The sensitivity of the first releases of a run, for privacy figures by step.

use antinoise_input::between;

use super::bound::encoder_upper;
use super::precision::Precision;
use crate::sensitivity::of_encoder;
use crate::{Participation, Result, Strategy};

/// Returns, for each t in `after`, an upper bound, in clip norms, on the sensitivity of the first t releases
/// under the schema truncated to t steps. It is the sensitivity of the first t columns of the rounded
/// strategy, and of their first t rows only if the strategy is square.
///
/// The first t releases depend only on the first t gradients and on noise. If C is square, they are a
/// function of the first t rows of C G + Z; otherwise of C G + Z with later gradients set to zero.
///
/// ```
/// use antinoise_mechanism::rounded::{Precision, prefix_sensitivities_upper};
/// use antinoise_mechanism::design::StrategySpec;
/// use antinoise_mechanism::{Participation, Problem};
/// let participation = Participation::Cyclic { min_sep: 16, max_participations: 3 };
/// let problem = Problem::prefix(48).with_participation(participation.clone());
/// let strategy = "banded-toeplitz:16".parse::<StrategySpec>()?.design(&problem)?.value;
/// let found = prefix_sensitivities_upper(&*strategy, &participation, Precision::Double, &[16, 32, 48])?;
/// let once = strategy.sensitivity(&Participation::Single)?.value;
/// // No more bands than the separation: squares add up over participations.
/// assert!((found[1] / found[0] - 2f64.sqrt()).abs() < 1e-9 && (found[2] / once - 3f64.sqrt()).abs() < 1e-9);
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
///
/// # Errors
/// When a t is 0 or above n, the schema is not valid, C is too large, or rounding changes C so much that no
/// bound is found.
pub fn prefix_sensitivities_upper(
    strategy: &dyn Strategy,
    participation: &Participation,
    precision: Precision,
    after: &[usize],
) -> Result<Vec<f64>> {
    participation.check(strategy.steps())?;
    let (encoder, factor) = encoder_upper(strategy, precision)?;
    let mut found = Vec::with_capacity(after.len());
    for &steps in after {
        between("steps", steps, 1, strategy.steps(), "the strategy's")?;
        found.push(match participation.truncated_to(steps) {
            Some(cut) => (of_encoder(&encoder.leading(steps), &cut)?.value * factor).next_up(),
            None => 0.0,
        });
    }
    Ok(found)
}
