//! Helpers for the tests of several modules.

/// Tolerance for the difference between a derivative and its difference quotient: `absolute`, plus `relative`
/// times the size of the derivative.
#[derive(Clone, Copy)]
pub(crate) struct Tolerance {
    pub(crate) absolute: f64,
    pub(crate) relative: f64,
}

impl Tolerance {
    pub(crate) const fn absolute(absolute: f64) -> Self {
        Self { absolute, relative: 0.0 }
    }
}

/// Asserts that `gradient` agrees with central differences of `f` at `x` with this step.
#[track_caller]
pub(crate) fn assert_gradient(
    case: &str,
    f: impl Fn(&[f64]) -> f64,
    x: &[f64],
    gradient: &[f64],
    step: f64,
    tolerance: Tolerance,
) {
    assert!(!x.is_empty() && x.len() == gradient.len(), "{case}: {} of {}", gradient.len(), x.len());
    for (i, derivative) in gradient.iter().enumerate() {
        let at = |h: f64| {
            let mut moved = x.to_vec();
            moved[i] += h;
            f(&moved)
        };
        let difference = (at(step) - at(-step)) / (2.0 * step);
        let allowed = tolerance.absolute + tolerance.relative * difference.abs();
        assert!(
            (difference - derivative).abs() < allowed,
            "{case}, variable {i}: {derivative} for {difference}"
        );
    }
}

/// All patterns of min-sep whose steps begin at `from` or later.
pub(crate) fn min_sep_patterns(from: usize, n: usize, b: usize, k: usize) -> Vec<Vec<usize>> {
    let after = |t: usize| if k == 1 { Vec::new() } else { min_sep_patterns(t + b, n, b, k - 1) };
    let with = |t: usize| {
        let longer = after(t).into_iter().map(move |later| [vec![t], later].concat());
        std::iter::once(vec![t]).chain(longer).collect::<Vec<_>>()
    };
    (from..n).flat_map(with).collect()
}
