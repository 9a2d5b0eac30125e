//! Any C: entries of C^T C between co-participating steps, by lag.

use std::collections::BTreeMap;

use antinoise_input::{larger, largest};
use antinoise_linear::{Mat, column, symmetric_eigenvalues};

use super::Sensitivity;
use crate::strategy::can_write_out;
use crate::{Encoder, Participation, Result};

/// Most participations for which every pattern of signs is tried: 2^(k-1) of them a pattern.
const MOST_SIGNED: usize = 12;
/// sqrt(pi / 2): how much more than scalar contributions vectors can do when C^T C has negative entries
/// (Grothendieck's constant of positive semi-definite matrices).
const GROTHENDIECK: f64 = 1.253_314_137_315_500_3;
/// One's two contributions u and v move C G by at most what u = v or u = -v does.
const TWO_AT_MOST: &str = "two participations: the worse of equal and opposite contributions, of either sign";
/// Negative inner products that change sens^2 by less than this are rounding errors; the figure counts them.
const ROUNDING: f64 = 1e-12;

/// sens(C, Pi) of any C.
///
/// Single participation: the largest column norm. Cyclic, full batch and listed patterns: the entries of C^T C
/// that patterns hold (Theta(nk) of a cyclic schema), exact when the worst pattern has none that is negative
/// beyond rounding, else the least of three upper bounds (absolute values, spectral, Grothendieck). Two participations at most: the pair's columns with the worse sign, exact.
/// Min-sep: a dynamic program, exact when C^T C has no more bands than the separation, else on upper bounds of
/// the off-diagonal entries. O(nk) entries, or O(n^2) for the last.
///
/// # Source
/// Monograph, Lemmata 3.15, 3.16 and Section 3.3.5; multi-epoch paper, Section 3.
pub(crate) fn of_encoder(encoder: &Encoder, participation: &Participation) -> Result<Sensitivity> {
    let n = encoder.steps();
    participation.check(n)?;
    if let Participation::Patterns { patterns } = participation {
        return listed(encoder, patterns);
    }
    if let Encoder::Toeplitz { coefficients, .. } = encoder {
        return super::of_toeplitz(coefficients, n, participation);
    }
    let (b, k) = participation.separation(n);
    if k == 1 {
        let squared = largest(encoder.gram_lag(0));
        return Sensitivity::exact(squared.sqrt(), "largest column norm, single participation");
    }
    can_write_out(n.saturating_mul(k))?;
    match participation {
        Participation::MinSep { .. } => min_sep(encoder, b, k),
        _ => cyclic(encoder, b, k),
    }
}

fn cyclic(encoder: &Encoder, b: usize, k: usize) -> Result<Sensitivity> {
    let n = encoder.steps();
    let lags: Vec<Vec<f64>> = (0..k).map(|j| encoder.gram_lag(j * b)).collect();
    let block = |phase: usize| {
        let count = ((n - phase - 1) / b + 1).min(k);
        Mat::from_fn(count, count, |i, j| lags[i.abs_diff(j)][phase + i.min(j) * b])
    };
    of_blocks(b, block)
}

/// The entries of C^T C that listed patterns hold, found one lag after the other.
fn listed(encoder: &Encoder, patterns: &[Vec<usize>]) -> Result<Sensitivity> {
    can_write_out(encoder.steps())?;
    can_write_out(
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
    let block = |u: usize| {
        let pattern: &Vec<usize> = &patterns[u];
        Mat::from_fn(pattern.len(), pattern.len(), |i, j| {
            let (t, tau) = (pattern[i], pattern[j]);
            entries[&(t.abs_diff(tau), t.min(tau))]
        })
    };
    of_blocks(patterns.len(), block)
}

/// The sensitivity from C^T C restricted to each of `count` patterns.
fn of_blocks(count: usize, block: impl Fn(usize) -> Mat<f64>) -> Result<Sensitivity> {
    let over_patterns = |of: &dyn Fn(&Mat<f64>) -> f64| largest((0..count).map(|u| of(&block(u))));
    let sum = |x: &Mat<f64>, of: fn(f64) -> f64| -> f64 {
        (0..x.ncols()).flat_map(|j| column(x, j)).map(|&x| of(x)).sum()
    };
    let absolute = over_patterns(&|x| sum(x, f64::abs));
    if !absolute.is_finite() {
        return Sensitivity::upper_bound(
            absolute,
            "magnitudes of inner products of co-participating columns",
        );
    }
    if (0..count).all(|u| block(u).nrows() <= 2) {
        return Sensitivity::exact(absolute.sqrt(), TWO_AT_MOST);
    }
    if absolute <= over_patterns(&|x| sum(x, |x| x)) * (1.0 + ROUNDING) {
        let source = "columns of the worst pattern have no negative inner product";
        return Sensitivity::exact(absolute.sqrt(), source);
    }
    let spectral = over_patterns(&|x| x.nrows() as f64 * largest_eigenvalue(x)).sqrt();
    let mut bounds = vec![
        (absolute.sqrt(), "magnitudes of inner products of co-participating columns"),
        (spectral, "spectral: sqrt(k) times the largest norm of co-participating columns"),
    ];
    if (0..count).all(|u| block(u).nrows() <= MOST_SIGNED) {
        let source = "scalar sensitivity times sqrt(pi / 2), Grothendieck's constant";
        bounds.push((GROTHENDIECK * over_patterns(&largest_signed_sum).sqrt(), source));
    }
    let (value, source) =
        bounds.into_iter().min_by(|x, y| x.0.total_cmp(&y.0)).expect("two bounds always apply");
    Sensitivity::upper_bound(value, source)
}

/// An upper bound on the largest eigenvalue of a positive semi-definite matrix; NaN where an entry is.
fn largest_eigenvalue(x: &Mat<f64>) -> f64 {
    let norm_bound = largest((0..x.nrows()).map(|i| (0..x.ncols()).map(|j| x[(i, j)].abs()).sum()));
    match symmetric_eigenvalues(x.as_ref()).map(largest) {
        // Rounded up by more than the error of a backward-stable eigenvalue.
        Ok(value) if value.is_finite() && norm_bound.is_finite() => {
            (value + 1e-14 * x.nrows() as f64 * norm_bound).min(norm_bound)
        }
        _ => norm_bound,
    }
}

/// max over signs s of s^T X s.
fn largest_signed_sum(x: &Mat<f64>) -> f64 {
    let count = x.nrows();
    largest((0u32..1 << (count - 1)).map(|bits| {
        let sign = |i: usize| if bits >> i & 1 == 1 { -1.0 } else { 1.0 };
        (0..count).map(|i| (0..count).map(|j| sign(i) * sign(j) * x[(i, j)]).sum::<f64>()).sum()
    }))
}

/// M\[t, l\] = max(X\[t, t\] + 2 sum over 1 <= j < l of R\[t, j\] + M\[t + b, l - 1\], M\[t + 1, l\]), where R\[t, j\]
/// is the largest |X\[t, tau\]| with tau >= t + j b: the j-th participation after t is at least that far.
fn min_sep(encoder: &Encoder, b: usize, k: usize) -> Result<Sensitivity> {
    let n = encoder.steps();
    let orthogonal = encoder.bandwidth() <= b;
    if k == 2 && !orthogonal {
        return Sensitivity::exact(largest_pair(encoder, b).sqrt(), TWO_AT_MOST);
    }
    let reach = if orthogonal { Vec::new() } else { largest_beyond(encoder, b, k) };
    let diagonal = encoder.gram_lag(0);
    // M for one more participation from M for one fewer; steps past the end are worth 0.
    let mut fewer = vec![0.0; n + b];
    let mut weights = diagonal;
    for participations in 1..=k {
        if participations > 1 && !orthogonal {
            weights.iter_mut().zip(&reach[participations - 2]).for_each(|(w, r)| *w += 2.0 * r);
        }
        let mut best = vec![0.0; n + b];
        for t in (0..n).rev() {
            best[t] = larger(weights[t] + fewer[t + b], best[t + 1]);
        }
        fewer = best;
    }
    let value = fewer[0].sqrt();
    if orthogonal {
        return Sensitivity::exact(value, "orthogonal columns, dynamic program over patterns");
    }
    Sensitivity::upper_bound(value, "dynamic program on bounds of the inner products of later columns")
}

/// max over t and tau >= t + b of X\[t, t\] + X\[tau, tau\] + 2 |X\[t, tau\]|, or X\[t, t\] alone.
fn largest_pair(encoder: &Encoder, b: usize) -> f64 {
    let diagonal = encoder.gram_lag(0);
    let of_lag = |lag: usize| {
        let entries = encoder.gram_lag(lag).into_iter().enumerate();
        largest(entries.map(|(t, x)| diagonal[t] + diagonal[t + lag] + 2.0 * x.abs()))
    };
    let pairs = (b..encoder.steps()).map(of_lag);
    largest(diagonal.iter().copied().chain(pairs))
}

/// R\[t, j\] for j in 1..k, at index j - 1.
fn largest_beyond(encoder: &Encoder, b: usize, k: usize) -> Vec<Vec<f64>> {
    let n = encoder.steps();
    let mut reach = vec![Vec::new(); k - 1];
    let mut largest = vec![0.0; n];
    for lag in (b..n).rev() {
        for (best, x) in largest.iter_mut().zip(encoder.gram_lag(lag)) {
            *best = larger(*best, x.abs());
        }
        if lag % b == 0 && lag / b < k {
            reach[lag / b - 1] = largest.clone();
        }
    }
    reach.iter_mut().filter(|row| row.is_empty()).for_each(|row| *row = vec![0.0; n]);
    reach
}
