//! Group privacy from the privacy of one unit alone.

use antinoise_input::{InvalidParameter, in_open_unit, non_negative};

use crate::{Bounds, Composition, Error, Gdp, Result};

/// The privacy of a group of `size` units, or of a user with that many examples, given `(epsilon, delta)` for
/// one unit: `(k epsilon, delta (e^{k epsilon} - 1)/(e^epsilon - 1))`, rounded up; a delta of 1 or more gives
/// no privacy.
///
/// With `size` 2 it gives replace-one privacy from add-or-remove privacy: one unit is removed, and another is
/// added.
///
/// # Errors
/// When `epsilon` is negative or not finite, `delta` not between 0 and 1, or `size` is 0.
///
/// # Source
/// Vadhan, "The complexity of differential privacy" (2017), lemma 2.2, with the geometric sum of its proof.
///
/// ```
/// let (epsilon, delta) = antinoise_accounting::group_privacy_upper(0.5, 1e-6, 3)?;
/// assert!((epsilon - 1.5).abs() < 1e-12 && delta > 3e-6 && delta < 6e-6);
/// # Ok::<(), antinoise_accounting::Error>(())
/// ```
pub fn group_privacy_upper(epsilon: f64, delta: f64, size: u64) -> Result<(f64, f64)> {
    let (epsilon, delta) = (non_negative("epsilon", epsilon)?, in_open_unit("delta", delta)?);
    if size == 0 {
        return Err(InvalidParameter::new("size", size, "at least 1").into());
    }
    let k = size as f64;
    let total = k * epsilon * (1.0 + f64::EPSILON);
    if total.is_infinite() {
        return Ok((f64::MAX, 1.0));
    }
    // The sum of e^{j epsilon} over j < k, as a quotient without cancellation or overflow.
    let growth = if epsilon == 0.0 { k } else { (total.exp_m1() / epsilon.exp_m1()).max(k) };
    let grown = delta * growth * (1.0 + 1e-12);
    Ok((total, if grown < 1.0 { grown } else { 1.0 }))
}

impl Composition {
    /// An upper bound on epsilon at `delta` for a group of `size` units, or a user with `size` examples:
    /// [`group_privacy_upper`] for the largest delta of one unit that suffices, up to a relative error of a
    /// millionth. It holds however the group is sampled; if its members are sampled independently in every
    /// step, [`PoissonSampledGaussian::of_group`](crate::PoissonSampledGaussian::of_group) is far tighter.
    ///
    /// # Errors
    /// When `delta` is not between 0 and 1, `size` is 0, or the group is too large for a finite bound.
    ///
    /// ```
    /// use antinoise_accounting::{Composition, PoissonSampledGaussian};
    /// let run = Composition::new([PoissonSampledGaussian::new(2.0, 0.01, 1000)?])?;
    /// assert!(run.group_epsilon_upper(1e-5, 3)? > 3.0 * run.epsilon(1e-5)?.upper);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn group_epsilon_upper(&self, delta: f64, size: u64) -> Result<f64> {
        Ok(self.group_epsilon(delta, size)?.upper)
    }

    /// Bounds on the epsilon at `delta` that group privacy gives for a group of `size` units.
    ///
    /// # Errors
    /// As [`Composition::group_epsilon_upper`].
    ///
    /// ```
    /// use antinoise_accounting::{Composition, PoissonSampledGaussian};
    /// let run = Composition::new([PoissonSampledGaussian::new(2.0, 0.01, 1000)?])?;
    /// let found = run.group_epsilon(1e-5, 2)?;
    /// assert!(found.lower > 2.0 * run.epsilon(1e-5)?.lower && found.upper < 1.01 * found.lower);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn group_epsilon(&self, delta: f64, size: u64) -> Result<Bounds> {
        in_open_unit("delta", delta)?;
        if size <= 1 {
            antinoise_input::at_least("size", size as usize, 1)?;
            return self.epsilon(delta);
        }
        // The cost of cutting batches is counted once for the group, not converted.
        let rest = self.uncut_delta(delta, size);
        if self.is_truncated() && rest > 0.0 {
            let upper = self.uncut()?.group_epsilon(rest, size)?.upper;
            return Ok(Bounds { lower: self.epsilon(delta)?.lower.min(upper), upper });
        }
        let (k, mut one) = (size as f64, delta / size as f64);
        // A bound on epsilon bounds the growth factor, which bounds delta for one unit, which gives a better
        // bound on epsilon: iterate.
        let mut least = self.epsilon(one)?.lower;
        for _ in 0..4 {
            least = self.epsilon((delta / growth_lower(least, k)).max(f64::MIN_POSITIVE))?.lower;
        }
        let lower = k * least;
        for _ in 0..60 {
            let (upper, grown) = group_privacy_upper(self.epsilon(one)?.upper, one, size)?;
            if grown <= delta {
                return Ok(Bounds { lower: lower.min(upper), upper });
            }
            // The delta of one unit that this growth factor allows. Its epsilon, and so the factor, is
            // larger, which needs a margin.
            one *= delta / grown * (1.0 - 1e-6);
            if one < f64::MIN_POSITIVE {
                break;
            }
        }
        Err(Error::OutOfReach { parameter: "epsilon", reason: format!("a group of {size} is too large") })
    }
}

/// A lower bound on the sum of e^{j epsilon} over j < k.
fn growth_lower(epsilon: f64, k: f64) -> f64 {
    let growth = if epsilon == 0.0 { k } else { (k * epsilon).exp_m1() / epsilon.exp_m1() };
    if growth.is_finite() { (growth * (1.0 - 1e-12)).max(k) } else { k }
}

impl Gdp {
    /// The privacy of a group of `size` units, given `mu`-GDP for one unit: `size mu`, rounded up.
    ///
    /// # Errors
    /// When `size` is 0, or the result exceeds 1e150.
    ///
    /// # Source
    /// Dong, Roth and Su (2022), theorem 2.14.
    ///
    /// ```
    /// use antinoise_accounting::Gdp;
    /// assert!((Gdp::new(0.5)?.group_upper(4)?.mu() - 2.0).abs() < 1e-12);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn group_upper(self, size: u64) -> Result<Self> {
        match size {
            0 => Err(InvalidParameter::new("size", size, "at least 1").into()),
            1 => Ok(self),
            _ => Self::new(self.mu() * size as f64 * (1.0 + 2.0 * f64::EPSILON)),
        }
    }
}
