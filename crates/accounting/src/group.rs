//! Theorems that carry privacy from one unit to a group of units, and from one adjacency to another.

use antinoise_input::{InvalidParameter, in_open_unit, non_negative};

use crate::{Bracket, Composition, Error, Gdp, Result};

/// The privacy of a group of `size` units, or of a user with that many examples, given `(epsilon, delta)` for one unit:
/// `(k epsilon, delta (e^{k epsilon} - 1)/(e^epsilon - 1))`, rounded up; a delta of 1 or more gives no privacy.
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
    // sum of e^{j epsilon} for j < k, without cancellation or overflow of the quotient.
    let growth = if epsilon == 0.0 { k } else { (total.exp_m1() / epsilon.exp_m1()).max(k) };
    let grown = delta * growth * (1.0 + 1e-12);
    Ok((total, if grown < 1.0 { grown } else { 1.0 }))
}

/// The privacy under replace-one (remove one unit, then add another), given `(epsilon, delta)` under add-or-remove:
/// `(2 epsilon, (1 + e^epsilon) delta)`.
///
/// # Errors
/// As for [`group_privacy_upper`], of which it is the case of two.
///
/// ```
/// let (epsilon, delta) = antinoise_accounting::add_or_remove_to_replace_one_upper(1.0, 1e-6)?;
/// assert!((epsilon - 2.0).abs() < 1e-12 && (delta / 3.718281828e-6 - 1.0).abs() < 1e-9);
/// # Ok::<(), antinoise_accounting::Error>(())
/// ```
pub fn add_or_remove_to_replace_one_upper(epsilon: f64, delta: f64) -> Result<(f64, f64)> {
    group_privacy_upper(epsilon, delta, 2)
}

impl Composition {
    /// An epsilon at `delta` for a group of `size` units, or a user with that many examples, never below the truth:
    /// what [`group_privacy_upper`] says of the largest delta for one unit, to a millionth, that is small enough.
    ///
    /// # Errors
    /// When `delta` is not between 0 and 1, `size` is 0, or nothing can be said of so large a group.
    ///
    /// ```
    /// use antinoise_accounting::{Composition, SampledGaussian};
    /// let run = Composition::new([SampledGaussian::new(2.0, 0.01, 1000)?])?;
    /// assert!(run.group_epsilon_upper(1e-5, 3)? > 3.0 * run.epsilon(1e-5)?.upper);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn group_epsilon_upper(&self, delta: f64, size: u64) -> Result<f64> {
        Ok(self.group_epsilon(delta, size)?.upper)
    }

    /// The same, and the epsilon below which group privacy says nothing at `delta`. Of two, it is what zero-out or add-or-remove say
    /// of replace-one.
    ///
    /// # Errors
    /// As [`Composition::group_epsilon_upper`].
    ///
    /// ```
    /// use antinoise_accounting::{Composition, SampledGaussian};
    /// let run = Composition::new([SampledGaussian::new(2.0, 0.01, 1000)?])?;
    /// let found = run.group_epsilon(1e-5, 2)?;
    /// assert!(found.lower > 2.0 * run.epsilon(1e-5)?.lower && found.upper < 1.01 * found.lower);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn group_epsilon(&self, delta: f64, size: u64) -> Result<Bracket> {
        in_open_unit("delta", delta)?;
        if size <= 1 {
            antinoise_input::at_least("size", size as usize, 1)?;
            return self.epsilon(delta);
        }
        let (k, mut one) = (size as f64, delta / size as f64);
        // No delta for one can be larger, nor then its epsilon smaller; and so again.
        let mut least = self.epsilon(one)?.lower;
        for _ in 0..4 {
            least = self.epsilon((delta / growth_lower(least, k)).max(f64::MIN_POSITIVE))?.lower;
        }
        let lower = k * least;
        for _ in 0..60 {
            let (upper, grown) = group_privacy_upper(self.epsilon(one)?.upper, one, size)?;
            if grown <= delta {
                return Ok(Bracket { lower: lower.min(upper), upper });
            }
            // What that epsilon leaves; a smaller delta has a larger one.
            one *= delta / grown * (1.0 - 1e-6);
            if one < f64::MIN_POSITIVE {
                break;
            }
        }
        Err(Error::OutOfReach { parameter: "epsilon", reason: format!("a group of {size} is too large") })
    }
}

/// The sum of e^{j epsilon} for j < k, not above it.
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
