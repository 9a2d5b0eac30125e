//! Any C with its columns scaled to norm 1: C D. For Toeplitz and BLT strategies noise costs as much as before,
//! (C D)^-1 = D^-1 C^-1, and the loss falls, because every step is given the same share of the sensitivity.

use antinoise_input::InvalidParameter;
use serde::{Deserialize, Serialize};

use super::{AnyStrategy, BandedToeplitz, Problem, Strategy, Toeplitz, can_write_out};
use crate::optimize::{Solution, column_normalized};
use crate::sensitivity::norm_in_range;
use crate::{Encoder, Recursion, Result};

/// `inner` with columns of norm 1.
///
/// ```
/// use antinoise_mechanism::{Strategy, Participation, AnyStrategy, strategy::{ColumnNormalized, Toeplitz}};
/// let inner = AnyStrategy::Toeplitz(Toeplitz::new(8, vec![1.0, 0.5, 0.25])?);
/// let normalized = ColumnNormalized::new(inner)?;
/// assert!((normalized.sensitivity(&Participation::Single)?.value - 1.0).abs() < 1e-15);
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnNormalized {
    inner: Box<AnyStrategy>,
}

impl ColumnNormalized {
    /// Normalises the columns of `inner`.
    ///
    /// # Errors
    /// When `inner` is not valid, or too large to write out.
    pub fn new(inner: AnyStrategy) -> Result<Self> {
        let strategy = Self { inner: Box::new(inner) };
        strategy.check()?;
        Ok(strategy)
    }

    /// The strategy whose columns are scaled.
    pub fn inner(&self) -> &AnyStrategy {
        &self.inner
    }
}

/// The Toeplitz strategy whose columns, once they are scaled to norm 1, cost least; the given one where columns that take
/// part together overlap, so that their norms are not the sensitivity, or where that would take too long.
pub(super) fn for_unit_columns(
    found: Solution<AnyStrategy>,
    problem: &Problem,
) -> Result<Solution<AnyStrategy>> {
    let Encoder::Toeplitz { steps, coefficients } = found.value.encoder()? else {
        return Ok(found);
    };
    let (b, k) = problem.participation.separation(steps);
    let orthogonal = k == 1 || coefficients.len() <= b;
    if !orthogonal {
        return Ok(found);
    }
    let Some(better) = column_normalized::minimize(&coefficients, problem)? else { return Ok(found) };
    let strategy = match &found.value {
        AnyStrategy::Toeplitz(_) => AnyStrategy::Toeplitz(Toeplitz::new(steps, better.value.clone())?),
        _ => AnyStrategy::BandedToeplitz(BandedToeplitz::new(steps, better.value.clone())?),
    };
    Ok(Solution { improved: found.improved || better.improved, ..better.map(|_| strategy) })
}

fn column_norms(encoder: &Encoder) -> Vec<f64> {
    encoder.gram_lag(0).iter().map(|x| x.sqrt()).collect()
}

impl Strategy for ColumnNormalized {
    fn steps(&self) -> usize {
        self.inner.steps()
    }

    fn check(&self) -> Result<()> {
        self.inner.check()?;
        can_write_out(self.steps())?;
        let norms = column_norms(&self.inner.encoder()?);
        match norms.iter().position(|&norm| !norm_in_range(norm)) {
            Some(step) => {
                let got = format!("a column of norm {:e} at step {step}", norms[step]);
                Err(InvalidParameter::new("inner", got, "of columns with norms from 1e-140 to 1e150").into())
            }
            None => Ok(()),
        }
    }

    fn encoder(&self) -> Result<Encoder> {
        let inner = self.inner.encoder()?;
        let scales: Vec<f64> = column_norms(&inner).iter().map(|norm| 1.0 / norm).collect();
        if !matches!(inner, Encoder::Toeplitz { .. } | Encoder::Scaled { .. } | Encoder::Banded { .. }) {
            can_write_out(self.steps().saturating_mul(self.steps()))?;
        }
        Ok(inner.with_scaled_columns(&scales))
    }

    fn recursion(&self) -> Result<Recursion> {
        let factors = column_norms(&self.inner.encoder()?);
        Ok(Recursion::Scaled { inner: Box::new(self.inner.recursion()?), factors })
    }
}
