//! The privacy of a run's first steps: what had been spent when they were released.

use antinoise_accounting::{Composition, Gdp};
use antinoise_input::between;
use antinoise_mechanism::rounded;

use crate::plan::{RECOMPUTED, replaced};
use crate::{Result, Scheme, VerifiedPlan};

impl VerifiedPlan {
    /// epsilon at the plan's delta of the first t steps, for each t of `after`, which increases: not below the truth, not above the plan's own, and never
    /// falling. A run that is stopped after t steps, for a reason that has nothing to do with the data, has this epsilon.
    ///
    /// Where a claim is shown by sampling, so that each figure takes long, it is the lesser of the plan's own and that without amplification.
    ///
    /// # Errors
    /// When a t is 0, above n or not above the one before, or there are too many steps to write C out.
    ///
    /// ```
    /// use antinoise_plan::{Length, Request, Setting, choose};
    /// let plan = choose(&Request::new(1000, 50, Length::Epochs(4), Setting::Cyclic))?.plan;
    /// let spent = plan.epsilon_by_step(&[1, 20, 40, 80])?;
    /// assert!(spent.is_sorted() && spent[1] < 0.6 * plan.privacy.epsilon && spent[3] <= plan.privacy.epsilon);
    /// # Ok::<(), antinoise_plan::Error>(())
    /// ```
    pub fn epsilon_by_step(&self, after: &[usize]) -> Result<Vec<f64>> {
        let mut least = 1;
        for &steps in after {
            between("steps", steps, least, self.steps, "the plan's")?;
            least = steps + 1;
        }
        let mut found = match self.scheme() {
            Scheme::Amplified { groups } => self.sampled_by_step(groups, after)?,
            _ => self.unamplified_by_step(after)?,
        };
        // What bounds more steps bounds fewer.
        let mut most = self.privacy.epsilon;
        for epsilon in found.iter_mut().rev() {
            most = most.min(*epsilon);
            *epsilon = most;
        }
        Ok(found)
    }

    /// Each group has had as many turns as there are rounds that have begun.
    fn sampled_by_step(&self, groups: usize, after: &[usize]) -> Result<Vec<f64>> {
        let units = replaced(self.privacy.adjacency);
        let epsilon = |&steps: &usize| -> Result<f64> {
            let run = Composition::new([self.sampled_run_of(groups, steps.max(groups))?])?;
            Ok(run.group_epsilon(self.privacy.delta, units)?.upper)
        };
        after.iter().map(epsilon).collect()
    }

    fn unamplified_by_step(&self, after: &[usize]) -> Result<Vec<f64>> {
        let (strategy, kind) = (&*self.strategy, self.release.kind());
        let running =
            rounded::prefix_sensitivities_upper(strategy, &self.participation, kind.precision(), after)?;
        let noise = kind.noise(&strategy.recursion()?, self.steps)?;
        let past = self.past_share(strategy.sensitivity(&self.participation)?.value, &noise, None)?;
        let epsilon = |running: f64| -> Result<f64> {
            let noise_multiplier = self.noise_over(running, past);
            Ok(Gdp::from_noise_multiplier_upper(noise_multiplier)?.epsilon_upper(self.privacy.delta)?)
        };
        running.into_iter().map(epsilon).collect()
    }

    /// 1 / mu, rounded down, of those who move the C that runs by `running`, in clip norms, where double precision adds `past` to the past's
    /// share of the noise.
    pub(crate) fn noise_over(&self, running: f64, past: f64) -> f64 {
        let moved = (running * RECOMPUTED * self.privacy.adjacency.sensitivity_factor()).next_up();
        let per_noise = ((moved * self.widened_clip_norm()).next_up() / self.noise_std()).next_up();
        (1.0 / (per_noise + past).next_up()).next_down()
    }
}
