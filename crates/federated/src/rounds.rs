use std::collections::HashMap;
use std::time::Instant;

use antinoise_input::{InvalidParameter, hex};
use antinoise_ledger::{Charged, Ledger};
use antinoise_noise::Purpose;
use antinoise_train::checkpoint::{Checkpoints, History, RunState};
use sha2::{Digest, Sha256};

use crate::Error;
use crate::cohort::{cohort_sum, draw_cohort};
use crate::population::Population;
use crate::setup::FederatedSetup;

/// A federated run of a plan of users.
///
/// The same key, start, setup and availability of users give the same parameters bit for bit on the same
/// machine, for any number of threads and after any number of kills.
///
/// ```
/// use antinoise_noise::{Key, RunId};
/// use antinoise_plan::{Length, PrivacyUnit, Request, Setting, choose};
/// use antinoise_federated::{FederatedSetup, Federation, LocalSteps, UserExamples};
/// use antinoise_train::{data::{self, Users}, model::Model, optimizer::UpdateRule};
/// let digits = data::digits();
/// let model = Model::logistic(digits.shape, digits.classes)?;
/// let writers: Vec<String> = (0..digits.train.len()).map(|i| format!("writer {}", i / 36)).collect();
/// let users = Users::new(writers.iter().map(String::as_str))?;
/// let population = &UserExamples::new(&model, &digits.train, &users)?;
/// let setting = Setting::Federated { min_sep: 3, max_participations: Some(2) };
/// let plan = &choose(&Request { unit: PrivacyUnit::User, ..Request::new(40, 8, Length::Steps(6), setting) })?.plan;
/// let rule = UpdateRule::Sgd { learning_rate: 0.5, momentum: 0.9 };
/// let setup = FederatedSetup { plan, population, local: LocalSteps::FEDSGD, optimizer: rule.into() };
/// let folder = tempfile::tempdir().unwrap();
/// let mut run = Federation::begin(setup, folder.path(), RunId::default(), vec![0.0; 650], Key::from_os()?)?;
/// let round = run.round(|_, user| user != 7)?; // user 7 is not there
/// assert!(round.step == 0 && round.cohort.len() == 8 && !round.cohort.contains(&7));
/// run.save()?;
/// # Ok::<(), antinoise_federated::Error>(())
/// ```
pub struct Federation<'a, P: Population> {
    pub(super) setup: FederatedSetup<'a, P>,
    pub(super) run: RunState,
    pub(super) ledger: Ledger,
    pub(super) checkpoints: Checkpoints,
    /// The index of each user by name.
    pub(super) numbers: HashMap<String, usize>,
    /// The users in the order of their names, in which cohorts are drawn and updates are added.
    pub(super) by_name: Vec<usize>,
}

/// The measurements of a round. No privacy statement covers them: see [`History`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Round {
    /// The round, from 0.
    pub step: usize,
    /// The users who took part, in the order of their names.
    pub cohort: Vec<usize>,
    /// Number of users whose update was longer than the clip norm, or not finite.
    pub clipped: usize,
    /// Number of users whose update became 0, as an entry was beyond
    /// [`LocalSteps::zero_beyond`](crate::LocalSteps::zero_beyond).
    pub zeroed: usize,
    /// Mean of the users' losses before their first local step, in nats; NaN for an empty cohort.
    pub loss: f64,
}

/// The users of a round, and the proof that they were charged if the round's noisy sum is still to come.
struct Cohort {
    users: Vec<usize>,
    charged: Option<Charged>,
}

impl<P: Population> Federation<'_, P> {
    /// Number of rounds done.
    pub fn step_count(&self) -> usize {
        self.run.noise.step()
    }

    /// The parameters after the rounds done, which the privacy statement covers.
    pub fn parameters(&self) -> &[f32] {
        &self.run.parameters
    }

    /// The measurements so far.
    pub fn history(&self) -> &History {
        &self.run.history
    }

    /// Records the accuracy of the present parameters on test data, in the history.
    pub fn record_accuracy(&mut self, accuracy: f64) {
        self.run.history.accuracies.push((self.step_count(), accuracy));
    }

    /// The record of all participations.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Runs one round. `available(step, user)`: whether a user is available in a round. The cohort is drawn
    /// by the run's key from the available users whom the ledger allows, at most the plan's cohort size.
    ///
    /// A round whose cohort was charged before a kill resumes with that cohort, without calling `available`.
    ///
    /// # Errors
    /// If all rounds of the plan are done, the model cannot be computed, the ledger cannot be written, or the
    /// ledger says that this round started from other parameters.
    pub fn round(&mut self, available: impl Fn(usize, usize) -> bool) -> Result<Round, Error> {
        let start = Instant::now();
        let (plan, step) = (self.setup.plan, self.step_count());
        if step == plan.steps {
            return Err(antinoise_noise::Error::Exhausted { steps: plan.steps }.into());
        }
        let base = hex(&digest(&self.run.parameters));
        let Cohort { users: cohort, charged } = self.cohort(step, &base, available)?;
        let (sum, zeroed) = {
            let (noise, users) = (&self.run.noise, self.setup.population.users() as u64);
            let own = |user| noise.rng(Purpose::DataOrder, 1 + step as u64 * users + user as u64);
            let FederatedSetup { population, local, .. } = self.setup;
            cohort_sum(population, local, &self.run.parameters, &cohort, Some(plan.clip_norm), own)?
        };
        let noise_start = Instant::now();
        let mut mean = vec![0.0; self.run.parameters.len()];
        self.run.noise.add_to_sum(&sum.gradient, &mut mean)?;
        self.run.history.seconds_in_noise += noise_start.elapsed().as_secs_f64();
        let noisy_sum = digest(&mean);
        let recorded = match charged {
            Some(charged) => self.ledger.record_noisy_sum(charged, &base, &noisy_sum).map_err(Error::from),
            None => self.check_again(step, &base, &noisy_sum),
        };
        if let Err(refused) = recorded {
            // The parameters did not move: the round is still to come, also in a checkpoint that is saved
            // now.
            self.run.noise.seek_and_reuse_noise_unprotected(step)?;
            return Err(refused);
        }
        let share = (1.0 / plan.expected_batch_size()) as f32;
        mean.iter_mut().for_each(|x| *x *= share);
        self.run.optimizer.step(&mut self.run.parameters, &mean);
        let count = cohort.len() as f64;
        let loss = sum.loss / count;
        self.run.history.losses.push(loss);
        self.run.history.clipped_shares.push(sum.clipped as f64 / count);
        self.run.history.seconds += start.elapsed().as_secs_f64();
        Ok(Round { step, cohort, clipped: sum.clipped, zeroed, loss })
    }

    /// Refuses a repeated noisy sum that differs from the one recorded in the ledger.
    fn check_again(&self, step: usize, base: &str, noisy_sum: &[u8]) -> Result<(), Error> {
        if self.ledger.has_noisy_sum(step, base, noisy_sum)? {
            Ok(())
        } else {
            Err(another(step, "another one".into()).into())
        }
    }

    /// The cohort of the next round: the one charged in the ledger, if there is one, or a new one.
    fn cohort(
        &mut self,
        step: usize,
        base: &str,
        available: impl Fn(usize, usize) -> bool,
    ) -> Result<Cohort, Error> {
        if step < self.ledger.step() {
            // Recorded before the kill, but after the last checkpoint.
            let found = self.ledger.base(step)?;
            if found.as_deref() != Some(base) {
                return Err(another(step, found.unwrap_or_else(|| "none".into())).into());
            }
            return Ok(Cohort { users: self.known(self.ledger.participants(step)?)?, charged: None });
        }
        if let Some((charged, names)) = self.ledger.charged_before()? {
            return Ok(Cohort { users: self.known(names)?, charged: Some(charged) });
        }
        let population = self.setup.population;
        let there = self.by_name.iter().filter(|&&user| available(step, user));
        let eligible = self.ledger.eligible(there.map(|&user| population.name(user)));
        let mut rng = self.run.noise.rng(Purpose::BatchSampling, step as u64);
        let names = draw_cohort(&eligible, self.setup.plan.batch_size, &mut rng)?;
        let charged = self.ledger.charge(&names)?;
        let users = names.iter().map(|&name| self.numbers[name]).collect();
        Ok(Cohort { users, charged: Some(charged) })
    }

    /// The indices of users named by the ledger, in the order of their names.
    fn known(&self, mut names: Vec<String>) -> Result<Vec<usize>, InvalidParameter> {
        let most = self.setup.plan.batch_size;
        if names.len() > most {
            let must_be =
                format!("at most {most}, the plan's cohort: somebody else charged users in this ledger");
            return Err(InvalidParameter::new("users charged for a round", names.len(), must_be));
        }
        let number = |name: &String| {
            let unknown =
                || InvalidParameter::new("user of the ledger", format!("{name:?}"), "one of the population");
            self.numbers.get(name).copied().ok_or_else(unknown)
        };
        names.sort_unstable();
        names.iter().map(number).collect()
    }
}

/// The error of a repeated step that differs from its first run.
fn another(step: usize, got: String) -> InvalidParameter {
    let must_be = "the same as this run computes: ledger and checkpoint belong to different runs, users were added to the \
                   ledger, or the data changed. It is refused because the same noise would hide two different sums";
    InvalidParameter::new(format!("noisy sum of step {step} in the ledger"), got, must_be)
}

/// SHA-256 of the numbers, little-endian.
fn digest(numbers: &[f32]) -> [u8; 32] {
    let mut digest = Sha256::new();
    numbers.iter().for_each(|x| digest.update(x.to_le_bytes()));
    digest.finalize().into()
}
