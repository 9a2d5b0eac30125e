//! The sensitivity of Toeplitz C, from the sum of the columns of the densest pattern.

use super::each_epoch::of_epochs;
use super::patterns::{listed, of_blocks};
use super::value::Sensitivity;
use crate::numeric::limits::check_materializable;
use crate::numeric::vector::{non_increasing_majorant, norm_squared};
use crate::{Encoder, Participation, Result, Separation};

/// Returns sens(C, Pi) of the n x n Toeplitz matrix C with first column `c`, padded with zeros.
///
/// Let S be the sum over j < k of column jb of C. ||S|| is the exact sensitivity for a single participation,
/// for every cyclic schema when c >= 0 (a later phase is a truncated shift of the first), and for min-sep
/// when c_0 >= c_1 >= ... >= 0, or when C has at most b bands. Otherwise |c|, or for min-sep the smallest
/// non-increasing majorant of |c|, gives an upper bound. O(nk).
///
/// # Errors
/// When the schema is not valid for `steps`, overlapping columns are too long to be added up, or the
/// sensitivity is outside the range of double precision.
///
/// # Source
/// Monograph, Lemmata 3.15(b) and 3.16; BandMF, Theorem 2 and Proposition 5.
pub(crate) fn of_toeplitz(c: &[f64], steps: usize, participation: &Participation) -> Result<Sensitivity> {
    participation.check(steps)?;
    let separation = participation.separation(steps);
    let Separation { min_sep: b, max_participations: k } = separation;
    let c = trimmed(&c[..c.len().min(steps)]);
    if let Participation::Patterns { patterns } = participation {
        return of_blocks(&listed(&Encoder::Toeplitz { steps, coefficients: c.to_vec() }, patterns)?);
    }
    if k == 1 {
        return Sensitivity::exact(norm_squared(c).sqrt(), "largest column norm, single participation");
    }
    if let Participation::EachEpoch { epoch_steps } = participation {
        let encoder = Encoder::Toeplitz { steps, coefficients: c.to_vec() };
        return of_epochs(&encoder, *epoch_steps, |free| of_toeplitz(c, steps, free));
    }
    if c.len() <= b {
        let counts = orthogonal_counts(c.len(), steps, separation);
        let squared: f64 = c.iter().zip(counts).map(|(c, count)| count * c * c).sum();
        let source = "orthogonal columns: no more bands than the separation";
        return Sensitivity::exact(squared.sqrt(), source);
    }
    // Entries past the end of the last column are 0.
    let reach = steps.min(((k - 1) * b).saturating_add(c.len()));
    check_materializable(reach)?;
    let of = |c: &[f64]| norm_squared(&sum_of_columns(c, reach, separation)).sqrt();
    if c.iter().all(|&x| x >= 0.0) {
        if !matches!(participation, Participation::MinSep { .. }) {
            return Sensitivity::exact(of(c), "non-negative Toeplitz columns, densest pattern");
        }
        if c.windows(2).all(|pair| pair[0] >= pair[1]) {
            let source = "non-negative, non-increasing Toeplitz columns, densest pattern";
            return Sensitivity::exact(of(c), source);
        }
    }
    match participation {
        Participation::MinSep { .. } => Sensitivity::upper_bound(
            of(&non_increasing_majorant(c)),
            "least non-increasing majorant of the Toeplitz coefficients' magnitudes",
        ),
        Participation::Single
        | Participation::FullBatch
        | Participation::Cyclic { .. }
        | Participation::EachEpoch { .. }
        | Participation::Patterns { .. } => {
            let magnitudes: Vec<f64> = c.iter().map(|x| x.abs()).collect();
            Sensitivity::upper_bound(of(&magnitudes), "magnitudes of the Toeplitz coefficients")
        }
    }
}

/// Returns, for each s < `len`, in how many of the k columns 0, b, 2b, ... coefficient c_s is still within
/// the n rows. If the columns do not overlap, ||S||^2 is the sum of c_s^2 times these counts.
pub(crate) fn orthogonal_counts(len: usize, steps: usize, separation: Separation) -> Vec<f64> {
    let Separation { min_sep: b, max_participations: k } = separation;
    (0..len).map(|s| if s < steps { ((steps - 1 - s) / b + 1).min(k) as f64 } else { 0.0 }).collect()
}

fn trimmed(c: &[f64]) -> &[f64] {
    &c[..c.iter().rposition(|&x| x != 0.0).map_or(0, |last| last + 1)]
}

/// Returns S_t = sum over j < k with jb <= t of c_{t - jb}, for t < n.
pub(crate) fn sum_of_columns(c: &[f64], steps: usize, separation: Separation) -> Vec<f64> {
    let Separation { min_sep: b, max_participations: k } = separation;
    let mut sum = vec![0.0; steps];
    if b.saturating_mul(k) >= steps {
        // If k columns reach the end of the run, S_t = c_t + S_{t-b}.
        sum[..c.len()].copy_from_slice(c);
        for t in b..steps {
            sum[t] += sum[t - b];
        }
        return sum;
    }
    for start in (0..k).map(|j| j * b) {
        for (s, c) in sum[start..].iter_mut().zip(c) {
            *s += c;
        }
    }
    sum
}

/// Applies the transpose of [`sum_of_columns`], which is linear in c: returns the sum over j < k of v_{s +
/// jb}, for each s < `len`.
pub(crate) fn sum_of_columns_adjoint(v: &[f64], len: usize, separation: Separation) -> Vec<f64> {
    let Separation { min_sep: b, max_participations: k } = separation;
    let mut out = v[..len].to_vec();
    if b.saturating_mul(k) >= v.len() {
        let mut tails = v.to_vec();
        for t in (b..v.len()).rev() {
            tails[t - b] += tails[t];
        }
        tails.truncate(len);
        return tails;
    }
    for start in (1..k).map(|j| j * b) {
        for (o, v) in out.iter_mut().zip(&v[start..]) {
            *o += v;
        }
    }
    out
}
