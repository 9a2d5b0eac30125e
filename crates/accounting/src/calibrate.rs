//! Solvers for the noise multiplier, the number of steps or the sampling rate, given the other two and a
//! privacy target.
//!
//! For every answer, the upper bound on epsilon was evaluated and meets the target. The answer differs
//! relatively by at most 1e-4 from the best one for that bound. (epsilon and delta themselves are
//! [`Composition::epsilon`] and [`Composition::delta`].)
//!
//! ```
//! use antinoise_accounting::{Composition, PoissonSampledGaussian, calibrate};
//! let sigma = calibrate::noise_multiplier_upper(0.01, 1000, 2.0, 1e-6)?;
//! let run = Composition::new([PoissonSampledGaussian::new(sigma, 0.01, 1000)?])?;
//! assert!(run.epsilon(1e-6)?.upper <= 2.0);
//! # Ok::<(), antinoise_accounting::Error>(())
//! ```
use antinoise_input::{InvalidParameter, in_open_unit, non_negative};

use crate::root::crossing;
use crate::{
    Composition, Error, PoissonSampledGaussian, RandomAllocation, Result, gaussian_noise_multiplier_upper,
};

/// Relative tolerance of an answer.
const TOLERANCE: f64 = 1e-4;

/// The smallest noise multiplier that makes `steps` Poisson-sampled steps `(epsilon, delta)`-private.
///
/// # Errors
/// When a parameter is out of its range, or no noise multiplier up to 1e12 suffices.
///
/// ```
/// let sigma = antinoise_accounting::calibrate::noise_multiplier_upper(1.0, 1, 2.0, 1e-6)?;
/// assert!((sigma - 2.23048).abs() < 1e-5);
/// # Ok::<(), antinoise_accounting::Error>(())
/// ```
pub fn noise_multiplier_upper(sampling_rate: f64, steps: u64, epsilon: f64, delta: f64) -> Result<f64> {
    PoissonSampledGaussian::new(1.0, sampling_rate, steps)?.noise_multiplier_upper(epsilon, delta)
}

impl PoissonSampledGaussian {
    /// The smallest noise multiplier, in place of its own, that makes these steps `(epsilon, delta)`-private.
    ///
    /// # Errors
    /// When a parameter is out of its range, or no noise multiplier up to 1e12 suffices.
    ///
    /// ```
    /// let run = antinoise_accounting::PoissonSampledGaussian::new(1.0, 0.01, 1000)?;
    /// let (one, replaced) = (run.noise_multiplier_upper(1.0, 1e-5)?, run.replaced().noise_multiplier_upper(1.0, 1e-5)?);
    /// assert!(1.5 * one < replaced && replaced < 2.0 * one);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn noise_multiplier_upper(self, epsilon: f64, delta: f64) -> Result<f64> {
        let target = Target::new(epsilon, delta)?;
        // The answer without sampling has a closed form, and is an upper bound.
        let unamplified = gaussian_noise_multiplier_upper(epsilon, delta)?
            * (self.steps() as f64).sqrt()
            * self.distance() as f64;
        if unamplified > 1e12 {
            return Err(out_of_reach("noise_multiplier"));
        }
        if self.sampling_rate() == 1.0 {
            return target.first_that_meets(unamplified.max(1e-6), |sigma| self.with_noise_multiplier(sigma));
        }
        target.least("noise_multiplier", unamplified.max(1e-6), 1e-6, |sigma| {
            self.with_noise_multiplier(sigma.clamp(1e-6, 1e12))
        })
    }
}

impl RandomAllocation {
    /// The smallest noise multiplier, in place of its own, that makes these epochs
    /// `(epsilon, delta)`-private.
    ///
    /// # Errors
    /// When a parameter is out of its range, or no noise multiplier in the range of [`RandomAllocation::new`]
    /// suffices.
    ///
    /// ```
    /// use antinoise_accounting::{RandomAllocation, calibrate};
    /// let allocated = RandomAllocation::new(1.0, 10, 4)?.noise_multiplier_upper(2.0, 1e-6)?;
    /// let poisson = calibrate::noise_multiplier_upper(0.1, 40, 2.0, 1e-6)?;
    /// assert!(0.8 * poisson < allocated && allocated < 0.95 * poisson);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn noise_multiplier_upper(self, epsilon: f64, delta: f64) -> Result<f64> {
        let target = Target::new(epsilon, delta)?;
        let unamplified = gaussian_noise_multiplier_upper(epsilon, delta)? * (self.epochs() as f64).sqrt();
        let (low, high) = (*Self::NOISE.start(), *Self::NOISE.end());
        let within = |sigma: f64| self.with_noise_multiplier(sigma.clamp(low, high));
        if unamplified > high && !target.meets(&within(high)?)? {
            let must_be =
                format!("larger: random allocation is accounted for up to a noise multiplier of {high}");
            return Err(InvalidParameter::new("epsilon", epsilon, must_be).into());
        }
        target.least("noise_multiplier", unamplified.clamp(low, high), low, within)
    }
}

/// The largest number of steps at `noise_multiplier` and `sampling_rate` that is `(epsilon, delta)`-private.
///
/// # Errors
/// When a parameter is out of its range, or even a single step does not meet the target.
///
/// ```
/// let steps = antinoise_accounting::calibrate::steps_lower(2.0, 0.01, 1.0, 1e-5)?;
/// assert!((2400..2450).contains(&steps), "{steps}");
/// # Ok::<(), antinoise_accounting::Error>(())
/// ```
pub fn steps_lower(noise_multiplier: f64, sampling_rate: f64, epsilon: f64, delta: f64) -> Result<u64> {
    let target = Target::new(epsilon, delta)?;
    let taken = |inverse: f64| (1.0 / inverse).clamp(1.0, MAX_STEPS as f64) as u64;
    let run = |inverse| PoissonSampledGaussian::new(noise_multiplier, sampling_rate, taken(inverse));
    if !target.meets(&run(1.0)?)? {
        return Err(out_of_reach("steps"));
    }
    Ok(taken(target.least("steps", 1.0, 1.0 / MAX_STEPS as f64, run)?))
}

/// Maximum number of steps in a search.
const MAX_STEPS: u64 = 1 << 40;

/// The largest sampling rate at which `steps` steps with `noise_multiplier` are `(epsilon, delta)`-private.
///
/// # Errors
/// When a parameter is out of its range, or no rate above 1e-12 meets the target.
///
/// ```
/// let rate = antinoise_accounting::calibrate::sampling_rate_lower(1.0, 1000, 2.0, 1e-6)?;
/// assert!(rate > 0.005 && rate < 0.05, "{rate}");
/// # Ok::<(), antinoise_accounting::Error>(())
/// ```
pub fn sampling_rate_lower(noise_multiplier: f64, steps: u64, epsilon: f64, delta: f64) -> Result<f64> {
    let target = Target::new(epsilon, delta)?;
    if target.meets(&PoissonSampledGaussian::new(noise_multiplier, 1.0, steps)?)? {
        return Ok(1.0);
    }
    let inverse = target.least("sampling_rate", 2.0, 1.0, |inverse| {
        PoissonSampledGaussian::new(noise_multiplier, (1.0 / inverse).min(1.0), steps)
    })?;
    Ok(1.0 / inverse)
}

/// A run whose epsilon is compared with a target.
trait Run {
    /// An upper bound on epsilon.
    fn epsilon_upper(&self, delta: f64) -> Result<f64>;

    /// A fast estimate of epsilon.
    fn epsilon_near(&self, delta: f64) -> Result<f64>;

    /// An estimate of the upper bound, which mostly is that bound, in a fraction of the time.
    fn epsilon_upper_near(&self, delta: f64) -> Result<f64>;
}

impl Run for PoissonSampledGaussian {
    fn epsilon_upper(&self, delta: f64) -> Result<f64> {
        Ok(Composition::new([*self])?.epsilon(delta)?.upper)
    }

    fn epsilon_near(&self, delta: f64) -> Result<f64> {
        Ok(Composition::new([*self])?.epsilon_near(delta))
    }

    fn epsilon_upper_near(&self, delta: f64) -> Result<f64> {
        Composition::new([*self])?.epsilon_removed_upper(delta)
    }
}

impl Run for RandomAllocation {
    fn epsilon_upper(&self, delta: f64) -> Result<f64> {
        self.epsilon_upper(delta)
    }

    fn epsilon_near(&self, delta: f64) -> Result<f64> {
        self.epsilon_near(delta)
    }

    fn epsilon_upper_near(&self, delta: f64) -> Result<f64> {
        self.epsilon_removed_upper(delta)
    }
}

/// A value of the parameter that a search changes, and how fast the relative excess of epsilon falls with the
/// logarithm of the parameter there.
#[derive(Clone, Copy)]
struct Guess {
    value: f64,
    slope: f64,
}

/// The privacy target (epsilon, delta).
struct Target {
    epsilon: f64,
    delta: f64,
}

impl Target {
    fn new(epsilon: f64, delta: f64) -> Result<Self> {
        Ok(Self { epsilon: non_negative("epsilon", epsilon)?, delta: in_open_unit("delta", delta)? })
    }

    /// The relative excess of `epsilon` over the target, which is at most 0 if the target is met.
    fn excess(&self, epsilon: f64) -> f64 {
        relative(epsilon - self.epsilon, epsilon + self.epsilon)
    }

    fn meets(&self, run: &impl Run) -> Result<bool> {
        Ok(self.excess(run.epsilon_upper(self.delta)?) <= 0.0)
    }

    /// The first of `start` and `start (1 + 2^k 1e-15)`, k = 0, 1, ..., that meets the target.
    fn first_that_meets(
        &self,
        start: f64,
        run: impl Fn(f64) -> Result<PoissonSampledGaussian>,
    ) -> Result<f64> {
        let (mut value, mut more) = (start, 1e-15);
        while !self.meets(&run(value)?)? {
            value = start * (1.0 + more);
            more *= 2.0;
        }
        Ok(value)
    }

    /// The least value >= `low` that meets the target, for a parameter that decreases epsilon. `start` is a
    /// first guess.
    fn least<R: Run>(
        &self,
        parameter: &'static str,
        start: f64,
        low: f64,
        run: impl Fn(f64) -> Result<R>,
    ) -> Result<f64> {
        let near = self.near(start, low, &run)?;
        let excess = |value: f64| Ok(self.excess(run(value)?.epsilon_upper(self.delta)?));
        let fast = |value: f64| Ok(self.excess(run(value)?.epsilon_upper_near(self.delta)?));
        let found = solve(parameter, near, low, fast);
        if let Ok(Found { works, fails }) = &found {
            // Mostly, the fast estimates are the bounds at both ends.
            let misses = |value| excess(value).is_ok_and(|excess| excess > 0.0);
            if excess(works.0)? == works.1 && fails.is_none_or(misses) {
                return Ok(works.0);
            }
        }
        let near = found.map_or(near, |found| Guess { value: found.works.0, ..near });
        Ok(solve(parameter, near, low, excess)?.works.0)
    }

    /// An estimate of the least value, from a fast approximation of epsilon.
    fn near<R: Run>(&self, start: f64, low: f64, run: impl Fn(f64) -> Result<R>) -> Result<Guess> {
        let excess = |value: f64| Ok::<f64, Error>(self.excess(run(value)?.epsilon_near(self.delta)?));
        let guess = |value| Guess { value, slope: 1.0 };
        let mut works: (f64, f64) = (start, excess(start)?);
        while works.1 > 0.0 {
            if works.0 > 1e12 {
                return Ok(guess(start));
            }
            works.0 *= 4.0;
            works.1 = excess(works.0)?;
        }
        let mut fails = works;
        while fails.1 <= 0.0 {
            if fails.0 <= low {
                return Ok(guess(low));
            }
            works = fails;
            fails.0 = (0.25 * fails.0).max(low);
            fails.1 = excess(fails.0)?;
        }
        let at = |ln: f64| excess(ln.exp()).unwrap_or(f64::INFINITY);
        let (low, high) = crossing((fails.0.ln(), fails.1), (works.0.ln(), works.1), 0.005, at);
        let slope = (at(low) - at(high)) / (high - low);
        Ok(Guess { value: high.exp(), slope })
    }
}

/// The answer of a search.
struct Found {
    /// The least value that meets the target, and the excess there.
    works: (f64, f64),
    /// A smaller value that misses it, within the tolerance; `None` if there is none in the range.
    fails: Option<f64>,
}

/// Finds the least value >= `low` at which `excess` is at most 0, for an excess that falls with the value.
fn solve(
    parameter: &'static str,
    near: Guess,
    low: f64,
    excess: impl Fn(f64) -> Result<f64>,
) -> Result<Found> {
    let at = |value: f64| Ok::<_, Error>((value, excess(value)?));
    let (mut works, mut fails) = (at(near.value)?, (low, f64::INFINITY));
    // Bracket the answer: a step to a little beyond it, and further ones of growing size.
    let mut step = (1.1 * works.1.abs() / near.slope + TOLERANCE).clamp(TOLERANCE, 0.1);
    let next = |step: f64| (2.0 * step).min(4f64.ln());
    while works.1 > 0.0 {
        if works.0 > 1e12 {
            return Err(out_of_reach(parameter));
        }
        fails = works;
        works = at(works.0 * step.exp())?;
        step = next(step);
    }
    while fails.1 == f64::INFINITY && works.0 > low {
        let there = at((works.0 * (-step).exp()).max(low))?;
        if there.1 > 0.0 {
            fails = there
        } else {
            works = there
        }
        step = next(step);
    }
    if works.0 <= low {
        return Ok(Found { works, fails: None });
    }
    // The relative excess is nearly linear in the logarithm of the parameter.
    let seen = std::cell::Cell::new(works);
    let (fails, _) = crossing((fails.0.ln(), fails.1), (works.0.ln(), works.1), TOLERANCE, |ln| {
        let value = ln.exp();
        let there = excess(value).unwrap_or(f64::INFINITY);
        if there <= 0.0 {
            seen.set((value, there));
        }
        there
    });
    // Exactly the value that was evaluated.
    Ok(Found { works: seen.get(), fails: Some(fails.exp()) })
}

/// `difference / sum`; 0 if both are 0, 1 if they are infinite.
fn relative(difference: f64, sum: f64) -> f64 {
    if sum.is_finite() { difference / sum.max(f64::MIN_POSITIVE) } else { 1.0 }
}

fn out_of_reach(parameter: &'static str) -> Error {
    Error::OutOfReach { parameter, reason: "the privacy target is too strict".into() }
}
