//! Federated training without noise, as a baseline for the cost of privacy. NOT PRIVATE.

use antinoise_input::at_least;
use antinoise_noise::{Key, KeyedRng, Purpose, RunId};
use antinoise_train::optimizer::{Optimizer, OptimizerConfig};

use crate::Error;
use crate::cohort::{by_name, cohort_sum, draw_cohort};
use crate::local_steps::LocalSteps;
use crate::population::Population;

/// A federated run without noise.
pub struct NonPrivateFederation<'a, P> {
    /// Users, their data and the model.
    pub population: &'a P,
    /// The local training of a user in a round.
    pub local: LocalSteps,
    /// The server's optimizer on the mean of updates, with its schedule over the rounds.
    pub optimizer: OptimizerConfig,
    /// Number of users in a round, and the divisor of the sum.
    pub cohort: usize,
    /// Number of rounds.
    pub rounds: usize,
    /// Minimum number of rounds between two participations of a user.
    pub min_sep: usize,
    /// Bound on the length of an update; `None` for no clipping.
    pub clip_norm: Option<f64>,
}

impl<P: Population> NonPrivateFederation<'_, P> {
    /// Trains from `start`, drawing cohorts by `key`, and returns the parameters. All users are always
    /// available.
    ///
    /// # Errors
    /// If a number is out of range or the model cannot be computed.
    pub fn train(&self, start: Vec<f32>, key: &Key) -> Result<Vec<f32>, Error> {
        at_least("cohort", self.cohort, 1)?;
        at_least("min_sep", self.min_sep, 1)?;
        let local = self.local.check()?;
        let (mut parameters, mut optimizer) =
            (start, Optimizer::of_run(self.optimizer, self.population.parameters(), self.rounds)?);
        let (run, users, by_name) = (RunId::default(), self.population.users(), by_name(self.population));
        let mut free_from = vec![0; users];
        for round in 0..self.rounds {
            let free: Vec<usize> = by_name.iter().copied().filter(|&user| free_from[user] <= round).collect();
            let cohort = draw_cohort(
                &free,
                self.cohort,
                &mut KeyedRng::new(key, &run, Purpose::BatchSampling, round as u64),
            )?;
            cohort.iter().for_each(|&user| free_from[user] = round + self.min_sep);
            let own = |user| {
                KeyedRng::new(key, &run, Purpose::DataOrder, 1 + round as u64 * users as u64 + user as u64)
            };
            let (sum, _) = cohort_sum(self.population, local, &parameters, &cohort, self.clip_norm, own)?;
            let mean: Vec<f32> = sum.gradient.iter().map(|x| (x / self.cohort as f64) as f32).collect();
            optimizer.step(&mut parameters, &mean);
        }
        Ok(parameters)
    }
}
