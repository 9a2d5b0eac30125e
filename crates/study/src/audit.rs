//! One more training of each mechanism, with canaries: the lower bound on epsilon from guesses about them.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

use antinoise_audit::{Canary, OneRunReport, OneRunSettings, one_run};
use antinoise_input::{InvalidParameter, short_down, short_up};
use antinoise_noise::{Key, KeyedRng, Purpose, RunId};
use antinoise_train::model::Model;
use antinoise_train::trainer::Setup;
use serde::Serialize;

use crate::error::Result;
use crate::event::{OnEvent, during};
use crate::folder::Folder;
use crate::named::NamedPlan;
use crate::results::{Results, best_rate};
use crate::study::Study;
use crate::task::{Labels, Task};

/// Maximum probability that a bound is above the truth.
const ALPHA: f64 = 0.05;

/// Lower bound that an audit proves for one model of a mechanism.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Audited {
    /// Number of canaries.
    pub canaries: usize,
    /// Lower bound on epsilon at confidence 1 - alpha.
    pub epsilon_lower: f64,
    /// Epsilon of the plan.
    pub epsilon_stated: f64,
    /// Maximum probability that the bound is above the truth.
    pub alpha: f64,
}

impl Audited {
    /// Result in one sentence.
    pub fn sentence(&self, mechanism: &str) -> String {
        let verdict = match self.epsilon_lower <= self.epsilon_stated {
            true => "",
            false => " THE BOUND IS ABOVE: what was run is not as private as it says.",
        };
        format!(
            "A training of {mechanism} with {} canaries, which was thrown away, shows an epsilon of {} or more (confidence {:.0}%); {} is \
             stated.{verdict}",
            self.canaries,
            short_down(self.epsilon_lower, 3),
            100.0 * (1.0 - self.alpha),
            short_up(self.epsilon_stated, 5),
        )
    }
}

/// Audits each plan at its best learning rate, unless a stored result exists.
pub fn audits(
    study: &Study,
    task: &Task,
    results: &Results,
    (folder, on_event): (&Folder, OnEvent),
) -> Result<Vec<Option<Audited>>> {
    let Some(canaries) = study.audit() else { return Ok(vec![None; study.plans().len()]) };
    let labels = task.labels("audit")?;
    let one = |(index, named): (usize, &NamedPlan)| -> Result<Option<Audited>> {
        let stated = named.plan.privacy.epsilon;
        let found = match folder.audit(&named.mechanism)? {
            Some(found) => found,
            None => {
                let (rate, _) = best_rate(&results.of_plan(index));
                let audit = || audit(study, labels, named, rate, canaries);
                let found = during("training with canaries", on_event, audit)?;
                folder.save_audit(&named.mechanism, &found)?;
                found
            }
        };
        if (found.canaries, found.epsilon_stated.to_bits()) != (canaries, stated.to_bits()) {
            let must_be = "of this run's canaries and epsilon: remove its file to repeat the audit";
            return Err(InvalidParameter::new("audit in the folder", "of another run", must_be).into());
        }
        let OneRunReport { canaries, epsilon_lower, epsilon_stated, alpha, .. } = found;
        Ok(Some(Audited { canaries, epsilon_lower, epsilon_stated, alpha }))
    };
    study.plans().iter().enumerate().map(one).collect()
}

fn audit(
    study: &Study,
    Labels { dataset, model, .. }: &Labels,
    named: &NamedPlan,
    rate: f64,
    canaries: usize,
) -> Result<OneRunReport> {
    let (optimizer, groups) = (study.optimizer(study.rule(rate)), study.clip_by().groups(model)?);
    let setup = Setup { plan: &named.plan, model, dataset, optimizer, groups: groups.as_ref() };
    let (key, id) = (study.key(0)?, study.run_id(&format!("audit/{}", named.mechanism))?);
    trained_with_canaries(setup, model, (key, id), (Canary::Gradient, canaries, ALPHA))
}

/// Trains `setup` once with canaries and bounds epsilon from below; the bound is wrong with probability at
/// most alpha. The model is discarded.
///
/// # Errors
/// If the setup or the canaries are invalid, or the training fails.
pub fn trained_with_canaries(
    setup: Setup,
    model: &Model,
    (key, id): (Key, RunId),
    (canary, canaries, alpha): (Canary, usize, f64),
) -> Result<OneRunReport> {
    let start = model.initial_parameters(&mut KeyedRng::new(&key, &id, Purpose::Initialization, 0));
    // The canaries protect nothing, but each audit is to draw its own.
    let seed = RandomState::new().build_hasher().finish();
    Ok(one_run(setup, id, start, key, &OneRunSettings { canary, canaries, alpha, seed })?)
}
