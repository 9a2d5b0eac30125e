//! Batches by random allocation: the pair of one epoch, from the law of the mean of its likelihood ratios.
//!
//! In an epoch of T steps an example takes part in one step, chosen uniformly. In units of the noise, the
//! pair is the mixture of the T normal distributions around the unit vectors times mu against N(0, 1): its
//! ratio is the mean of T independent ratios e^{mu z - mu^2 / 2} ([`law`]). Values of the curve are means of
//! convex functions of that ratio, so that bounds on its law in convex order bound them.

mod curve;
mod law;

use std::ops::RangeInclusive;
use std::sync::Arc;

use antinoise_input::{InvalidParameter, in_open_unit, non_negative};

use super::bounds::Bounds;
use super::discrete::Bound;
use super::fit::Fit;
use super::grid::LARGEST;
use super::mixtures::tail;
use super::pair::{Component, Pair, Point, Rounding};
use super::profile::Direction;
use super::side::Side;
use crate::{Gdp, Result};
use curve::Curve;
use law::Law;

/// DP-SGD with independent noise on batches by random allocation: in every epoch each example takes part in
/// one step, chosen uniformly and independently of other examples and of other epochs.
///
/// Figures hold under zero-out and add-or-remove, and if contributions depend on earlier releases. The choice
/// of steps is secret. A loader that shuffles and cuts batches of a fixed size allocates otherwise, since the
/// place of one example then depends on the others. Where one choice serves all epochs (balls in bins), k
/// epochs are one with the noise multiplier over sqrt(k).
///
/// # Source
/// Feldman and Shenfeld, "Privacy amplification by random allocation" (2025), and Choquette-Choo et al.,
/// "Near exact privacy amplification for matrix mechanisms" (2024), for the dominating pair. The bounds on
/// its curve are our own (docs/accounting.md).
///
/// ```
/// use antinoise_accounting::{Composition, PoissonSampledGaussian, RandomAllocation};
/// let allocated = RandomAllocation::new(1.0, 100, 10)?.epsilon(1e-6)?;
/// assert!(allocated.upper <= 1.01 * allocated.lower);
/// let poisson = Composition::new([PoissonSampledGaussian::new(1.0, 0.01, 1000)?])?.epsilon(1e-6)?;
/// assert!(allocated.upper < 1.1 * poisson.upper);
/// # Ok::<(), antinoise_accounting::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomAllocation {
    noise_multiplier: f64,
    steps: u64,
    epochs: u64,
}

/// Largest number of steps of an epoch, and of epochs.
const MOST_STEPS: u64 = 10_000_000;
const MOST_EPOCHS: u64 = 1_000_000;
/// Distances of the knots of a law, each used if bounds by the one before are not close: bounds on epsilon
/// are apart by the square of the distance times about a quarter of the number of doublings, relatively.
const SPACINGS: [f64; 2] = [0.02, 0.006];
/// Distance of the knots for estimates.
const ROUGH: f64 = 0.1;

impl RandomAllocation {
    /// The noise multipliers that are accounted for.
    pub(crate) const NOISE: RangeInclusive<f64> = 0.2..=1e4;

    /// `epochs` epochs of `steps` steps each, with noise of standard deviation `noise_multiplier` in clip
    /// norms.
    ///
    /// # Errors
    /// When `noise_multiplier` is not in 0.2..=1e4, `steps` not from 1 to 1e7, or `epochs` not
    /// from 1 to 1e6.
    ///
    /// ```
    /// use antinoise_accounting::RandomAllocation;
    /// assert!(RandomAllocation::new(1.0, 100, 10).is_ok());
    /// assert!(RandomAllocation::new(0.01, 100, 10).is_err());
    /// ```
    pub fn new(noise_multiplier: f64, steps: u64, epochs: u64) -> Result<Self> {
        if !Self::NOISE.contains(&noise_multiplier) {
            let must_be = "from 0.2 to 1e4 for random allocation";
            return Err(InvalidParameter::new("noise_multiplier", noise_multiplier, must_be).into());
        }
        for (name, number, most) in [("epoch_steps", steps, MOST_STEPS), ("epochs", epochs, MOST_EPOCHS)] {
            if !(1..=most).contains(&number) {
                let must_be = format!("from 1 to {:e}", most as f64);
                return Err(InvalidParameter::new(name, number, must_be).into());
            }
        }
        Ok(Self { noise_multiplier, steps, epochs })
    }

    /// Bounds on the least `epsilon` at `delta`.
    ///
    /// # Errors
    /// When `delta` is not between 0 and 1.
    ///
    /// ```
    /// use antinoise_accounting::{Gdp, RandomAllocation};
    /// // One step in an epoch does not sample.
    /// let (found, exact) = (RandomAllocation::new(1.0, 1, 1)?.epsilon(1e-5)?, Gdp::new(1.0)?.epsilon_upper(1e-5)?);
    /// assert!(found.lower <= exact && exact <= found.upper && found.upper < 1.001 * exact);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn epsilon(&self, delta: f64) -> Result<Bounds> {
        in_open_unit("delta", delta)?;
        let unamplified = self.unamplified()?.epsilon_upper(delta)?;
        if self.steps == 1 {
            return Ok(Bounds { lower: self.unamplified()?.epsilon_lower(delta)?, upper: unamplified });
        }
        Ok(self.refined(|sides| self.epsilon_of(sides, delta)).capped(unamplified))
    }

    /// Bounds on the least `delta` at `epsilon`.
    ///
    /// # Errors
    /// When `epsilon` is negative or not finite.
    ///
    /// ```
    /// use antinoise_accounting::RandomAllocation;
    /// let run = RandomAllocation::new(1.0, 100, 10)?;
    /// let epsilon = run.epsilon(1e-6)?.upper;
    /// assert!(run.delta(epsilon)?.lower <= 1e-6 && run.delta(0.9 * epsilon)?.lower > 1e-6);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn delta(&self, epsilon: f64) -> Result<Bounds> {
        non_negative("epsilon", epsilon)?;
        let unamplified = self.unamplified()?.delta_upper(epsilon)?;
        if self.steps == 1 {
            return Ok(Bounds { lower: self.unamplified()?.delta_lower(epsilon)?, upper: unamplified });
        }
        let mut found = self.refined(|[remove, add]| {
            let one = remove.delta(epsilon, Bounds::ZERO);
            one.worse(add.delta(epsilon, one))
        });
        // A positive delta that underflows must not be stated as 0.
        found.upper = found.upper.max(f64::MIN_POSITIVE);
        Ok(found.capped(unamplified))
    }

    /// The number of epochs.
    pub(crate) fn epochs(&self) -> u64 {
        self.epochs
    }

    /// The same epochs with another noise multiplier.
    pub(crate) fn with_noise_multiplier(&self, noise_multiplier: f64) -> Result<Self> {
        Self::new(noise_multiplier, self.steps, self.epochs)
    }

    /// A fast estimate of the least epsilon at `delta`, for searches.
    pub(crate) fn epsilon_near(&self, delta: f64) -> Result<f64> {
        let [remove, _] = self.sides(ROUGH);
        Ok(Fit::new(&remove.parts, delta.ln()).target.min(self.unamplified()?.epsilon_upper(delta)?))
    }

    /// An upper bound on the least epsilon at `delta`, mostly within a thousandth of that of
    /// [`RandomAllocation::epsilon`], in a fraction of the time.
    pub(crate) fn epsilon_upper(&self, delta: f64) -> Result<f64> {
        let found = self.epsilon_of(self.sides(SPACINGS[0]), delta).upper;
        Ok(found.min(self.unamplified()?.epsilon_upper(delta)?))
    }

    /// An upper bound on the epsilon at `delta` of a removed example, which mostly is
    /// [`RandomAllocation::epsilon_upper`], in a fraction of the time.
    pub(crate) fn epsilon_removed_upper(&self, delta: f64) -> Result<f64> {
        let [remove, _] = self.sides(SPACINGS[0]);
        let unamplified = self.unamplified()?.epsilon_upper(delta)?;
        Ok(match self.delta_at_zero_upper(&remove) <= delta {
            true => 0.0,
            false => remove.first_upper(delta.ln()).min(unamplified),
        })
    }

    fn epsilon_of(&self, [remove, add]: [Side; 2], delta: f64) -> Bounds {
        // If delta is at least the sum of all total variations, epsilon is 0.
        if self.delta_at_zero_upper(&remove) <= delta {
            return Bounds::ZERO;
        }
        let one = remove.epsilon(delta.ln(), Bounds::ZERO);
        one.worse(add.epsilon(delta.ln(), one))
    }

    /// The bounds that `ask` reads from the sides, with finer laws until they are close.
    fn refined(&self, ask: impl Fn([Side; 2]) -> Bounds) -> Bounds {
        let [first, second] = SPACINGS;
        let found = ask(self.sides(first));
        if found.narrow() {
            return found;
        }
        let again = ask(self.sides(second));
        Bounds { lower: found.lower.max(again.lower), upper: found.upper.min(again.upper) }
    }

    /// The privacy of the same steps if the choices were public.
    fn unamplified(&self) -> Result<Gdp> {
        Gdp::from_noise_multiplier_upper(self.noise_multiplier)?.repeat_upper(self.epochs)
    }

    /// The sum of delta(0) over all epochs: an upper bound on that of the run.
    fn delta_at_zero_upper(&self, side: &Side) -> f64 {
        side.parts[0].0.at(0.0, Rounding::Up).value * self.epochs as f64 * (1.0 + 1e-12)
    }

    /// Removal and addition, by laws whose knots are `spacing` apart.
    fn sides(&self, spacing: f64) -> [Side; 2] {
        let mu = 1.0 / self.noise_multiplier;
        let curve = |bound| {
            let infinite = if bound == Bound::Above { law::beyond(mu, self.steps) } else { 0.0 };
            Arc::new(Curve::new(&Law::of_sum(mu, self.steps, bound, spacing), self.steps, infinite, bound))
        };
        let (above, below) = rayon::join(|| curve(Bound::Above), || curve(Bound::Below));
        Direction::BOTH.map(|direction| {
            let pair = Allocated::new(direction, above.clone(), below.clone());
            Side { parts: vec![(Box::new(pair), self.epochs)] }
        })
    }
}

/// The pair of one epoch in one direction.
#[derive(Debug)]
struct Allocated {
    direction: Direction,
    above: Arc<Curve>,
    below: Arc<Curve>,
    /// The losses of the atoms in increasing order, with the masses under P of those below each one, and of
    /// each one and those above.
    quantiles: Vec<(f64, f64, f64)>,
}

impl Allocated {
    fn new(direction: Direction, above: Arc<Curve>, below: Arc<Curve>) -> Self {
        let losses = below.losses(direction);
        let mut quantiles: Vec<_> = losses
            .iter()
            .scan(0.0, |sum, &(loss, mass)| {
                let before = *sum;
                *sum += mass;
                Some((loss, before, 0.0))
            })
            .collect();
        let mut beyond = 0.0;
        for ((_, _, from), (_, mass)) in quantiles.iter_mut().zip(&losses).rev() {
            beyond += mass;
            *from = beyond;
        }
        Self { direction, above, below, quantiles }
    }
}

impl Pair for Allocated {
    /// The loss whose quantile is that of `z` in N(0, 1).
    fn loss(&self, z: f64) -> f64 {
        let all = &self.quantiles;
        let (at, mass) = if z > 0.0 {
            let mass = tail(z);
            (all.partition_point(|&(_, _, from)| from >= mass), mass)
        } else {
            let mass = tail(-z);
            (all.partition_point(|&(_, before, _)| before <= mass), mass)
        };
        let i = at.clamp(1, all.len() - 1);
        let (low, high) = (all[i - 1], all[i]);
        // Within an interval, the logarithm of the mass is interpolated.
        let (start, end) = if z > 0.0 { (low.2, high.2) } else { (low.1, high.1) };
        let part = ((mass / start).ln() / (end / start).ln()).clamp(0.0, 1.0);
        if part.is_nan() { high.0 } else { low.0 + part * (high.0 - low.0) }
    }

    fn steepness(&self, z: f64) -> f64 {
        const STEP: f64 = 0.1;
        (self.loss(z + STEP) - self.loss(z - STEP)) / (2.0 * STEP)
    }

    fn bound(&self) -> f64 {
        f64::INFINITY
    }

    fn greatest(&self, reach: f64) -> f64 {
        self.loss(reach)
    }

    fn at(&self, loss: f64, rounding: Rounding) -> Point {
        // Beyond the losses whose exponentials are normal numbers, the curve is below its last value.
        match rounding {
            Rounding::Up => self.above.at(self.direction, loss.clamp(-LARGEST, LARGEST)),
            Rounding::Down if loss.abs() > LARGEST => Point::ZERO,
            Rounding::Down => self.below.at(self.direction, loss),
        }
    }

    fn components(&self) -> Vec<Component> {
        vec![Component { mean: 0.0, ln_weight: 0.0 }]
    }
}
