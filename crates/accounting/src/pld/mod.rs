//! The privacy loss distribution accountant.
mod discrete;
mod fit;
mod fourier;
mod profile;
mod side;
mod tilt;

use antinoise_input::{InvalidParameter, in_open_unit, larger, non_negative, positive};

use crate::{Gdp, Result};
pub(crate) use profile::Direction;
use profile::{Profile, Rounding};
use side::Side;

/// Two numbers with the truth between them.
///
/// ```
/// use antinoise_accounting::{Composition, SampledGaussian};
/// let epsilon = Composition::new([SampledGaussian::new(2.0, 0.1, 100)?])?.epsilon(1e-5)?;
/// assert!(epsilon.lower <= epsilon.upper);
/// # Ok::<(), antinoise_accounting::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bracket {
    /// Never above the truth.
    pub lower: f64,
    /// Never below the truth: the figure to state.
    pub upper: f64,
}

/// `steps` steps that each add Gaussian noise to the sum over a Poisson sample.
///
/// Every example takes part in a step with probability `sampling_rate`, independently; the noise has
/// `noise_multiplier` times the largest norm of one example's contribution as its standard deviation.
/// Neighbours differ in one example, which is there or not (add-or-remove), or contributes nothing (zero-out).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampledGaussian {
    noise_multiplier: f64,
    sampling_rate: f64,
    steps: u64,
}

impl SampledGaussian {
    /// `steps` steps at `sampling_rate` with `noise_multiplier`.
    ///
    /// # Errors
    /// When `noise_multiplier` is not in 1e-6..=1e12, `sampling_rate` not in (0, 1], or `steps` is 0 or above 1e15.
    ///
    /// ```
    /// use antinoise_accounting::SampledGaussian;
    /// assert!(SampledGaussian::new(1.0, 0.01, 1000).is_ok());
    /// assert!(SampledGaussian::new(1.0, 1.01, 1000).unwrap_err().to_string().starts_with("sampling_rate is 1.01"));
    /// ```
    pub fn new(noise_multiplier: f64, sampling_rate: f64, steps: u64) -> Result<Self> {
        positive("noise_multiplier", noise_multiplier)?;
        if !(1e-6..=1e12).contains(&noise_multiplier) {
            return Err(InvalidParameter::new(
                "noise_multiplier",
                format!("{noise_multiplier:?}"),
                "from 1e-6 to 1e12",
            )
            .into());
        }
        if !(sampling_rate > 0.0 && sampling_rate <= 1.0) {
            return Err(InvalidParameter::new("sampling_rate", sampling_rate, "above 0 and at most 1").into());
        }
        if !(1..=1_000_000_000_000_000).contains(&steps) {
            return Err(InvalidParameter::new("steps", steps, "from 1 to 1e15").into());
        }
        Ok(Self { noise_multiplier, sampling_rate, steps })
    }

    /// The noise multiplier.
    ///
    /// ```
    /// assert_eq!(antinoise_accounting::SampledGaussian::new(1.5, 0.1, 10)?.noise_multiplier(), 1.5);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn noise_multiplier(&self) -> f64 {
        self.noise_multiplier
    }

    /// The probability that an example takes part in a step.
    ///
    /// ```
    /// assert_eq!(antinoise_accounting::SampledGaussian::new(1.5, 0.1, 10)?.sampling_rate(), 0.1);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn sampling_rate(&self) -> f64 {
        self.sampling_rate
    }

    /// The number of steps.
    ///
    /// ```
    /// assert_eq!(antinoise_accounting::SampledGaussian::new(1.5, 0.1, 10)?.steps(), 10);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn steps(&self) -> u64 {
        self.steps
    }

    pub(crate) fn profile(&self, direction: Direction) -> Profile {
        Profile { mu: 1.0 / self.noise_multiplier, q: self.sampling_rate, direction }
    }
}

/// Any number of [`SampledGaussian`] phases, one after the other, each with sight of the ones before.
///
/// The accountant is that of privacy loss distributions: each step is bracketed by discrete distributions
/// above (connect-the-dots) and below it, whose sums are evaluated in Fourier space with every rounding,
/// truncation and smoothing on the safe side. Full-batch phases alone are exact, by [`Gdp`].
///
/// # Source
/// Doroshenko et al., "Connect the dots" (2022); Zhu, Dong and Wang, "Optimal accounting of differential
/// privacy via characteristic function" (2022).
///
/// ```
/// use antinoise_accounting::{Composition, SampledGaussian};
/// let run = Composition::new([SampledGaussian::new(1.0, 0.01, 10_000)?])?;
/// let epsilon = run.epsilon(1e-6)?;
/// assert!(epsilon.lower <= 6.9074 && 6.9073 <= epsilon.upper);
/// assert!(epsilon.upper - epsilon.lower <= 1e-3 * epsilon.upper);
/// # Ok::<(), antinoise_accounting::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Composition {
    sampled: Vec<SampledGaussian>,
    /// All steps that sample everything, as one.
    full: Gdp,
}

/// The relative width of a bracket that is aimed at.
const WIDTH: f64 = 8e-4;

impl Composition {
    /// The composition of `phases`.
    ///
    /// # Errors
    /// When the full-batch phases alone reveal more than [`Gdp`] can express.
    ///
    /// ```
    /// use antinoise_accounting::{Composition, SampledGaussian};
    /// let run = Composition::new([SampledGaussian::new(1.0, 0.01, 100)?, SampledGaussian::new(2.0, 0.05, 50)?])?;
    /// assert!(run.epsilon(1e-5)?.upper < 3.0);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn new(phases: impl IntoIterator<Item = SampledGaussian>) -> Result<Self> {
        let (full, sampled): (Vec<_>, Vec<_>) =
            phases.into_iter().partition(|phase| phase.sampling_rate == 1.0);
        let repeated =
            |phase: &SampledGaussian| Gdp::from_noise_multiplier(phase.noise_multiplier)?.repeat(phase.steps);
        let full = Gdp::compose(full.iter().map(repeated).collect::<Result<Vec<_>>>()?)?;
        Ok(Self { sampled, full })
    }

    /// The least `epsilon` at `delta`.
    ///
    /// # Errors
    /// When `delta` is not between 0 and 1.
    ///
    /// ```
    /// use antinoise_accounting::{Composition, SampledGaussian};
    /// let run = Composition::new([SampledGaussian::new(1.0, 0.01, 100)?, SampledGaussian::new(2.0, 0.05, 50)?])?;
    /// assert!(run.epsilon(1e-5)?.lower > 0.5);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn epsilon(&self, delta: f64) -> Result<Bracket> {
        in_open_unit("delta", delta)?;
        if self.sampled.is_empty() {
            return Ok(Bracket {
                lower: self.full.epsilon_lower(delta)?,
                upper: self.full.epsilon_upper(delta)?,
            });
        }
        // Where delta is at least the sum of all total variations, epsilon is 0.
        if self.delta_at_zero() <= delta {
            return Ok(Bracket::NOTHING);
        }
        let one = self.side(Direction::Remove).epsilon(delta.ln(), Bracket::NOTHING);
        let other = self.side(Direction::Add).epsilon(delta.ln(), one);
        let unamplified = self.unamplified()?.epsilon_upper(delta)?;
        Ok(one.worse(other).capped(unamplified))
    }

    /// The least `delta` at `epsilon`.
    ///
    /// # Errors
    /// When `epsilon` is negative or not finite.
    ///
    /// ```
    /// use antinoise_accounting::{Composition, SampledGaussian};
    /// let run = Composition::new([SampledGaussian::new(1.0, 0.01, 100)?, SampledGaussian::new(2.0, 0.05, 50)?])?;
    /// assert!(run.delta(1.0)?.upper < 1e-3);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn delta(&self, epsilon: f64) -> Result<Bracket> {
        non_negative("epsilon", epsilon)?;
        if self.sampled.is_empty() {
            return Ok(Bracket {
                lower: self.full.delta_lower(epsilon)?,
                upper: self.full.delta_upper(epsilon)?,
            });
        }
        let one = self.side(Direction::Remove).delta(epsilon, Bracket::NOTHING);
        let other = self.side(Direction::Add).delta(epsilon, one);
        let unamplified = self.unamplified()?.delta_upper(epsilon)?;
        let mut found = one.worse(other);
        if Direction::BOTH.iter().any(|&direction| self.side(direction).reaches(epsilon)) {
            // Too small for a double is not 0.
            found.upper = found.upper.max(f64::MIN_POSITIVE);
        }
        Ok(found.capped(unamplified))
    }

    /// All phases, the full-batch ones as one step.
    pub(crate) fn phases(&self) -> impl Iterator<Item = SampledGaussian> + '_ {
        let mu = self.full.mu();
        let full = (mu > 0.0).then_some(SampledGaussian {
            noise_multiplier: 1.0 / mu,
            sampling_rate: 1.0,
            steps: 1,
        });
        self.sampled.iter().copied().chain(full)
    }

    /// About the least epsilon at `delta`, mostly somewhat above: a guide for searches, found in a moment.
    pub(crate) fn epsilon_near(&self, delta: f64) -> f64 {
        if self.sampled.is_empty() {
            return self.full.epsilon_upper(delta).unwrap_or(f64::INFINITY);
        }
        fit::Fit::new(&self.side(Direction::Remove), delta.ln()).target
    }

    /// The same steps without sampling: an upper bound on everything.
    fn unamplified(&self) -> Result<Gdp> {
        let repeated =
            |phase: &SampledGaussian| Gdp::from_noise_multiplier(phase.noise_multiplier)?.repeat(phase.steps);
        let sampled = self.sampled.iter().map(repeated).collect::<Result<Vec<_>>>()?;
        Gdp::compose(sampled.into_iter().chain([self.full]))
    }

    /// The sum of delta(0) over all steps: an upper bound on that of the composition.
    fn delta_at_zero(&self) -> f64 {
        let at = |(profile, steps): &(Profile, u64)| profile.at(0.0, Rounding::Up).value * *steps as f64;
        self.side(Direction::Remove).parts.iter().map(at).sum::<f64>() * (1.0 + 1e-12)
    }

    fn side(&self, direction: Direction) -> Side {
        let mut parts: Vec<_> =
            self.sampled.iter().map(|phase| (phase.profile(direction), phase.steps)).collect();
        if self.full.mu() > 0.0 {
            parts.push((Profile { mu: self.full.mu(), q: 1.0, direction }, 1));
        }
        Side { parts }
    }
}

impl Bracket {
    const NOTHING: Self = Self { lower: 0.0, upper: 0.0 };

    fn worse(self, other: Self) -> Self {
        Self { lower: self.lower.max(other.lower), upper: larger(self.upper, other.upper) }
    }

    fn capped(self, most: f64) -> Self {
        Self { lower: self.lower.min(most), upper: self.upper.min(most) }
    }

    fn narrow(&self) -> bool {
        self.upper - self.lower <= WIDTH * self.upper
    }
}
