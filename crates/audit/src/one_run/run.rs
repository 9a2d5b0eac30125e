//! An audit of one training run: the training, the guesses, and the bound on epsilon that they prove.

use antinoise_input::{InvalidParameter, at_least, in_open_unit};
use antinoise_noise::{Key, RunId};
use antinoise_plan::{Sampler, VerifiedPlan};
use antinoise_train::data::Examples;
use antinoise_train::trainer::{Setup, Trainer};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::canaries::{Canaries, Canary, Planted};
use super::guesses::Guesses;
use super::scores::{Turns, log_likelihood_ratio};
use crate::Error;
use crate::operator::{MOST_RECTANGULAR, Operator, is_rectangular};
use crate::random::Random;
use crate::watched::Watched;

/// The settings of an audit of one training run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OneRunSettings {
    /// The kind of canaries.
    pub canary: Canary,
    /// The number of canaries, each of which replaces an example.
    pub canaries: usize,
    /// Maximum probability that the bound exceeds the true epsilon.
    pub alpha: f64,
    /// The seed for drawing canaries and their inclusion.
    pub seed: u64,
}

/// The result of an audit of one training run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct OneRunReport {
    /// The kind of canaries.
    pub canary: Canary,
    /// The number of canaries.
    pub canaries: usize,
    /// The number of guesses, among several numbers that were fixed in advance, that proves the largest
    /// bound.
    pub guesses: usize,
    /// The number of right guesses among those `guesses`.
    pub correct: usize,
    /// The plan's epsilon.
    pub epsilon_stated: f64,
    /// A lower bound on epsilon at the plan's delta, at confidence 1 - alpha.
    pub epsilon_lower: f64,
    /// The plan's delta.
    pub delta: f64,
    /// Maximum probability that the bound exceeds the true epsilon.
    pub alpha: f64,
    /// Test accuracy of the model, which was trained with canaries and must not be used.
    pub test_accuracy: f64,
}

/// Fractions of the canaries about which guesses are made; alpha is divided equally among them.
const SHARES: [f64; 6] = [0.02, 0.05, 0.1, 0.2, 0.5, 1.0];

/// Trains `setup` once from `start` with canaries, guesses which were included, and derives a lower bound on
/// epsilon.
///
/// Each canary's gradient lies along a different parameter, so that one run is as many experiments as there
/// are canaries. The guess follows from the likelihood ratio of all noisy sums, given everything but the
/// canaries, so that no auditor can guess better. With [`Canary::Input`] the guess is based on the loss of
/// the final model on the canary.
///
/// # Errors
/// If a setting is out of range, the plan's sampler draws users, the strategy's noise cannot be whitened, or
/// training fails.
///
/// # Source
/// Steinke, Nasr and Jagielski (2023), Privacy auditing with one (1) training run.
///
/// ```
/// use antinoise_audit::{Canary, OneRunSettings, one_run};
/// use antinoise_noise::{Key, RunId};
/// use antinoise_plan::{Length, Request, Setting, choose};
/// use antinoise_train::{data, model::Model, optimizer::UpdateRule, trainer::Setup};
/// let dataset = data::digits();
/// let model = Model::logistic(dataset.shape, dataset.classes)?;
/// let plan = choose(&Request::new(dataset.train.len(), 144, Length::Epochs(1), Setting::Cyclic))?.plan;
/// let rule = UpdateRule::Sgd { learning_rate: 0.1, momentum: 0.9 };
/// let setup = Setup { plan: &plan, model: &model, dataset: &dataset, optimizer: rule.into(), groups: None };
/// let settings = OneRunSettings { canary: Canary::Gradient, canaries: 300, alpha: 0.05, seed: 1 };
/// let start = vec![0.0; model.parameters()];
/// let found = one_run(setup, RunId::default(), start, Key::from_os()?, &settings)?;
/// assert!(found.epsilon_lower <= found.epsilon_stated); // but with probability 0.05
/// # Ok::<(), antinoise_audit::Error>(())
/// ```
pub fn one_run(
    setup: Setup,
    run: RunId,
    start: Vec<f32>,
    key: Key,
    settings: &OneRunSettings,
) -> Result<OneRunReport, Error> {
    setup.plan.check_draws_no_users()?;
    in_open_unit("alpha", settings.alpha)?;
    if !has_likelihood_ratio(setup.plan) && settings.canary == Canary::Gradient {
        let sampler = setup.plan.sampler.name();
        let must_be = format!(
            "one for which the likelihood ratio of gradient canaries is known; with {sampler}, use input canaries"
        );
        return Err(InvalidParameter::new("sampler of the plan", sampler, must_be).into());
    }
    at_least("canaries", settings.canaries, 1)?;
    let mut random = Random(settings.seed);
    let (examples, parameters) = (setup.dataset.train.len(), setup.model.parameters());
    let canaries = Canaries::draw(settings.canary, settings.canaries, examples, parameters, &mut random)?;
    let dataset = canaries.planted(setup.dataset, &mut random)?;
    let model = Watched { inner: setup.model, watch: Planted::new(&canaries) };
    let lengths: Vec<f64> = canaries.coordinates.iter().map(|&at| setup.clipping().norm_along(at)).collect();
    let mut trainer = Trainer::new(Setup { model: &model, dataset: &dataset, ..setup }, run, start, key)?;
    let mut along = vec![Vec::new(); canaries.coordinates.len()];
    for _ in 0..setup.plan.steps {
        trainer.step()?;
        let others = model.watch.take_others();
        let places = canaries.coordinates.iter().zip(&lengths).zip(&others);
        for (column, ((&at, length), other)) in along.iter_mut().zip(places) {
            column.push((f64::from(trainer.noisy_sum()[at]) - other) / length);
        }
    }
    let scores = match settings.canary {
        Canary::Gradient => ratios(&setup, &trainer, &canaries, (&along, &lengths))?,
        Canary::Input => losses(&setup, &dataset.train, trainer.parameters(), &canaries)?,
    };
    let (guesses, correct, epsilon_lower) = proved(&scores, &canaries.included, &setup, settings.alpha)?;
    Ok(OneRunReport {
        canary: settings.canary,
        canaries: settings.canaries,
        guesses,
        correct,
        epsilon_stated: setup.plan.privacy.epsilon,
        epsilon_lower,
        delta: setup.plan.privacy.delta,
        alpha: settings.alpha,
        test_accuracy: trainer.test()?,
    })
}

/// Whether the likelihood ratio of gradient canaries can be computed under the plan's sampler.
///
/// ```
/// use antinoise_plan::{Length, Request, Setting, choose};
/// let plan = choose(&Request::new(1000, 50, Length::Epochs(2), Setting::Cyclic))?.plan;
/// assert!(antinoise_audit::has_likelihood_ratio(&plan));
/// # Ok::<(), antinoise_plan::Error>(())
/// ```
pub fn has_likelihood_ratio(plan: &VerifiedPlan) -> bool {
    turns(plan, 0, Vec::new()).is_some()
}

/// The possible participations of a canary in the first `steps` steps, if the steps of its group or bin are
/// `of_group`; `None` if the likelihood ratio for the sampler is not known.
fn turns(plan: &VerifiedPlan, steps: usize, of_group: Vec<usize>) -> Option<Turns> {
    match plan.sampler {
        Sampler::Cyclic { .. } | Sampler::Stream => Some(Turns::Known(of_group)),
        Sampler::Poisson { groups } => {
            let rate = groups as f64 * plan.batch_size as f64 / plan.examples as f64;
            Some(Turns::Sampled(of_group, rate.min(1.0)))
        }
        Sampler::BallsInBins { bins } => {
            Some(Turns::OneOf((0..bins).map(|bin| (bin..steps).step_by(bins).collect()).collect()))
        }
        _ => None,
    }
}

/// The log-likelihood ratio of each canary. `along` are the noisy sums along the canary's parameter, in units
/// of the length of its gradient.
fn ratios(
    setup: &Setup,
    trainer: &Trainer,
    canaries: &Canaries,
    (along, lengths): (&[Vec<f64>], &[f64]),
) -> Result<Vec<f64>, Error> {
    let plan = setup.plan;
    let encoder = plan.strategy.encoder()?;
    // The noise of trees and circulants is whitened by an explicit matrix, so that only the first steps are
    // used, which are a mechanism too.
    let steps = if is_rectangular(&encoder) { plan.steps.min(MOST_RECTANGULAR) } else { plan.steps };
    let whitening = Operator::whitening(&encoder, &plan.strategy.recursion()?, steps)?;
    let mut of_slot = vec![Vec::new(); plan.examples];
    for step in 0..steps {
        trainer.turn(step).iter().for_each(|&example| of_slot[example].push(step));
    }
    let ratio = |((slot, column), length): ((&usize, &Vec<f64>), &f64)| {
        let turns = turns(plan, steps, of_slot[*slot].clone()).expect("other samplers were refused");
        log_likelihood_ratio(&whitening, &turns, &column[..steps], plan.noise_std() / length)
    };
    Ok(canaries.slots.par_iter().zip(along).zip(lengths).map(ratio).collect())
}

/// For each canary, the median loss of the final model over canaries minus its loss on this canary.
fn losses(
    setup: &Setup,
    planted: &Examples,
    parameters: &[f32],
    canaries: &Canaries,
) -> Result<Vec<f64>, Error> {
    let loss = |&slot: &usize| -> Result<f64, Error> {
        let features = planted.features(slot).to_vec();
        let one = Examples::new(features, vec![planted.labels()[slot]], planted.features_each())?;
        Ok(setup.model.evaluate(parameters, &one)?.loss)
    };
    let losses = canaries.slots.par_iter().map(loss).collect::<Result<Vec<_>, _>>()?;
    let mut sorted = losses.clone();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted[sorted.len() / 2];
    Ok(losses.into_iter().map(|loss| middle - loss).collect())
}

/// Returns the guesses that prove the largest bound. For each fraction of the canaries, guesses are about
/// those with the largest absolute scores.
fn proved(
    scores: &[f64],
    included: &[bool],
    setup: &Setup,
    alpha: f64,
) -> Result<(usize, usize, f64), Error> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&i, &j| scores[j].abs().total_cmp(&scores[i].abs()));
    let right = |&&i: &&usize| (scores[i] > 0.0) == included[i];
    let mut best = (0, 0, 0.0);
    for share in SHARES {
        let count = (share * scores.len() as f64) as usize;
        let correct = order[..count].iter().filter(right).count();
        let guesses = Guesses::new(scores.len(), count, correct)?;
        let lower = guesses.epsilon_lower(setup.plan.privacy.delta, alpha / SHARES.len() as f64)?;
        if lower > best.2 || best.0 == 0 {
            best = (count, correct, lower);
        }
    }
    Ok(best)
}
