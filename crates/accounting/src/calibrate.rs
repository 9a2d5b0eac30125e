//! Any one of noise multiplier, steps and sampling rate from the others, never less private than asked.
//!
//! Every answer has been checked: the upper bound on epsilon at the answer is at most the one asked for. It
//! is within a relative 1e-4 of the best that the upper bound allows. (epsilon and delta themselves are
//! [`Composition::epsilon`] and [`Composition::delta`].)
//!
//! ```
//! use antinoise_accounting::{Composition, SampledGaussian, calibrate};
//! let sigma = calibrate::noise_multiplier(0.01, 1000, 2.0, 1e-6)?;
//! let run = Composition::new([SampledGaussian::new(sigma, 0.01, 1000)?])?;
//! assert!(run.epsilon(1e-6)?.upper <= 2.0);
//! # Ok::<(), antinoise_accounting::Error>(())
//! ```
use antinoise_input::{in_open_unit, non_negative};

use crate::root::crossing;
use crate::{Composition, Error, Result, SampledGaussian, noise_multiplier_for};

/// How close to its threshold an answer is brought, relatively.
const TOLERANCE: f64 = 1e-4;

/// The smallest noise multiplier that makes `steps` Poisson-sampled steps `(epsilon, delta)`-private.
///
/// # Errors
/// When a parameter is out of its range, or no noise multiplier up to 1e12 suffices.
///
/// ```
/// let sigma = antinoise_accounting::calibrate::noise_multiplier(1.0, 1, 2.0, 1e-6)?;
/// assert!((sigma - 2.23048).abs() < 1e-5);
/// # Ok::<(), antinoise_accounting::Error>(())
/// ```
pub fn noise_multiplier(sampling_rate: f64, steps: u64, epsilon: f64, delta: f64) -> Result<f64> {
    let target = Target::new(epsilon, delta)?;
    SampledGaussian::new(1.0, sampling_rate, steps)?;
    // Without sampling the answer is exact, and sampling only helps.
    let unamplified = noise_multiplier_for(epsilon, delta)? * (steps as f64).sqrt() * (1.0 + 1e-14);
    if sampling_rate == 1.0 || unamplified > 1e12 {
        return in_reach("noise_multiplier", unamplified <= 1e12, unamplified);
    }
    target.least("noise_multiplier", unamplified.max(1e-6), 1e-6, |sigma| {
        SampledGaussian::new(sigma.clamp(1e-6, 1e12), sampling_rate, steps)
    })
}

/// The largest number of steps at `noise_multiplier` and `sampling_rate` that is `(epsilon, delta)`-private.
///
/// # Errors
/// When a parameter is out of its range, or not even one step is that private.
///
/// ```
/// let steps = antinoise_accounting::calibrate::steps(2.0, 0.01, 1.0, 1e-5)?;
/// assert!((2400..2450).contains(&steps), "{steps}");
/// # Ok::<(), antinoise_accounting::Error>(())
/// ```
pub fn steps(noise_multiplier: f64, sampling_rate: f64, epsilon: f64, delta: f64) -> Result<u64> {
    let target = Target::new(epsilon, delta)?;
    let meets = |steps: u64| target.meets(SampledGaussian::new(noise_multiplier, sampling_rate, steps)?);
    if !meets(1)? {
        return in_reach("steps", false, 0);
    }
    let (mut works, mut fails) = (1u64, 2u64);
    while fails < MOST_STEPS && meets(fails)? {
        (works, fails) = (fails, (4 * fails).min(MOST_STEPS));
    }
    while fails - works > 1 && (fails - works) as f64 > TOLERANCE * works as f64 {
        let middle = works + (fails - works) / 2;
        if meets(middle)? { works = middle } else { fails = middle }
    }
    Ok(works)
}

/// More steps than anybody takes: the search for a number of steps ends there.
const MOST_STEPS: u64 = 1 << 40;

/// The largest sampling rate at which `steps` steps with `noise_multiplier` are `(epsilon, delta)`-private.
///
/// # Errors
/// When a parameter is out of its range, or no rate above 1e-12 is that private.
///
/// ```
/// let rate = antinoise_accounting::calibrate::sampling_rate(1.0, 1000, 2.0, 1e-6)?;
/// assert!(rate > 0.005 && rate < 0.05, "{rate}");
/// # Ok::<(), antinoise_accounting::Error>(())
/// ```
pub fn sampling_rate(noise_multiplier: f64, steps: u64, epsilon: f64, delta: f64) -> Result<f64> {
    let target = Target::new(epsilon, delta)?;
    if target.meets(SampledGaussian::new(noise_multiplier, 1.0, steps)?)? {
        return Ok(1.0);
    }
    let inverse = target.least("sampling_rate", 2.0, 1.0, |inverse| {
        SampledGaussian::new(noise_multiplier, (1.0 / inverse).min(1.0), steps)
    })?;
    Ok(1.0 / inverse)
}

/// The privacy that is asked for.
struct Target {
    epsilon: f64,
    delta: f64,
}

impl Target {
    fn new(epsilon: f64, delta: f64) -> Result<Self> {
        Ok(Self { epsilon: non_negative("epsilon", epsilon)?, delta: in_open_unit("delta", delta)? })
    }

    /// How far epsilon is above the target, relatively: at most 0 where the target is met.
    fn excess(&self, run: SampledGaussian) -> Result<f64> {
        let epsilon = Composition::new([run])?.epsilon(self.delta)?.upper;
        Ok((epsilon - self.epsilon) / (epsilon + self.epsilon).max(f64::MIN_POSITIVE))
    }

    fn meets(&self, run: SampledGaussian) -> Result<bool> {
        Ok(self.excess(run)? <= 0.0)
    }

    /// The least value, not below `low`, of a parameter that only adds privacy; sought from `start` on.
    fn least(
        &self,
        parameter: &'static str,
        start: f64,
        low: f64,
        run: impl Fn(f64) -> Result<SampledGaussian>,
    ) -> Result<f64> {
        let excess = |value: f64| self.excess(run(value)?);
        let (mut works, mut fails) = ((start, excess(start)?), (low, f64::INFINITY));
        while works.1 > 0.0 {
            if works.0 > 1e12 {
                return in_reach(parameter, false, works.0);
            }
            fails = works;
            works.0 *= 4.0;
            works.1 = excess(works.0)?;
        }
        // Down by halves to a value that fails.
        while fails.1 == f64::INFINITY && works.0 > low {
            let next = (0.5 * works.0).max(low);
            let there = (next, excess(next)?);
            if there.1 > 0.0 { fails = there } else { works = there }
        }
        if works.0 <= low {
            return Ok(works.0);
        }
        // Relative excess against ln of the parameter is nearly straight.
        let (_, works) = crossing((fails.0.ln(), fails.1), (works.0.ln(), works.1), TOLERANCE, |ln| {
            excess(ln.exp()).unwrap_or(f64::INFINITY)
        });
        Ok(works.exp())
    }
}

fn in_reach<T>(parameter: &'static str, reached: bool, value: T) -> Result<T> {
    if reached {
        return Ok(value);
    }
    Err(Error::OutOfReach { parameter, reason: "the privacy asked for is too strict".into() })
}
