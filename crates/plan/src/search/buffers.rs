//! How many buffers of a BLT are worth trying and keeping.

use antinoise_mechanism::Class;
use antinoise_mechanism::design::{Objective, StrategySpec};

use super::candidate::Candidate;

/// Numbers of buffers in a search. More than six rarely lower the loss.
pub(super) const NUMBERS: std::ops::RangeInclusive<usize> = 1..=8;
/// Minimum relative reduction of the loss for which another buffer is kept.
const MIN_GAIN: f64 = 1e-4;
/// Number of buffers in a row without that gain after which no more are tried.
pub(super) const MAX_IDLE: usize = 2;

/// Whether `second` is the BLT `first` with another buffer.
pub(super) fn is_next(first: StrategySpec, second: StrategySpec) -> bool {
    first.class == Class::Blt && second == StrategySpec { order: first.order.map(|order| order + 1), ..first }
}

/// Whether `loss` with another buffer is worth the buffer, for the `least` loss of fewer.
pub(super) fn gains(loss: f64, least: f64) -> bool {
    loss < (1.0 - MIN_GAIN) * least
}

/// Removes BLTs whose last buffer gains nothing.
pub(super) fn drop_idle(found: &mut Vec<Candidate>, objective: Objective) {
    let mut least = f64::INFINITY;
    found.retain(|c| {
        let loss = c.objective(objective);
        let keeps = c.spec.class != Class::Blt || gains(loss, least);
        if c.spec.class == Class::Blt {
            least = least.min(loss);
        }
        keeps
    });
}
