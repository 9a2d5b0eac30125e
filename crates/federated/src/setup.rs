use std::collections::HashMap;

use antinoise_input::{InvalidParameter, hex};
use antinoise_plan::{CLIP_ROUNDING, VerifiedPlan};
use antinoise_train::checkpoint::Identity;
use antinoise_train::clip::sum_margin;
use antinoise_train::optimizer::OptimizerConfig;

use crate::Error;
use crate::cohort::CHUNK;
use crate::local_steps::LocalSteps;
use crate::population::Population;

/// The inputs of a run, apart from its key, its start and the availability of users.
pub struct FederatedSetup<'a, P> {
    /// Rounds, limits of users, clip norm, noise and privacy; the batch size is the size of the cohort.
    pub plan: &'a VerifiedPlan,
    /// Users, their data and the model.
    pub population: &'a P,
    /// The local training of a user in a round.
    pub local: LocalSteps,
    /// The server's optimizer on the noisy mean of updates, with its schedule over the rounds.
    pub optimizer: OptimizerConfig,
}

impl<P> Clone for FederatedSetup<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for FederatedSetup<'_, P> {}

impl<P: Population> FederatedSetup<'_, P> {
    /// Checks that plan, users, model, rules and `start` fit each other.
    ///
    /// # Errors
    /// Names the part that does not fit.
    pub fn check(&self, start: &[f32]) -> Result<(), Error> {
        self.optimizer.check(self.plan.steps)?;
        self.local.check()?;
        self.plan.participation_limits()?;
        let (users, parameters) = (self.population.users(), self.population.parameters());
        if self.plan.examples != users {
            let must_be = format!("{users}, the users of the population");
            return Err(InvalidParameter::new("examples of the plan", self.plan.examples, must_be).into());
        }
        if start.len() != parameters {
            let must_be = format!("{parameters}, the model's");
            return Err(InvalidParameter::new("number of parameters", start.len(), must_be).into());
        }
        self.plan.check_dim(parameters)?;
        let margin = sum_margin(self.plan.batch_size, CHUNK)?;
        if margin > CLIP_ROUNDING {
            let must_be = format!(
                "so small that rounding errors of its sum are at most {CLIP_ROUNDING:.2e} clip norms"
            );
            return Err(InvalidParameter::new("cohort of the plan", self.plan.batch_size, must_be).into());
        }
        Ok(())
    }

    /// The identity of a run of this setup in its checkpoints.
    pub fn identity(&self) -> Identity {
        Identity::new([
            ("plan", hex(&self.plan.digest())),
            ("users and model", self.population.identity()),
            ("local steps", format!("{:?}", self.local)),
            ("optimizer", self.optimizer.identity()),
        ])
    }

    /// The index of each user by name.
    pub(super) fn numbers(&self) -> Result<HashMap<String, usize>, InvalidParameter> {
        let mut numbers = HashMap::with_capacity(self.population.users());
        for user in 0..self.population.users() {
            let name = self.population.name(user);
            if numbers.insert(name.to_owned(), user).is_some() {
                return Err(InvalidParameter::new("name of a user", format!("{name:?} twice"), "one user's"));
            }
        }
        Ok(numbers)
    }
}
