//! The training, the guesses, and what they prove.

use antinoise_input::{InvalidParameter, at_least, in_open_unit};
use antinoise_noise::{Key, RunId};
use antinoise_plan::Sampler;
use antinoise_train::data::Examples;
use antinoise_train::trainer::{Setup, Trainer};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::canaries::{Canaried, Canaries, Canary};
use super::guesses::Guesses;
use super::scores::{Turns, log_likelihood_ratio};
use crate::Error;
use crate::operator::{MOST_RECTANGULAR, Operator, is_rectangular};
use crate::random::Random;

/// How one training is audited.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OneRun {
    /// What canaries are.
    pub canary: Canary,
    /// How many, in the places of as many examples.
    pub canaries: usize,
    /// Most probability that the bound is above the truth.
    pub alpha: f64,
    /// Draws canaries and which of them are included.
    pub seed: u64,
}

/// What one training told of its canaries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OneRunReport {
    /// What they were.
    pub canary: Canary,
    /// How many.
    pub canaries: usize,
    /// Guesses that prove the most, of those numbers that were fixed before.
    pub guesses: usize,
    /// Right ones among them.
    pub correct: usize,
    /// The plan's epsilon.
    pub epsilon_stated: f64,
    /// At confidence 1 - alpha, epsilon is above this at the plan's delta.
    pub epsilon_lower: f64,
    /// The plan's.
    pub delta: f64,
    /// Most probability that epsilon is below the bound.
    pub alpha: f64,
    /// Test accuracy of the model, which was trained with canaries and is not for use.
    pub test_accuracy: f64,
}

/// Shares of the canaries for which there are guesses; each has an equal part of alpha.
const SHARES: [f64; 6] = [0.02, 0.05, 0.1, 0.2, 0.5, 1.0];

/// Trains `setup` once from `start` with canaries, guesses which of them were included, and bounds epsilon from below.
///
/// A canary's gradient lies along a parameter of its own, so that one run is as many experiments as there are canaries. The guess is the
/// likelihood ratio of all releases, given everything but the canaries: no auditor does better. With [`Canary::Input`] the guess is made
/// from the loss of the last model on the canary.
///
/// # Errors
/// When a setting is out of range, the strategy's noise cannot be whitened, or training fails.
///
/// # Source
/// Steinke, Nasr and Jagielski (2023), Privacy auditing with one (1) training run.
///
/// ```
/// use antinoise_audit::{Canary, OneRun, one_run};
/// use antinoise_noise::{Key, RunId};
/// use antinoise_plan::{Length, Request, Setting, choose};
/// use antinoise_train::{data, model::Model, optimizer::Rule, trainer::Setup};
/// let dataset = data::digits();
/// let model = Model::logistic(dataset.shape, dataset.classes)?;
/// let plan = choose(&Request::new(dataset.train.len(), 144, Length::Epochs(1), Setting::Cyclic))?.plan;
/// let rule = Rule::Sgd { learning_rate: 0.1, momentum: 0.9 };
/// let setup = Setup { plan: &plan, model: &model, dataset: &dataset, recipe: rule.into() };
/// let settings = OneRun { canary: Canary::Gradient, canaries: 300, alpha: 0.05, seed: 1 };
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
    settings: &OneRun,
) -> Result<OneRunReport, Error> {
    in_open_unit("alpha", settings.alpha)?;
    if matches!(setup.plan.sampler, Sampler::BMinSep { .. }) && settings.canary == Canary::Gradient {
        let must_be = "another: the ratio of gradient canaries is not computed for b-min-sep; input canaries can be used";
        return Err(InvalidParameter::new("sampler of the plan", "b-min-sep", must_be).into());
    }
    at_least("canaries", settings.canaries, 1)?;
    let mut random = Random(settings.seed);
    let (examples, parameters) = (setup.dataset.train.len(), setup.model.parameters());
    let canaries = Canaries::draw(settings.canary, settings.canaries, examples, parameters, &mut random)?;
    let dataset = canaries.planted(setup.dataset, &mut random)?;
    let model = Canaried::new(setup.model, &canaries);
    let mut trainer = Trainer::new(Setup { model: &model, dataset: &dataset, ..setup }, run, start, key)?;
    let mut released = vec![Vec::new(); canaries.coordinates.len()];
    for _ in 0..setup.plan.steps {
        trainer.step()?;
        let others = model.take_others();
        for ((column, &at), other) in released.iter_mut().zip(&canaries.coordinates).zip(&others) {
            column.push((f64::from(trainer.release()[at]) - other) / setup.plan.clip_norm);
        }
    }
    let scores = match settings.canary {
        Canary::Gradient => ratios(&setup, &trainer, &canaries, &released)?,
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

/// ln of the likelihood ratio of each canary.
fn ratios(
    setup: &Setup,
    trainer: &Trainer,
    canaries: &Canaries,
    released: &[Vec<f64>],
) -> Result<Vec<f64>, Error> {
    let plan = setup.plan;
    let encoder = plan.strategy.encoder()?;
    // Trees and circulants are written out to be whitened; their first steps are a mechanism of their own.
    let steps = if is_rectangular(&encoder) { plan.steps.min(MOST_RECTANGULAR) } else { plan.steps };
    let whitening = Operator::whitening(&encoder, &plan.strategy.recursion()?, steps)?;
    let mut of_slot = vec![Vec::new(); plan.examples];
    for step in 0..steps {
        trainer.turn(step).iter().for_each(|&example| of_slot[example].push(step));
    }
    let noise_std = plan.noise_std() / plan.clip_norm;
    let ratio = |(slot, column): (&usize, &Vec<f64>)| {
        let steps_of_turn = of_slot[*slot].clone();
        let turns = match plan.sampler {
            Sampler::Poisson { groups } => {
                let rate = groups as f64 * plan.batch_size as f64 / plan.examples as f64;
                Turns::Sampled(steps_of_turn, rate.min(1.0))
            }
            Sampler::BallsInBins { bins } => {
                Turns::OneOf((0..bins).map(|bin| (bin..steps).step_by(bins).collect()).collect())
            }
            // b-min-sep was refused before training.
            Sampler::BMinSep { .. } | Sampler::Cyclic { .. } | Sampler::Stream | Sampler::External => {
                Turns::Known(steps_of_turn)
            }
        };
        log_likelihood_ratio(&whitening, &turns, &column[..steps], noise_std)
    };
    Ok(canaries.slots.par_iter().zip(released).map(ratio).collect())
}

/// How much lower the last model's loss is on each canary than on the one in the middle.
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

/// The guesses that prove the most: for each share of the canaries, those of the largest scores in magnitude.
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
