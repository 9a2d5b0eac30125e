//! Group privacy from the privacy of one unit alone.

use std::cell::Cell;

use antinoise_input::{InvalidParameter, in_open_unit, non_negative};

use crate::root::crossing;
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
    // The sum of e^{j epsilon} over j < k, as a quotient without cancellation. Where both of its parts
    // overflow, no delta is small enough.
    let quotient = total.exp_m1() / epsilon.exp_m1();
    let growth = if epsilon == 0.0 || quotient < k { k } else { quotient };
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
    /// When `delta` is not between 0 and 1, `size` is 0, or the group is too large: one unit would need a
    /// delta below e^-200 `delta`, and the group's epsilon would be about 200 or more.
    ///
    /// ```
    /// use antinoise_accounting::{Composition, PoissonSampledGaussian};
    /// let run = Composition::new([PoissonSampledGaussian::new(2.0, 0.01, 1000)?])?;
    /// assert!(run.group_epsilon_upper(1e-5, 3)? > 3.0 * run.epsilon(1e-5)?.upper);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn group_epsilon_upper(&self, delta: f64, size: u64) -> Result<f64> {
        in_open_unit("delta", delta)?;
        if size <= 1 {
            antinoise_input::at_least("size", size as usize, 1)?;
            return Ok(self.epsilon(delta)?.upper);
        }
        // The cost of cutting batches is counted once for the group, not converted.
        let rest = self.uncut_delta(delta, size);
        if self.is_truncated() && rest > 0.0 {
            return self.uncut()?.group_epsilon_upper(rest, size);
        }
        self.converted_upper(delta, size)
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
        let upper = self.group_epsilon_upper(delta, size)?;
        if size == 1 || self.is_truncated() && self.uncut_delta(delta, size) > 0.0 {
            return Ok(Bounds { lower: self.epsilon(delta)?.lower.min(upper), upper });
        }
        let k = size as f64;
        // A bound on epsilon bounds the growth factor, which bounds delta for one unit, which gives a better
        // bound on epsilon: iterate.
        let mut least = self.epsilon(delta / k)?.lower;
        for _ in 0..4 {
            least = self.epsilon((delta / growth_lower(least, k)).max(f64::MIN_POSITIVE))?.lower;
        }
        Ok(Bounds { lower: (k * least).min(upper), upper })
    }

    /// The epsilon of [`group_privacy_upper`] at the largest delta of one unit for which that of the group is
    /// at most `delta`, where batches are not cut.
    fn converted_upper(&self, delta: f64, size: u64) -> Result<f64> {
        let best = Cell::new(f64::INFINITY);
        // ln of the group's delta over `delta`, at e^ln_one of one unit.
        let excess = |ln_one: f64| -> Result<f64> {
            let one = ln_one.exp().max(f64::MIN_POSITIVE);
            let epsilon = self.epsilon(one)?.upper;
            let (total, grown) = group_privacy_upper(epsilon, one, size)?;
            let excess = ln_one + ln_growth(epsilon, size as f64) - delta.ln();
            if grown > delta {
                return Ok(excess.max(f64::MIN_POSITIVE));
            }
            best.set(total.min(best.get()));
            Ok(excess.min(0.0))
        };
        let start = (delta / size as f64).ln();
        let least = (delta.ln() - LARGEST).min(start);
        let (mut fails, mut works) = ((start, f64::INFINITY), (start, excess(start)?));
        while works.1 > 0.0 {
            if works.0 <= least {
                let reason = format!("a group of {size} is too large");
                return Err(Error::OutOfReach { parameter: "epsilon", reason });
            }
            // A smaller delta of one unit has a larger epsilon, and so a larger growth factor: the answer is
            // below this one by the excess at least. The secant through two places passes the answer, since
            // epsilon grows ever slower.
            let slope = (fails.1 - works.1) / (fails.0 - works.0);
            let further = works.1 / if slope > 0.0 { slope.clamp(0.25, 1.0) } else { 1.0 };
            fails = works;
            works.0 = (works.0 - further.max(TOLERANCE)).max(least);
            works.1 = excess(works.0)?;
        }
        crossing(fails, works, TOLERANCE, |ln_one| excess(ln_one).unwrap_or(f64::INFINITY));
        Ok(best.get())
    }
}

/// The epsilon of a group from which on no bound is looked for: it would protect nobody, and bounds for one
/// unit at ever smaller deltas become loose.
const LARGEST: f64 = 200.0;

/// Tolerance of ln delta of one unit.
const TOLERANCE: f64 = 1e-6;

/// ln of the sum of e^{j epsilon} over j < k.
fn ln_growth(epsilon: f64, k: f64) -> f64 {
    if epsilon == 0.0 {
        return k.ln();
    }
    let ln_exp_m1 = |x: f64| x + (-(-x).exp_m1()).ln();
    ln_exp_m1(k * epsilon) - ln_exp_m1(epsilon)
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
