//! Exact thresholds of monotone predicates, sign changes and minima of functions.

/// The least float in `[0, f64::MAX]` at which `holds` is true, for a predicate that is first false and then
/// true; `None` if it is false at `f64::MAX`.
///
/// Bisection over the bits of floats: at most 64 evaluations. The predicate was evaluated as true at the
/// returned float itself, even if rounding makes the predicate non-monotone near its threshold.
pub(crate) fn least_float(holds: impl Fn(f64) -> bool) -> Option<f64> {
    if holds(0.0) {
        return Some(0.0);
    }
    if !holds(f64::MAX) {
        return None;
    }
    // The bits of non-negative floats have the same order as the floats.
    let (mut fails, mut works) = (0u64, f64::MAX.to_bits());
    while works - fails > 1 {
        let middle = fails + (works - fails) / 2;
        if holds(f64::from_bits(middle)) { works = middle } else { fails = middle }
    }
    Some(f64::from_bits(works))
}

/// The greatest float in `[0, most]` at which `holds` is true, for a predicate that is first true and then
/// false; `None` if it is false at 0.
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

/// Narrows an interval around a sign change of `f` to length `tolerance` and returns its ends, at both of
/// which `f` was evaluated. `low` and `high` are (x, f(x)) with f(x) > 0 at `low` and f(x) <= 0 at `high`.
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
        // The secant's root, moved slightly to one side or the other in turn, so that both ends move; every
        // fourth time, the midpoint.
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

/// The minimum of `f` on `[low, high]` as (x, f(x)), for `f` first falling and then rising.
pub(crate) fn golden_section(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> (f64, f64) {
    let ratio = 0.5 * (5f64.sqrt() - 1.0);
    let (mut left, mut right) = (high - ratio * (high - low), low + ratio * (high - low));
    let (mut at_left, mut at_right) = (f(left), f(right));
    // The interval shrinks by a factor of 2e-9, about the square root of the rounding error, which limits the
    // accuracy of a minimum.
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

    /// The ends enclose the sign change, lie within the first ones, and are found in few evaluations.
    #[test]
    fn crossings_are_enclosed_in_few_evaluations() {
        type Falling = fn(f64) -> f64;
        let cases: [(Falling, f64); 6] = [
            (|x| 0.3 - x, 0.3),
            (|x| (-5.0 * x).exp() - 0.1, 0.460_517_018_598_809_1),
            (|x| 0.2 - x.powi(9), 0.2f64.powf(1.0 / 9.0)),
            (|x| if x < 0.61 { 1.0 } else { -1e-3 }, 0.61),
            (|x| if x < 0.999_999 { 1e-9 } else { -1.0 }, 0.999_999),
            (|x| if x < 1e-6 { 1e6 } else { -1e-6 }, 1e-6),
        ];
        for (case, (f, root)) in cases.into_iter().enumerate() {
            for tolerance in [1e-3, 1e-8] {
                let evaluations = std::cell::Cell::new(0);
                let counted = |x: f64| {
                    evaluations.set(evaluations.get() + 1);
                    assert!(0.0 < x && x < 1.0, "case {case}: {x} is outside");
                    f(x)
                };
                let (low, high) = crossing((0.0, f(0.0)), (1.0, f(1.0)), tolerance, counted);
                assert!(low <= root + 1e-15 && root - 1e-15 <= high, "case {case}: {low} {high}");
                let most = if case < 3 { 24 } else { 60 };
                let place = format!("case {case}: {low} {high} by {} evaluations", evaluations.get());
                assert!(evaluations.get() <= most && (case > 2 || high - low <= tolerance), "{place}");
            }
        }
    }
}
