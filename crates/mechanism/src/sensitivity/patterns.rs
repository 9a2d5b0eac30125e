//! The sensitivity of any C under listed patterns or few patterns, from the entries of C^T C within each
//! pattern.

use std::collections::BTreeMap;

use antinoise_input::largest;
use antinoise_linear::{Matrix, symmetric_eigenvalues};

use super::signs::SignSearch;
use super::value::Sensitivity;
use crate::numeric::limits::{check_held, check_materializable};
use crate::{Encoder, Result};

/// Maximum number k of participations for which scalar contributions of all signs are searched.
const MAX_SIGNED: usize = 12;
/// Maximum number of entries in a table of whole diagonals of C^T C, which suffices for any number of
/// patterns.
pub(super) const MAX_TABLED: usize = 1 << 25;
/// sqrt(pi / 2), the maximum ratio of the sensitivities to vector and to scalar gradients if C^T C has
/// negative entries (Grothendieck's constant for positive semi-definite matrices).
const GROTHENDIECK: f64 = 1.253_314_137_315_500_3;
/// Source of an exact sensitivity: two contributions u and v of a unit move C G farthest if u = v or u = -v.
pub(super) const TWO_PARTICIPATIONS: &str =
    "two participations: the worse of equal and opposite contributions, of either sign";
/// Negative inner products whose sign changes sens^2 by less than this fraction count as rounding errors: the
/// sum of all magnitudes is then reported as the exact sens^2.
const ROUNDING: f64 = 1e-12;

/// C^T C restricted to each of `count` patterns.
pub(super) struct Blocks<'a> {
    pub(super) count: usize,
    pub(super) of: Box<dyn Fn(usize) -> Matrix + 'a>,
}

/// Returns C^T C restricted to the listed patterns.
pub(super) fn listed<'a>(encoder: &Encoder, patterns: &'a [Vec<usize>]) -> Result<Blocks<'a>> {
    check_materializable(encoder.steps())?;
    let mut held = vec![false; encoder.steps()];
    for pattern in patterns {
        pattern
            .iter()
            .enumerate()
            .for_each(|(i, t)| pattern[i..].iter().for_each(|tau| held[tau - t] = true));
    }
    let lags = held.iter().filter(|&&held| held).count();
    if lags.saturating_mul(encoder.steps()) <= MAX_TABLED {
        let of_lag = |(lag, held)| if held { encoder.gram_lag(lag) } else { Vec::new() };
        let table: Vec<Vec<f64>> = held.into_iter().enumerate().map(of_lag).collect();
        return Ok(of_patterns(patterns, move |lag, t| table[lag][t]));
    }
    let entries = sparse(encoder, patterns)?;
    Ok(of_patterns(patterns, move |lag, t| entries[&(lag, t)]))
}

/// Returns the entries (C^T C)\[t, t + lag\] within each pattern, by (lag, t), for few patterns over many
/// steps. They are computed one diagonal after another.
fn sparse(encoder: &Encoder, patterns: &[Vec<usize>]) -> Result<BTreeMap<(usize, usize), f64>> {
    check_held(
        "entries of C^T C within patterns",
        patterns.iter().fold(0, |sum: usize, p| sum.saturating_add(p.len().saturating_mul(p.len()))),
    )?;
    let mut entries: BTreeMap<(usize, usize), f64> = BTreeMap::new();
    for pattern in patterns {
        let later = |i: usize| pattern[i..].iter().map(move |tau| ((tau - pattern[i], pattern[i]), f64::NAN));
        entries.extend((0..pattern.len()).flat_map(later));
    }
    let mut known = (usize::MAX, Vec::new());
    for (&(lag, t), entry) in &mut entries {
        if known.0 != lag {
            known = (lag, encoder.gram_lag(lag));
        }
        *entry = known.1[t];
    }
    Ok(entries)
}

fn of_patterns<'a>(patterns: &'a [Vec<usize>], entry: impl Fn(usize, usize) -> f64 + 'a) -> Blocks<'a> {
    let of = move |u: usize| {
        let pattern = &patterns[u];
        Matrix::from_fn(pattern.len(), pattern.len(), |i, j| {
            let (t, tau) = (pattern[i], pattern[j]);
            entry(t.abs_diff(tau), t.min(tau))
        })
    };
    Blocks { count: patterns.len(), of: Box::new(of) }
}

/// Returns the sum over the entries of a matrix of a function.
fn sum(x: &Matrix, of: fn(f64) -> f64) -> f64 {
    (0..x.ncols()).flat_map(|j| x.column(j)).map(|&x| of(x)).sum()
}

/// Returns the sum of the magnitudes of all entries, an upper bound on u^T X u for |u_t| <= 1.
pub(super) fn magnitudes(x: &Matrix) -> f64 {
    sum(x, f64::abs)
}

/// Returns k times the largest eigenvalue of X (k x k), an upper bound on u^T X u for |u_t| <= 1.
pub(super) fn spectral_bound(x: &Matrix) -> f64 {
    x.nrows() as f64 * largest_eigenvalue(x)
}

/// Returns the sensitivity from C^T C within each pattern.
pub(super) fn of_blocks(Blocks { count, of: block }: &Blocks<'_>) -> Result<Sensitivity> {
    let count = *count;
    let over_patterns = |of: &dyn Fn(&Matrix) -> f64| largest((0..count).map(|u| of(&block(u))));
    let absolute = over_patterns(&magnitudes);
    if !absolute.is_finite() {
        return Sensitivity::upper_bound(
            absolute,
            "magnitudes of inner products of co-participating columns",
        );
    }
    if (0..count).all(|u| block(u).nrows() <= 2) {
        return Sensitivity::exact(absolute.sqrt(), TWO_PARTICIPATIONS);
    }
    if absolute <= over_patterns(&|x| sum(x, |x| x)) * (1.0 + ROUNDING) {
        let source = "columns of the worst pattern have no negative inner product";
        return Sensitivity::exact(absolute.sqrt(), source);
    }
    let spectral = over_patterns(&spectral_bound).sqrt();
    let mut bounds = vec![
        (absolute.sqrt(), "magnitudes of inner products of co-participating columns"),
        (spectral, "spectral: sqrt(k) times the largest norm of co-participating columns"),
    ];
    if (0..count).all(|u| block(u).nrows() <= MAX_SIGNED) {
        let source = "scalar sensitivity times sqrt(pi / 2), Grothendieck's constant";
        let scalar = over_patterns(&|x| SignSearch::new(x, usize::MAX).largest().value);
        bounds.push((GROTHENDIECK * scalar.sqrt(), source));
    }
    let (value, source) =
        bounds.into_iter().min_by(|x, y| x.0.total_cmp(&y.0)).expect("two bounds always apply");
    Sensitivity::upper_bound(value, source)
}

/// Returns an upper bound on the largest eigenvalue of a positive semi-definite matrix; NaN if an entry is
/// NaN.
fn largest_eigenvalue(x: &Matrix) -> f64 {
    let norm_bound = largest((0..x.nrows()).map(|i| (0..x.ncols()).map(|j| x[(i, j)].abs()).sum()));
    match symmetric_eigenvalues(x).map(largest) {
        // Rounded up by more than the error of a backward-stable eigenvalue solver.
        Ok(value) if value.is_finite() && norm_bound.is_finite() => {
            (value + 1e-14 * x.nrows() as f64 * norm_bound).min(norm_bound)
        }
        _ => norm_bound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_few_patterns_are_inner_products_of_columns() {
        let (steps, taps) = (12, [1.0, -0.5, 0.25, 0.125]);
        let column = |j: usize| {
            (0..steps).map(move |i: usize| i.checked_sub(j).and_then(|lag| taps.get(lag)).copied())
        };
        let inner = |s: usize, t: usize| -> f64 {
            column(s).zip(column(t)).map(|(x, y)| x.unwrap_or(0.0) * y.unwrap_or(0.0)).sum()
        };
        let patterns = [vec![0, 3, 7], vec![2, 3, 11]];
        let found = sparse(&Encoder::Toeplitz { steps, coefficients: taps.into() }, &patterns).unwrap();
        let pairs =
            [(0, 0), (0, 3), (0, 7), (2, 2), (2, 3), (2, 11), (3, 3), (3, 7), (3, 11), (7, 7), (11, 11)];
        assert_eq!(found.len(), pairs.len());
        for (s, t) in pairs {
            let entry = found[&(t - s, s)];
            assert!((entry - inner(s, t)).abs() < 1e-15, "columns {s} and {t}: {entry}");
        }
    }

    #[test]
    fn the_largest_eigenvalue_is_bounded_closely() {
        let x = Matrix::from_fn(3, 3, |i, j| if i == j { 2.0 } else { -1.0 });
        let found = largest_eigenvalue(&x);
        assert!((3.0..3.0 + 1e-12).contains(&found), "{found}");
    }
}
