//! A composition by plain sampling: an independent check of the privacy loss distributions.

use antinoise_input::non_negative;

use super::{Direction, MonteCarlo, Normals, PILOT, Source, StatisticalDelta, half_width, tally};
use crate::{Composition, Result, SampledGaussian};

impl Composition {
    /// delta at `epsilon`, the mean of `(1 - e^{epsilon - loss})_+` over sampled runs, with a confidence interval.
    ///
    /// Plain sampling resolves deltas down to about 1e-5; its time grows with the steps. It shares nothing with
    /// [`Composition::delta`] but the loss of one step.
    ///
    /// # Errors
    /// When `epsilon` is negative or not finite, or a setting is out of its range.
    ///
    /// ```
    /// use antinoise_accounting::{Composition, MonteCarlo, SampledGaussian};
    /// let run = Composition::new([SampledGaussian::new(1.0, 0.1, 20)?])?;
    /// let settings = MonteCarlo { precision: 0.2, ..Default::default() };
    /// let (found, proved) = (run.delta_by_sampling(1.0, &settings)?, run.delta(1.0)?);
    /// assert!(found.lower <= proved.upper && proved.lower <= found.upper);
    /// # Ok::<(), antinoise_accounting::Error>(())
    /// ```
    pub fn delta_by_sampling(&self, epsilon: f64, settings: &MonteCarlo) -> Result<StatisticalDelta> {
        let epsilon = non_negative("epsilon", epsilon)?;
        settings.check()?;
        let phases: Vec<SampledGaussian> = self.phases().collect();
        let source = Source::of_seed(settings.seed);
        let sampled = |direction, count, purpose| {
            tally(count, &source.for_purpose(purpose), direction, |normals, tally, count| {
                for _ in 0..count {
                    let loss = loss(&phases, direction, normals);
                    tally.add(if loss > epsilon { -(epsilon - loss).exp_m1() } else { 0.0 });
                }
            })
        };
        let ends = Direction::BOTH.map(|direction| {
            let pilot = sampled(direction, PILOT, 1);
            let count = settings.samples(&pilot, 1.0);
            (sampled(direction, count, 0), count)
        });
        Ok(StatisticalDelta::worse_of(
            ends.map(|(tally, count)| {
                // Two directions, and two sides each.
                (tally.mean(), half_width(&tally, 1.0, 0.25 * settings.failure), count)
            }),
            settings.failure,
        ))
    }
}

/// The privacy loss of one sampled run.
fn loss(phases: &[SampledGaussian], direction: Direction, normals: &mut Normals) -> f64 {
    let mut sum = 0.0;
    for phase in phases {
        let profile = phase.profile(direction);
        for _ in 0..phase.steps() {
            let takes_part = direction == Direction::Remove && normals.uniform() <= profile.q;
            let z = normals.next() + if takes_part { profile.mu } else { 0.0 };
            sum += profile.loss(z);
        }
    }
    sum
}
