//! The sensitivity of any C, from the entries (C^T C)\[t, tau\] for steps t and tau of the same pattern.

use antinoise_input::{larger, largest};
use antinoise_linear::Matrix;

use super::each_epoch::of_epochs;
use super::nested;
use super::patterns::{Blocks, TWO_PARTICIPATIONS, listed, of_blocks};
use super::toeplitz::of_toeplitz;
use super::value::Sensitivity;
use super::worst_pattern::{PatternSearch, one_more};
use crate::numeric::limits::check_held;
use crate::{Encoder, Participation, Result, Separation};

/// Maximum number of steps for which the worst pattern under min-sep is searched for, and the number of
/// operations after which the search ends with an upper bound: a quarter of a second.
const MAX_SEARCHED: usize = 4096;
const OPERATIONS: usize = 1 << 25;
/// Sums that differ by less than this fraction count as equal.
const ROUNDING: f64 = 1e-11;
/// Source of an upper bound.
const BY_MAGNITUDES: &str = "magnitudes of the inner products of columns, branch and bound over patterns";

/// Returns sens(C, Pi) of any C.
///
/// - Single participation: the largest column norm.
/// - At most two participations: the pair of columns with the largest sum or difference; exact.
/// - Cyclic, full batch and listed patterns: sums of the entries of C^T C within each pattern (Theta(nk)
///   entries for a cyclic schema). Exact if the worst pattern has no negative entry, up to rounding;
///   otherwise the smallest of three upper bounds (absolute values, spectral, Grothendieck).
/// - Once in each epoch: [`of_epochs`].
/// - Min-sep: a dynamic program over patterns. Exact, in O(nk), if C^T C has no more bands than the
///   separation. Exact for trees, in O(k^2 log n) if the lists of placements are short ([`nested`]).
///   Otherwise an upper bound, in O(n^2), from bounds on the off-diagonal entries; for up to 4096 steps the
///   worst pattern is searched for, by branch and bound, which is exact if it has no negative entry, and
///   which lowers the bound if it takes too long.
///
/// # Source
/// Monograph, Lemmata 3.15, 3.16 and Section 3.3.5; multi-epoch paper, Section 3.
pub(crate) fn of_encoder(encoder: &Encoder, participation: &Participation) -> Result<Sensitivity> {
    let n = encoder.steps();
    participation.check(n)?;
    if let Participation::Patterns { patterns } = participation {
        return of_blocks(&listed(encoder, patterns)?);
    }
    if let Participation::EachEpoch { epoch_steps } = participation
        && *epoch_steps < n
    {
        return of_epochs(encoder, *epoch_steps, |free| of_encoder(encoder, free));
    }
    if let Encoder::Toeplitz { coefficients, .. } = encoder {
        return of_toeplitz(coefficients, n, participation);
    }
    let Separation { min_sep: b, max_participations: k } = participation.separation(n);
    if k == 1 {
        let squared = largest(encoder.gram_lag(0));
        return Sensitivity::exact(squared.sqrt(), "largest column norm, single participation");
    }
    check_held("steps times participations", n.saturating_mul(k))?;
    match participation {
        Participation::MinSep { .. } => min_sep(encoder, b, k),
        Participation::Single
        | Participation::FullBatch
        | Participation::Cyclic { .. }
        | Participation::EachEpoch { .. }
        | Participation::Patterns { .. } => of_blocks(&cyclic(encoder, b, k)),
    }
}

/// Returns C^T C restricted to the pattern of each phase of a cyclic schema.
pub(super) fn cyclic(encoder: &Encoder, b: usize, k: usize) -> Blocks<'static> {
    let n = encoder.steps();
    let lags: Vec<Vec<f64>> = (0..k).map(|j| encoder.gram_lag(j * b)).collect();
    let of = move |phase: usize| {
        let count = ((n - phase - 1) / b + 1).min(k);
        Matrix::from_fn(count, count, |i, j| lags[i.abs_diff(j)][phase + i.min(j) * b])
    };
    Blocks { count: b, of: Box::new(of) }
}

/// Returns sqrt(M\[0, k\]), where M\[t, l\] = max(X\[t, t\] + 2 sum over 1 <= j < l of R\[t, j\] + M\[t + b,
/// l - 1\], M\[t + 1, l\]) bounds the effect of l participations from step t on. X = C^T C, and R\[t, j\] is
/// the largest |X\[t, tau\]| with tau >= t + j b, since the j-th participation after t is at least j b steps
/// later.
fn min_sep(encoder: &Encoder, b: usize, k: usize) -> Result<Sensitivity> {
    let n = encoder.steps();
    let orthogonal = encoder.bandwidth() <= b;
    let tree = if orthogonal { None } else { encoder.nested() };
    let separation = Separation { min_sep: b, max_participations: k };
    if let Some(squared) = tree.and_then(|nested| nested::min_sep(&nested, separation)) {
        return Sensitivity::exact(squared.sqrt(), "nodes of a tree, dynamic program over patterns");
    }
    if k == 2 && !orthogonal {
        return Sensitivity::exact(largest_pair(encoder, b).sqrt(), TWO_PARTICIPATIONS);
    }
    if n <= MAX_SEARCHED && !orthogonal {
        return worst_pattern(encoder, separation);
    }
    let reach = if orthogonal { Vec::new() } else { largest_beyond(encoder, b, k) };
    let mut weights = encoder.gram_lag(0);
    let mut fewer = vec![0.0; n + b];
    for participations in 1..=k {
        if participations > 1 && !orthogonal {
            weights.iter_mut().zip(&reach[participations - 2]).for_each(|(w, r)| *w += 2.0 * r);
        }
        fewer = one_more(&fewer, b, |t| weights[t]);
    }
    let value = fewer[0].sqrt();
    if orthogonal {
        return Sensitivity::exact(value, "orthogonal columns, dynamic program over patterns");
    }
    Sensitivity::upper_bound(value, "dynamic program on bounds of the inner products of later columns")
}

/// Returns the sensitivity from the pattern of the largest sum of |X\[t, tau\]|, X = C^T C.
fn worst_pattern(encoder: &Encoder, separation: Separation) -> Result<Sensitivity> {
    let x = encoder.gram();
    let most = largest((0..x.ncols()).flat_map(|j| x.column(j)).map(|x| x.abs()));
    if !most.is_finite() {
        return Sensitivity::upper_bound(most, BY_MAGNITUDES);
    }
    let worst = PatternSearch::of_magnitudes(&x, separation).largest(OPERATIONS);
    let steps = &worst.steps;
    let column = |&t: &usize| steps.iter().map(|&tau| x[(t, tau)]).sum::<f64>();
    let attained: f64 = steps.iter().map(column).sum();
    let value = worst.value.sqrt();
    if worst.exact && attained * (1.0 + ROUNDING) >= worst.value {
        return Sensitivity::exact(
            value,
            "columns of the worst pattern have no negative inner product, branch and bound",
        );
    }
    Sensitivity::upper_bound(value, BY_MAGNITUDES)
}

/// Returns the largest squared effect of one or two participations, for X = C^T C: the maximum of
/// X\[t, t\] and of X\[t, t\] + X\[tau, tau\] + 2 |X\[t, tau\]| over t and tau >= t + b.
fn largest_pair(encoder: &Encoder, b: usize) -> f64 {
    let diagonal = encoder.gram_lag(0);
    let of_lag = |lag: usize| {
        let entries = encoder.gram_lag(lag).into_iter().enumerate();
        largest(entries.map(|(t, x)| diagonal[t] + diagonal[t + lag] + 2.0 * x.abs()))
    };
    let pairs = (b..encoder.steps()).map(of_lag);
    largest(diagonal.iter().copied().chain(pairs))
}

/// Returns the R of [`min_sep`]: R\[t, j\] for 1 <= j < k is at index \[t\]\[j - 1\].
pub(super) fn largest_beyond(encoder: &Encoder, b: usize, k: usize) -> Vec<Vec<f64>> {
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
