//! The privacy of a user who has several examples.

use antinoise_accounting::{Composition, Gdp, PoissonSampledGaussian};
use antinoise_input::{InvalidParameter, at_least};
use antinoise_mechanism::PrivacyUnit;

use crate::{Result, VerifiedPlan};

impl VerifiedPlan {
    /// An upper bound, at the plan's delta, on the epsilon of a user who has `examples` of the examples:
    /// neighbouring data sets differ in all of them.
    ///
    /// Under Gaussian differential privacy, mu is multiplied by `examples`. With Poisson sampling of all
    /// examples in every step, up to 64 examples have the exact pair, a mixture of Gaussians by their number
    /// in the batch. For more of them, and for groups of examples that take turns, the bound is the smaller
    /// one of [`Composition::group_epsilon`], which may not exist, and of the bound without sampling. With
    /// balls-in-bins or b-min-sep sampling, the bound for more than one example has no amplification.
    ///
    /// # Errors
    /// When `examples` is 0, or the plan's unit is a user already.
    ///
    /// # Source
    /// Dong, Roth and Su (2022), theorem 2.14; Vadhan (2017), lemma 2.2; docs/accounting.md for the mixture.
    ///
    /// ```
    /// use antinoise_plan::{Length, Request, Setting, choose};
    /// let plan = choose(&Request::new(1000, 50, Length::Epochs(2), Setting::Cyclic))?.plan;
    /// assert_eq!(plan.epsilon_of_user(1)?, plan.privacy.epsilon);
    /// assert!(plan.epsilon_of_user(5)? > 5.0 * plan.privacy.epsilon);
    /// # Ok::<(), antinoise_plan::Error>(())
    /// ```
    pub fn epsilon_of_user(&self, examples: usize) -> Result<f64> {
        at_least("examples_per_user", examples, 1)?;
        let (privacy, size) = (&self.privacy, examples as u64);
        if privacy.unit != PrivacyUnit::Example {
            let must_be = "left out: the plan's unit is a user, however many examples a user has";
            return Err(InvalidParameter::new("examples_per_user", examples, must_be).into());
        }
        if size == 1 {
            return Ok(privacy.epsilon);
        }
        if let Some(run) = self.sampled_run(self.steps)? {
            if self.dp_sgd_groups() == Some(1)
                && let Ok(all) = run.of_group(size)
            {
                return Ok(Composition::new([all])?.epsilon(privacy.delta)?.upper);
            }
            // Without sampling, the unit takes part in every turn of its group, and all turns together are
            // one Gaussian mechanism.
            let turns = Gdp::from_noise_multiplier_upper(unsampled(&run))?;
            let contributions = size.saturating_mul(privacy.adjacency.sensitivity_factor() as u64);
            let unsampled = turns.group_upper(contributions)?.epsilon_upper(privacy.delta)?;
            let sampled = Composition::new([run])?.group_epsilon_upper(privacy.delta, size);
            return Ok(sampled.map_or(unsampled, |sampled| sampled.min(unsampled)));
        }
        let one = Gdp::from_noise_multiplier_upper(self.noise_multiplier)?;
        Ok(one.group_upper(size)?.epsilon_upper(privacy.delta)?)
    }
}

/// The noise multiplier of a Gaussian mechanism that stands for all turns of a run, if the unit takes part in
/// each of them; rounded down.
fn unsampled(run: &PoissonSampledGaussian) -> f64 {
    run.noise_multiplier() / (run.steps() as f64).sqrt() * (1.0 - 4.0 * f64::EPSILON)
}

impl VerifiedPlan {
    /// Refuses a plan whose sampler draws users. A program that takes the indices of users for indices of
    /// examples, and clips each example separately, would violate the plan's claim.
    ///
    /// # Errors
    /// When the plan has `max_examples_per_user`.
    ///
    /// ```
    /// use antinoise_plan::{Length, PrivacyUnit, Request, Setting, choose};
    /// let of_examples = Request::new(1000, 50, Length::Epochs(2), Setting::Cyclic);
    /// assert!(choose(&of_examples)?.plan.check_draws_no_users().is_ok());
    /// let (unit, max_examples_per_user) = (PrivacyUnit::User, Some(20));
    /// let of_users = Request { unit, max_examples_per_user, ..of_examples };
    /// assert!(choose(&of_users)?.plan.check_draws_no_users().is_err());
    /// # Ok::<(), antinoise_plan::Error>(())
    /// ```
    pub fn check_draws_no_users(&self) -> Result<()> {
        let Some(most) = self.max_examples_per_user else { return Ok(()) };
        let must_be = "absent, or the plan be run by `antinoise train --user` or antinoise_train::trainer: the batches are \
                       of users, and other trainers do not clip all examples of a user as one";
        Err(InvalidParameter::new("max_examples_per_user of the plan", most, must_be).into())
    }
}

#[cfg(test)]
mod tests {
    use antinoise_input::BadInput;
    use antinoise_mechanism::Adjacency;

    use super::*;
    use crate::{Length, Request, Setting, choose};

    fn plan(setting: Setting) -> VerifiedPlan {
        let request = Request { epsilon: 1.0, ..Request::new(1000, 50, Length::Epochs(2), setting) };
        choose(&request).unwrap().plan
    }

    /// A user with k examples moves the noisy sum k times as far, as if the noise multiplier were divided by
    /// k.
    #[test]
    fn k_examples_cost_what_a_kth_of_the_noise_does() {
        let plan = plan(Setting::Cyclic);
        for k in [2usize, 5, 20] {
            let gdp = Gdp::from_noise_multiplier_upper(plan.noise_multiplier / k as f64).unwrap();
            let wanted = gdp.epsilon_upper(plan.privacy.delta).unwrap();
            let found = plan.epsilon_of_user(k).unwrap();
            assert!(
                found >= wanted * (1.0 - 1e-12) && found < wanted * (1.0 + 1e-9),
                "{k}: {found} {wanted}"
            );
        }
    }

    #[test]
    fn the_bound_grows_with_the_number_of_examples_whatever_the_accountant() {
        for setting in [Setting::Cyclic, Setting::Poisson, Setting::BMinSep] {
            let plan = plan(setting);
            let found: Vec<f64> = [1, 2, 3, 5].map(|k| plan.epsilon_of_user(k).unwrap()).to_vec();
            assert!(found.windows(2).all(|pair| pair[0] < pair[1]), "{found:?}");
            assert!(found[1] > 2.0 * plan.privacy.epsilon_lower, "{found:?}");
            assert!(plan.epsilon_of_user(0).unwrap_err().is_bad_input());
        }
    }

    fn independent_noise_in_poisson_batches(adjacency: Adjacency) -> VerifiedPlan {
        let specs = Some(vec!["identity".parse().unwrap()]);
        let request = Request::new(6000, 60, Length::Epochs(4), Setting::Poisson);
        choose(&Request { adjacency, specs, epsilon: 2.0, delta: 1e-5, ..request }).unwrap().plan
    }

    /// All examples of the user are sampled independently: the pair is a mixture by their number in the
    /// batch.
    #[test]
    fn examples_under_poisson_sampling_are_a_mixture() {
        for adjacency in [Adjacency::ZeroOut, Adjacency::ReplaceOne] {
            let plan = independent_noise_in_poisson_batches(adjacency);
            let run = plan.sampled_run(plan.steps).unwrap().unwrap();
            for k in [2, 5, 20] {
                let found = plan.epsilon_of_user(k).unwrap();
                let mixture = Composition::new([run.of_group(k as u64).unwrap()]).unwrap();
                assert_eq!(found, mixture.epsilon(1e-5).unwrap().upper, "{adjacency} {k}");
                let converted = Composition::new([run]).unwrap().group_epsilon_upper(1e-5, k as u64);
                assert!(
                    converted.clone().unwrap_or(f64::INFINITY) > found,
                    "{adjacency} {k}: {found} {converted:?}"
                );
            }
        }
    }

    /// For some numbers of examples, group privacy of sampled steps has no finite bound; the bound without
    /// sampling is always finite.
    #[test]
    fn every_number_of_examples_has_a_bound_under_poisson_sampling() {
        for adjacency in [Adjacency::ZeroOut, Adjacency::ReplaceOne] {
            let plan = independent_noise_in_poisson_batches(adjacency);
            let found: Vec<f64> = [1, 2, 5, 20, 100].map(|k| plan.epsilon_of_user(k).unwrap()).to_vec();
            assert!(found.iter().all(|epsilon| epsilon.is_finite()), "{found:?}");
            assert!(found.windows(2).all(|pair| pair[0] < pair[1]), "{found:?}");
        }
    }

    #[test]
    fn a_plan_for_users_has_no_examples_to_count() {
        let setting = Setting::Federated { min_sep: 3, max_participations: Some(3) };
        let request = Request { unit: PrivacyUnit::User, ..Request::new(40, 2, Length::Steps(8), setting) };
        let plan = choose(&request).unwrap().plan;
        assert!(plan.epsilon_of_user(2).unwrap_err().to_string().contains("unit is a user"));
    }
}
