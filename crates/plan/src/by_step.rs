//! The privacy spent by a run's first steps.

use antinoise_accounting::{Composition, Gdp};
use antinoise_input::between;
use antinoise_mechanism::rounded;

use crate::plan::zero_outs;
use crate::{Accountant, Result, Sampler, VerifiedPlan};

impl VerifiedPlan {
    /// Upper bounds on the epsilon of the first t steps at the plan's delta, for each t of `after`, in
    /// increasing order. The bounds are non-decreasing and at most the plan's own. A run that is stopped
    /// after t steps, for a reason that does not depend on the data, has this epsilon.
    ///
    /// For Monte Carlo accountants, whose figures take long, it is the minimum of the plan's epsilon and the
    /// unamplified one.
    ///
    /// # Errors
    /// When a t is 0, above n or not above its predecessor, or the run has too many steps to materialise C.
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
        let mut found = match (self.privacy.accountant, self.sampler) {
            (Accountant::SampledGaussian, Sampler::Poisson { groups }) => {
                self.sampled_by_step(groups, after)?
            }
            (
                Accountant::Gdp | Accountant::SampledGaussian | Accountant::BallsInBins | Accountant::BMinSep,
                _,
            ) => self.unamplified_by_step(after)?,
        };
        // A bound for more steps bounds fewer steps too.
        let mut most = self.privacy.epsilon;
        for epsilon in found.iter_mut().rev() {
            most = most.min(*epsilon);
            *epsilon = most;
        }
        Ok(found)
    }

    /// A unit has participated at most once in each begun round of `groups` steps.
    fn sampled_by_step(&self, groups: usize, after: &[usize]) -> Result<Vec<f64>> {
        let units = zero_outs(self.privacy.adjacency);
        let epsilon = |&steps: &usize| -> Result<f64> {
            let run = Composition::new([self.sampled_run(steps.max(groups))?])?;
            Ok(run.group_epsilon(self.privacy.delta, units)?.upper)
        };
        after.iter().map(epsilon).collect()
    }

    fn unamplified_by_step(&self, after: &[usize]) -> Result<Vec<f64>> {
        let (strategy, kind) = (&*self.strategy, self.release.kind());
        let prefixes =
            rounded::prefix_sensitivities_upper(strategy, &self.participation, kind.precision(), after)?;
        let epsilon = |sensitivity: f64| -> Result<f64> {
            let gdp = Gdp::from_noise_multiplier_upper(self.noise_over(sensitivity))?;
            Ok(gdp.epsilon_upper(self.privacy.delta)?)
        };
        prefixes.into_iter().map(epsilon).collect()
    }
}
