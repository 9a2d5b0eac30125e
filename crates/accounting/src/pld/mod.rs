//! The privacy loss distribution accountant: the composition of Poisson-sampled Gaussian steps, each a pair
//! of distributions (`pair`): of one example (`profile`), of several or a replaced one (`mixtures`), or of
//! one whose direction may change from step to step (`any_direction`), or of one that is zeroed in batches of
//! a fixed size (`zeroed`). Epochs with batches by random allocation (`allocation`) are composed in the same
//! way.
mod allocation;
mod any_direction;
mod bounds;
mod characteristic;
mod discrete;
mod fit;
mod fourier;
mod grid;
mod mixtures;
mod pair;
mod poisson_sampled;
mod profile;
mod side;
mod tilt;
mod truncation;
mod zeroed;

use antinoise_input::{in_open_unit, non_negative};

use crate::{Gdp, Result};
pub use allocation::RandomAllocation;
pub use bounds::Bounds;
use pair::{Phase, Rounding};
use poisson_sampled::Change;
pub use poisson_sampled::PoissonSampledGaussian;
pub(crate) use profile::Direction;
use profile::Profile;
use side::Side;

/// The adaptive composition of any number of [`PoissonSampledGaussian`] phases.
///
/// It is computed by privacy loss distributions: each step is bounded by discrete distributions from above
/// (connect-the-dots) and from below, whose sums are evaluated in Fourier space. Rounding, truncation and
/// smoothing are always on the safe side. Compositions of full-batch phases alone are exact, by [`Gdp`].
/// Where batches are cut at a maximum size, its cost is added to delta
/// ([`truncation_delta_upper`](PoissonSampledGaussian::truncation_delta_upper)).
///
/// # Source
/// Doroshenko et al., "Connect the dots" (2022); Zhu, Dong and Wang, "Optimal accounting of differential
/// privacy via characteristic function" (2022).
///
/// ```
/// use antinoise_accounting::{Composition, PoissonSampledGaussian};
/// let run = Composition::new([PoissonSampledGaussian::new(1.0, 0.01, 10_000)?])?;
/// let epsilon = run.epsilon(1e-6)?;
/// assert!(epsilon.lower <= 6.9074 && 6.9073 <= epsilon.upper);
/// assert!(epsilon.upper - epsilon.lower <= 1e-3 * epsilon.upper);
/// # Ok::<(), antinoise_accounting::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Composition {
    sampled: Vec<PoissonSampledGaussian>,
    /// All full-batch steps together.
    full: Gdp,
}

impl Composition {
    /// The composition of `phases`.
    ///
    /// # Errors
    /// When the full-batch phases alone reveal more than [`Gdp`] can express.
    ///
    /// ```
    /// use antinoise_accounting::{Composition, PoissonSampledGaussian};
    /// let run = Composition::new([PoissonSampledGaussian::new(1.0, 0.01, 100)?, PoissonSampledGaussian::new(2.0, 0.05, 50)?])?;
    /// assert!(run.epsilon(1e-5)?.upper < 3.0);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn new(phases: impl IntoIterator<Item = PoissonSampledGaussian>) -> Result<Self> {
        let (full, sampled): (Vec<_>, Vec<_>) =
            phases.into_iter().partition(|phase| phase.sampling_rate == 1.0 && phase.truncation.is_none());
        let full = Gdp::compose_upper(full.iter().map(unamplified).collect::<Result<Vec<_>>>()?)?;
        Ok(Self { sampled, full })
    }

    /// Bounds on the least `epsilon` at `delta`.
    ///
    /// # Errors
    /// When `delta` is not between 0 and 1.
    ///
    /// ```
    /// use antinoise_accounting::{Composition, PoissonSampledGaussian};
    /// let run = Composition::new([PoissonSampledGaussian::new(1.0, 0.01, 100)?, PoissonSampledGaussian::new(2.0, 0.05, 50)?])?;
    /// assert!(run.epsilon(1e-5)?.lower > 0.5);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn epsilon(&self, delta: f64) -> Result<Bounds> {
        in_open_unit("delta", delta)?;
        if self.is_truncated() {
            let (rest, unamplified) = (self.uncut_delta(delta, 1), self.unamplified()?.epsilon_upper(delta)?);
            let upper = if rest > 0.0 { self.uncut()?.epsilon(rest)?.upper } else { f64::INFINITY };
            let lower = self.thinned()?.epsilon(delta)?.lower;
            return Ok(Bounds { lower, upper }.capped(upper.min(unamplified)));
        }
        if self.sampled.is_empty() {
            return Ok(Bounds {
                lower: self.full.epsilon_lower(delta)?,
                upper: self.full.epsilon_upper(delta)?,
            });
        }
        // If delta is at least the sum of all total variations, epsilon is 0.
        if self.delta_at_zero_upper() <= delta {
            return Ok(Bounds::ZERO);
        }
        let one = self.side(Direction::Remove).epsilon(delta.ln(), Bounds::ZERO);
        let other =
            if self.is_symmetric() { one } else { self.side(Direction::Add).epsilon(delta.ln(), one) };
        let unamplified = self.unamplified()?.epsilon_upper(delta)?;
        let found = one.worse(other).capped(unamplified);
        if self.is_in_any_direction() {
            // The pair of a step need not be that of any neighbours.
            let lower = self.mapped(PoissonSampledGaussian::in_one_direction)?.epsilon(delta)?.lower;
            return Ok(Bounds { lower: lower.min(found.upper), ..found });
        }
        Ok(found)
    }

    /// Bounds on the least `delta` at `epsilon`.
    ///
    /// # Errors
    /// When `epsilon` is negative or not finite.
    ///
    /// ```
    /// use antinoise_accounting::{Composition, PoissonSampledGaussian};
    /// let run = Composition::new([PoissonSampledGaussian::new(1.0, 0.01, 100)?, PoissonSampledGaussian::new(2.0, 0.05, 50)?])?;
    /// assert!(run.delta(1.0)?.upper < 1e-3);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn delta(&self, epsilon: f64) -> Result<Bounds> {
        non_negative("epsilon", epsilon)?;
        if self.is_truncated() {
            let cost = self.truncation_delta_upper(1);
            let uncut = if cost < 1.0 { self.uncut()?.delta(epsilon)?.upper } else { 1.0 };
            let upper = (uncut + cost).next_up().min(self.unamplified()?.delta_upper(epsilon)?).min(1.0);
            let lower = self.thinned()?.delta(epsilon)?.lower;
            return Ok(Bounds { lower, upper }.capped(upper));
        }
        if self.sampled.is_empty() {
            return Ok(Bounds {
                lower: self.full.delta_lower(epsilon)?,
                upper: self.full.delta_upper(epsilon)?,
            });
        }
        let one = self.side(Direction::Remove).delta(epsilon, Bounds::ZERO);
        let other = if self.is_symmetric() { one } else { self.side(Direction::Add).delta(epsilon, one) };
        let unamplified = self.unamplified()?.delta_upper(epsilon)?;
        let mut found = one.worse(other);
        if Direction::BOTH.iter().any(|&direction| self.side(direction).reaches(epsilon)) {
            // A positive delta that underflows must not be stated as 0.
            found.upper = found.upper.max(f64::MIN_POSITIVE);
        }
        if self.is_in_any_direction() {
            let lower = self.mapped(PoissonSampledGaussian::in_one_direction)?.delta(epsilon)?.lower;
            found.lower = lower.min(found.upper);
        }
        Ok(found.capped(unamplified))
    }

    /// Whether the pairs of both directions are mirror images of each other.
    fn is_symmetric(&self) -> bool {
        self.sampled.iter().all(|phase| matches!(phase.change, Change::Replaced | Change::InAnyDirection))
    }

    /// Whether some phase may be compared in another direction in each step.
    fn is_in_any_direction(&self) -> bool {
        self.sampled.iter().any(|phase| phase.change == Change::InAnyDirection)
    }

    /// A fast estimate of the least epsilon at `delta`, usually slightly above it, for searches.
    pub(crate) fn epsilon_near(&self, delta: f64) -> f64 {
        let rest = self.uncut_delta(delta, 1);
        if self.sampled.is_empty() || rest <= 0.0 {
            let unamplified = self.unamplified().and_then(|all| all.epsilon_upper(delta));
            return unamplified.unwrap_or(f64::INFINITY);
        }
        fit::Fit::new(&self.side(Direction::Remove).parts, rest.ln()).target
    }

    /// An upper bound on the epsilon at `delta` of a removed example, which mostly is that of
    /// [`Composition::epsilon`], in a fraction of the time.
    pub(crate) fn epsilon_removed_upper(&self, delta: f64) -> Result<f64> {
        let rest = self.uncut_delta(delta, 1);
        if self.is_truncated() && rest > 0.0 {
            return self.uncut()?.epsilon_removed_upper(rest);
        }
        if self.is_truncated() || self.sampled.is_empty() || self.delta_at_zero_upper() <= delta {
            return Ok(self.epsilon(delta)?.upper);
        }
        let unamplified = self.unamplified()?.epsilon_upper(delta)?;
        Ok(self.side(Direction::Remove).first_upper(delta.ln()).min(unamplified))
    }

    /// Whether batches of some phase are cut at a maximum size.
    pub(crate) fn is_truncated(&self) -> bool {
        self.sampled.iter().any(|phase| phase.truncation.is_some())
    }

    /// An upper bound on what cutting batches adds to the delta of `groups` times as many examples.
    fn truncation_delta_upper(&self, groups: u64) -> f64 {
        let costs = self.sampled.iter().map(|phase| phase.truncation_delta_upper_of(groups));
        costs.fold(0.0, |sum, cost| if cost == 0.0 { sum } else { (sum + cost).next_up() })
    }

    /// What cutting batches leaves of the `delta` of `groups` times as many examples, rounded down; not
    /// positive if it leaves nothing.
    pub(crate) fn uncut_delta(&self, delta: f64, groups: u64) -> f64 {
        if self.is_truncated() { (delta - self.truncation_delta_upper(groups)).next_down() } else { delta }
    }

    /// The same phases without maximum batch sizes, to whose delta the cost of cutting is added.
    pub(crate) fn uncut(&self) -> Result<Self> {
        self.mapped(PoissonSampledGaussian::uncut)
    }

    /// Phases without maximum batch sizes that are no less private.
    fn thinned(&self) -> Result<Self> {
        self.mapped(PoissonSampledGaussian::thinned)
    }

    fn mapped(&self, change: impl Fn(PoissonSampledGaussian) -> PoissonSampledGaussian) -> Result<Self> {
        let Self { sampled, full } = Self::new(self.sampled.iter().copied().map(change))?;
        Ok(Self { sampled, full: Gdp::compose_upper([full, self.full])? })
    }

    /// The privacy of the same steps without sampling, which is an upper bound.
    fn unamplified(&self) -> Result<Gdp> {
        let sampled = self.sampled.iter().map(unamplified).collect::<Result<Vec<_>>>()?;
        Gdp::compose_upper(sampled.into_iter().chain([self.full]))
    }

    /// The sum of delta(0) over all steps: an upper bound on that of the composition.
    fn delta_at_zero_upper(&self) -> f64 {
        let at = |(pair, steps): &Phase| pair.at(0.0, Rounding::Up).value * *steps as f64;
        self.side(Direction::Remove).parts.iter().map(at).sum::<f64>() * (1.0 + 1e-12)
    }

    fn side(&self, direction: Direction) -> Side {
        let mut parts: Vec<Phase> =
            self.sampled.iter().map(|phase| (phase.pair(direction), phase.steps)).collect();
        if self.full.mu() > 0.0 {
            parts.push((Box::new(Profile { mu: self.full.mu(), q: 1.0, direction }), 1));
        }
        Side { parts }
    }
}

/// The guarantee of a phase without sampling, which is an upper bound.
fn unamplified(phase: &PoissonSampledGaussian) -> Result<Gdp> {
    let one = Gdp::from_noise_multiplier_upper(phase.noise_multiplier)?;
    one.group_upper(phase.distance())?.repeat_upper(phase.steps)
}
