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
