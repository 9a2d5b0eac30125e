//! What is released step by step: the sensitivity of a run's first steps.

use antinoise_input::between;

use super::bound::encoder_upper;
use super::precision::Precision;
use crate::sensitivity::of_encoder;
use crate::{Participation, Result, Strategy};

/// Upper bounds on how far a unit can move the first t releases of a run, in clip norms, for each t of `after`: the sensitivity of the first t
/// columns of the C that runs (and of its first t rows, where it is square) for the participation that fits in them.
///
/// The first t releases are functions of the first t gradients and of noise, whatever follows: where C is square, of the first t rows of C G + Z;
/// otherwise of all of it with later gradients zero.
///
/// ```
/// use antinoise_mechanism::rounded::{Precision, prefix_sensitivities_upper};
/// use antinoise_mechanism::strategy::StrategySpec;
/// use antinoise_mechanism::{Participation, Problem};
/// let participation = Participation::Cyclic { min_sep: 16, max_participations: 3 };
/// let problem = Problem::prefix(48).with_participation(participation.clone());
/// let strategy = "banded-toeplitz:16".parse::<StrategySpec>()?.design(&problem)?.value;
/// let found = prefix_sensitivities_upper(&*strategy, &participation, Precision::Double, &[16, 32, 48])?;
/// let once = strategy.sensitivity(&Participation::Single)?.value;
/// // Bands no wider than the separation: what is squared adds up over participations.
/// assert!((found[1] / found[0] - 2f64.sqrt()).abs() < 1e-9 && (found[2] / once - 3f64.sqrt()).abs() < 1e-9);
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
///
/// # Errors
/// When a t is 0 or above n, the schema is not valid, n is too large to write out, or rounding changes C so much that no bound is found.
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
