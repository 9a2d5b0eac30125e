//! Upper bounds on the sensitivity of the rounded strategy, from its coefficients or from a bound on how much
//! rounding changes C.

use antinoise_input::{InvalidParameter, largest};

use super::perturbation::lost_to_rounding;
use super::precision::{OUTPUT_ROUNDING, Precision, ULP};
use crate::blt_closed_form::{coefficients, norms};
use crate::numeric::limits::check_materializable;
use crate::numeric::vector::norm_squared;
use crate::rational_series::running_sums::{lost_by_series, series};
use crate::recursion::varying::written_out;
use crate::sensitivity::{MAX_BLT_STEPS_BY_EPOCHS, of_encoder};
use crate::toeplitz::{divide, multiply};
use crate::{Encoder, Participation, Recursion, Result, Strategy};

/// Returns an upper bound, in clip norms, on the sensitivity of `strategy` with its coefficients rounded to
/// the precision of the noise stream. The bound includes the rounding of its own computation in double
/// precision, and is tight up to that.
///
/// ```
/// use antinoise_mechanism::rounded::{Precision, sensitivity_upper};
/// use antinoise_mechanism::design::StrategySpec;
/// use antinoise_mechanism::Problem;
/// let problem = Problem::prefix(480).with_workload("momentum:0.95".parse()?);
/// let strategy = "workload".parse::<StrategySpec>()?.design(&problem)?.value;
/// let stated = strategy.sensitivity(&problem.participation)?.value;
/// let part = |precision| sensitivity_upper(&*strategy, &problem.participation, precision).unwrap() / stated - 1.0;
/// assert!((2e-4..3e-4).contains(&part(Precision::Single)) && part(Precision::Double) < 1e-9);
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
///
/// # Errors
/// When the schema is not valid, C is too large, or rounding changes C so much that no bound is found.
pub fn sensitivity_upper(
    strategy: &dyn Strategy,
    participation: &Participation,
    precision: Precision,
) -> Result<f64> {
    let (steps, recursion) = (strategy.steps(), strategy.recursion()?);
    let output = if precision == Precision::Single { 1.0 + OUTPUT_ROUNDING } else { 1.0 };
    let runs =
        if precision == Precision::Single { recursion.in_single_precision() } else { recursion.clone() };
    let value = if recursion.is_sum_of_seeds() {
        let lost = lost_to_rounding(&strategy.encoder()?, &recursion, steps, precision)?;
        strategy.sensitivity(participation)?.value / left(lost)?
    } else if let Some(value) = of_blt(&runs, steps, participation)? {
        value
    } else {
        let (encoder, lost) = encoder_of(&runs, steps)?;
        // Computing an entry takes a few roundings in double precision, which change the sensitivity by at
        // most this fraction for each participation.
        let entries = 8.0 * ULP * participation.separation(steps).max_participations as f64;
        let written_out = of_encoder(&encoder, participation)?.value * (1.0 + entries) / left(lost)?;
        // Rounding may break a condition that C meets exactly (zeros, equal neighbours).
        match lost_to_inverse(&runs, &strategy.encoder()?, steps).and_then(|lost| left(lost).ok()) {
            Some(left) => (strategy.sensitivity(participation)?.value / left).min(written_out),
            None => written_out,
        }
    };
    let value = (value * output).next_up();
    if value.is_finite() { Ok(value) } else { Err(unbounded(value).into()) }
}

/// Returns a matrix C and a factor f such that, under every participation schema, the stream's noise is at
/// least as private as exact noise of this C whose standard deviation is smaller by the factor f.
///
/// Either the entries of the rounded strategy exceed those of C by at most the factor, or the rounded
/// strategy is (I - R)^-1 C for a small matrix R of rounding errors. In the second case the release is, up to
/// a bijection, C G + (I - R) Z, and (I - R) Z is independent normal noise of 1 - ||R|| times the standard
/// deviation, plus further independent noise.
///
/// ```
/// use antinoise_mechanism::rounded::{Precision, encoder_upper};
/// use antinoise_mechanism::design::StrategySpec;
/// use antinoise_mechanism::Problem;
/// let strategy = "blt:2".parse::<StrategySpec>()?.design(&Problem::prefix(48))?.value;
/// let (c, factor) = encoder_upper(&*strategy, Precision::Double)?;
/// assert!(c.column(0)[0] == 1.0 && (1.0..1.0 + 1e-12).contains(&factor));
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
///
/// # Errors
/// When C is too large, or rounding changes C so much that no bound is found.
pub fn encoder_upper(strategy: &dyn Strategy, precision: Precision) -> Result<(Encoder, f64)> {
    let (steps, recursion) = (strategy.steps(), strategy.recursion()?);
    let (runs, output) = match precision {
        Precision::Single => (recursion.in_single_precision(), 1.0 + OUTPUT_ROUNDING),
        Precision::Double => (recursion.clone(), 1.0),
    };
    let (encoder, lost) = if recursion.is_sum_of_seeds() {
        let encoder = strategy.encoder()?;
        let lost = lost_to_rounding(&encoder, &recursion, steps, precision)?;
        (encoder, lost)
    } else {
        encoder_of(&runs, steps)?
    };
    // Computing an entry takes a few roundings in double precision.
    Ok((encoder, (output * (1.0 + 8.0 * ULP) / left(lost)?).next_up()))
}

/// Returns 1 - `lost`, rounded down.
fn left(lost: f64) -> Result<f64> {
    let left = (1.0 - lost).next_down();
    if left > 0.0 { Ok(left) } else { Err(unbounded(lost).into()) }
}

fn unbounded(found: f64) -> InvalidParameter {
    let got = format!(
        "so small, large or near singular that rounding may change the strategy by the fraction {found:.1e}"
    );
    InvalidParameter::new("strategy", got, "one whose coefficients can be rounded")
}

/// Returns the sensitivity of a BLT with alpha >= 0 by its closed form, which holds for every n; `None` for
/// other recursions, and for schemas without a closed form.
fn of_blt(recursion: &Recursion, steps: usize, participation: &Participation) -> Result<Option<f64>> {
    let Recursion::Blt { scale, decay } = recursion else { return Ok(None) };
    let is_by_epochs =
        matches!(participation, Participation::EachEpoch { .. }) && steps <= MAX_BLT_STEPS_BY_EPOCHS;
    if matches!(participation, Participation::FullBatch | Participation::Patterns { .. })
        || is_by_epochs
        || scale.iter().any(|&alpha| alpha < 0.0)
    {
        return Ok(None);
    }
    participation.check(steps)?;
    let delta: Vec<f64> = decay.iter().map(|lambda| 1.0 - lambda).collect();
    let value = norms::sensitivity(scale, &delta, steps, participation.separation(steps)).squared.sqrt();
    // From c_1 = sum alpha on, c is non-increasing. If c_1 > c_0 = 1, then c_1 times c is at least the
    // smallest non-increasing majorant of c.
    let first: f64 = scale.iter().sum();
    Ok(Some(value * first.max(1.0) * (1.0 + 64.0 * ULP)))
}

/// Returns the C of a recursion that is not a sum of seeds, as computed in double precision, and an upper
/// bound on ||R||, where the exact C is (I - R)^-1 times the computed one.
fn encoder_of(recursion: &Recursion, steps: usize) -> Result<(Encoder, f64)> {
    Ok(match recursion {
        Recursion::Independent => (Encoder::Toeplitz { steps, coefficients: vec![1.0] }, 0.0),
        Recursion::MovingAverage { taps } => {
            let taps = &taps[..taps.len().min(steps)];
            check_materializable(steps)?;
            let coefficients =
                if taps.len() == 1 { vec![1.0 / taps[0]] } else { divide(&[1.0], taps, steps) };
            let lost = lost_by_division(taps, &coefficients);
            (Encoder::Toeplitz { steps, coefficients }, lost)
        }
        Recursion::AutoRegressive { taps } => {
            let coefficients = taps[..taps.len().min(steps)].to_vec();
            (Encoder::Toeplitz { steps, coefficients }, 0.0)
        }
        Recursion::Banded { bands, rows } => {
            (Encoder::Banded { bands: *bands, rows: rows[..steps * bands].to_vec() }, 0.0)
        }
        Recursion::Blt { scale, decay } => {
            check_materializable(steps)?;
            let delta: Vec<f64> = decay.iter().map(|lambda| 1.0 - lambda).collect();
            // Each entry is the result of at most `steps` operations per buffer.
            let lost = ULP * (steps * scale.len()) as f64;
            (Encoder::Toeplitz { steps, coefficients: coefficients(scale, &delta, steps) }, lost)
        }
        Recursion::VaryingBlt { decay, reads, writes } => {
            check_materializable(steps)?;
            // Sums of products that are not negative: an entry is the result of few operations per buffer and
            // one per step, which change it by this fraction.
            let is_positive = [decay, reads, writes].into_iter().flatten().all(|&x| x >= 0.0);
            let lost = if is_positive { ULP * (steps + decay.len() + 4) as f64 } else { f64::INFINITY };
            (Encoder::Dense(written_out(decay, reads, writes, &vec![1.0; steps])), lost)
        }
        Recursion::Rational { gain, feedback } => {
            check_materializable(steps)?;
            let coefficients = series(gain, feedback, steps);
            let lost = lost_by_series(gain, feedback, &coefficients);
            (Encoder::Toeplitz { steps, coefficients }, lost)
        }
        Recursion::Scaled { inner, factors } => {
            let (encoder, lost) = encoder_of(inner, steps)?;
            let scales: Vec<f64> = factors[..steps].iter().map(|factor| 1.0 / factor).collect();
            (encoder.with_scaled_columns(&scales), lost)
        }
        Recursion::Restarted { inner, period } => {
            let period = steps.min(*period);
            let (block, lost) = encoder_of(inner, period)?;
            (Encoder::BlockDiagonal { block: Box::new(block), period, steps }, lost)
        }
        Recursion::SeedCombination { .. } | Recursion::Circulant { .. } => {
            unreachable!("sums of seeds are bounded by a perturbation")
        }
    })
}

/// Returns an upper bound on ||R|| for a Toeplitz C whose noise is a moving average with the taps of C^-1,
/// possibly with scaled columns or restarted. The rounded strategy is (I - R)^-1 C, where R is the Toeplitz
/// matrix of 1 - taps * c.
fn lost_to_inverse(runs: &Recursion, stated: &Encoder, steps: usize) -> Option<f64> {
    match (runs, stated) {
        (Recursion::MovingAverage { taps }, Encoder::Toeplitz { coefficients, .. }) => {
            Some(residual(&taps[..taps.len().min(steps)], coefficients, steps))
        }
        (Recursion::Scaled { inner, factors }, Encoder::Scaled { coefficients, scales }) => {
            let toeplitz = Encoder::Toeplitz { steps, coefficients: coefficients.clone() };
            let rounded = scales.iter().zip(factors).map(|(scale, factor)| (scale * factor - 1.0).abs());
            Some(lost_to_inverse(inner, &toeplitz, steps)? + 2.0 * largest(rounded) + ULP)
        }
        (Recursion::Restarted { inner, .. }, Encoder::BlockDiagonal { block, period, .. }) => {
            lost_to_inverse(inner, block, *period)
        }
        _ => None,
    }
}

/// Returns an upper bound on the sum of |1 - taps * c| over n terms.
fn residual(taps: &[f64], c: &[f64], n: usize) -> f64 {
    let sum = |x: &[f64]| x.iter().map(|x| x.abs()).sum::<f64>();
    let product = multiply(taps, c, n);
    let found = (1.0 - product[0]).abs() + sum(&product[1..]);
    let terms = taps.len().min(c.len());
    let rounding = if terms <= crate::toeplitz::DIRECT_TERMS {
        (terms + 3) as f64 * ULP * sum(taps) * sum(c)
    } else {
        let transforms = 8.0 * ULP * (4.0 * n as f64).log2() * (norm_squared(taps) * norm_squared(c)).sqrt();
        n as f64 * transforms
    };
    found + rounding
}

/// Returns an upper bound on the sum of |1 - taps * c|: on ||I - T C|| for the Toeplitz matrices T of `taps`
/// and C of `c`.
fn lost_by_division(taps: &[f64], c: &[f64]) -> f64 {
    let n = c.len();
    let sum = |x: &[f64]| x.iter().map(|x| x.abs()).sum::<f64>();
    // With few taps, division is direct, and the rounding of its products bounds the residual.
    let few = taps.len() <= crate::toeplitz::DIRECT_TERMS;
    if few {
        return (taps.len() + 3) as f64 * ULP * sum(taps) * sum(c);
    }
    residual(taps, c, n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sensitivity::of_toeplitz;

    #[test]
    fn a_blt_that_rises_at_first_is_bounded() {
        let participation = Participation::MinSep { min_sep: 3, max_participations: 4 };
        let recursion = Recursion::Blt { scale: vec![0.9, 0.4], decay: vec![0.8, 0.3] };
        let found = of_blt(&recursion, 20, &participation).unwrap().unwrap();
        let c = coefficients(&[0.9, 0.4], &[0.2, 0.7], 20);
        assert!(found >= of_toeplitz(&c, 20, &participation).unwrap().value, "{found}");
    }

    #[test]
    fn what_rounding_may_change_beyond_any_bound_is_refused() {
        assert!(left(1.0).is_err() && left(f64::NAN).is_err() && left(0.5).unwrap() < 0.5);
    }
}
