//! The same rounds without noise: what privacy costs is seen against it. NOT PRIVATE.

use antinoise_input::at_least;
use antinoise_noise::{Key, KeyedRng, Purpose, RunId};

use super::cohort::drawn;
use crate::Error;
use crate::clip::Clip;
use crate::local::{LocalSteps, Population, cohort_sum};
use crate::optimizer::{Optimizer, Rule};

/// What is trained, on whom, and how.
pub struct Reference<'a, P> {
    /// Users, their data and the model.
    pub population: &'a P,
    /// What a user does in a round.
    pub local: LocalSteps,
    /// How the server follows the mean of updates.
    pub rule: Rule,
    /// Users in a round, and what the sum is divided by.
    pub cohort: usize,
    /// Rounds.
    pub rounds: usize,
    /// Rounds between two of one user, at least.
    pub min_sep: usize,
    /// Most length of an update; none where they count as they are.
    pub clip_norm: Option<f64>,
}

impl<P: Population> Reference<'_, P> {
    /// Trains from `start`, cohorts drawn by `key`, and gives the parameters. All users are always there.
    ///
    /// # Errors
    /// When a number is out of range or the model cannot be computed.
    pub fn train(&self, start: Vec<f32>, key: &Key) -> Result<Vec<f32>, Error> {
        at_least("cohort", self.cohort, 1)?;
        at_least("min_sep", self.min_sep, 1)?;
        let local = self.local.check()?;
        let clip = self.clip_norm.map(Clip::new).transpose()?;
        let (mut parameters, mut optimizer) =
            (start, Optimizer::new(self.rule.of_gradients(), self.population.parameters())?);
        let (run, users) = (RunId::default(), self.population.users());
        let mut free_from = vec![0; users];
        for round in 0..self.rounds {
            let free = (0..users).filter(|&user| free_from[user] <= round).collect();
            let cohort = drawn(
                free,
                self.cohort,
                &mut KeyedRng::new(key, &run, Purpose::BatchSampling, round as u64),
            )?;
            cohort.iter().for_each(|&user| free_from[user] = round + self.min_sep);
            let own = |user| {
                KeyedRng::new(key, &run, Purpose::DataOrder, 1 + round as u64 * users as u64 + user as u64)
            };
            let sum = cohort_sum(self.population, local, &parameters, &cohort, clip, own)?.gradient;
            let mean: Vec<f32> = sum.iter().map(|x| (x / self.cohort as f64) as f32).collect();
            optimizer.step(&mut parameters, &mean);
        }
        Ok(parameters)
    }
}
