//! Thresholds of monotone predicates, found without tolerances.

/// The least float in `[0, f64::MAX]` at which `holds` was seen to hold, for a predicate that is false
/// first and true afterwards; `None` when it does not hold at `f64::MAX`.
///
/// Bisection over the floats themselves: 64 evaluations at most, whatever the scale of the answer. The
/// predicate was evaluated to true at the very float returned, so a predicate that proves something proves
/// it there, even if rounding noise makes it waver near its threshold.
pub(crate) fn least_float(holds: impl Fn(f64) -> bool) -> Option<f64> {
    if holds(0.0) {
        return Some(0.0);
    }
    if !holds(f64::MAX) {
        return None;
    }
    // The bits of non-negative floats are ordered as the floats are.
    let (mut fails, mut works) = (0u64, f64::MAX.to_bits());
    while works - fails > 1 {
        let middle = fails + (works - fails) / 2;
        if holds(f64::from_bits(middle)) { works = middle } else { fails = middle }
    }
    Some(f64::from_bits(works))
}

/// The greatest float in `[0, most]` at which `holds` was seen to hold, for a predicate that is true first
/// and false afterwards; `None` when it fails at 0.
pub(crate) fn greatest_float(most: f64, holds: impl Fn(f64) -> bool) -> Option<f64> {
    if holds(most) {
        return Some(most);
    }
    if !holds(0.0) {
        return None;
    }
    let (mut works, mut fails) = (0u64, most.to_bits());
    while fails - works > 1 {
        let middle = works + (fails - works) / 2;
        if holds(f64::from_bits(middle)) { works = middle } else { fails = middle }
    }
    Some(f64::from_bits(works))
}

/// Narrows `low` and `high`, as (place, value) with values above 0 and at most 0, around a sign change of
/// `f` until they are `tolerance` apart; returns the two places, each of them evaluated.
pub(crate) fn crossing(
    mut low: (f64, f64),
    mut high: (f64, f64),
    tolerance: f64,
    f: impl Fn(f64) -> f64,
) -> (f64, f64) {
    for round in 0..60 {
        if (high.0 - low.0).abs() <= tolerance {
            break;
        }
        // The secant, a little past its root so that the two ends close in turn; now and then the middle.
        let part = low.1 / (low.1 - high.1);
        let nudge = if round % 2 == 0 { 0.5 } else { -0.5 } * tolerance / (high.0 - low.0);
        let part =
            if part.is_finite() && round % 4 != 3 { (part + nudge).clamp(1e-6, 1.0 - 1e-6) } else { 0.5 };
        let place = low.0 + part * (high.0 - low.0);
        let middle = (place, f(place));
        if middle.1 > 0.0 { low = middle } else { high = middle }
    }
    (low.0, high.0)
}

/// The least value of `f` on `[low, high]` and where it is, for `f` first falling and then rising.
pub(crate) fn golden_section(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> (f64, f64) {
    let ratio = 0.5 * (5f64.sqrt() - 1.0);
    let (mut left, mut right) = (high - ratio * (high - low), low + ratio * (high - low));
    let (mut at_left, mut at_right) = (f(left), f(right));
    // The width shrinks by 2e-9, to the square root of the rounding error, which is all a minimum needs.
    for _ in 0..45 {
        if at_left < at_right {
            (high, right, at_right) = (right, left, at_left);
            left = high - ratio * (high - low);
            at_left = f(left);
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = low + ratio * (high - low);
            at_right = f(right);
        }
    }
    if at_left < at_right { (left, at_left) } else { (right, at_right) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_exact_floats() {
        for threshold in [5e-324, 1e-300, 0.1, 1.0, 3.5, 1e300, f64::MAX] {
            assert_eq!(least_float(|x| x >= threshold), Some(threshold));
            assert_eq!(greatest_float(f64::MAX, |x| x <= threshold), Some(threshold));
        }
        assert_eq!(least_float(|_| true), Some(0.0));
        assert_eq!(least_float(|_| false), None);
        assert_eq!(greatest_float(2.0, |_| true), Some(2.0));
        assert_eq!(greatest_float(2.0, |_| false), None);
    }
}
