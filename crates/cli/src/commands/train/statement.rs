//! The privacy statement of a mechanism's models in a report.

use antinoise_input::hex;
use antinoise_plan::VerifiedPlan;
use antinoise_train::clip::Groups;
use antinoise_train::data::Dataset;
use antinoise_train::optimizer::{Needs, Rule};

use super::clip_by::{clipped_apart, gradient_norm};
use super::cost::Cost;
use super::results::Results;
use super::study::Study;
use crate::failure::Result;
use crate::numbers::short_up;

/// What the trainer checks of every batch. Without numbers: with amplification by sampling, participation is
/// secret.
const PARTICIPATION: &str = "within the plan: before the gradients of a batch were used, each of its examples was checked \
                             against the maximum number of participations and the steps between them; a violation would \
                             have stopped the run";

/// The claim of the plan of this index for the models that are released, and the facts of the runs.
pub fn statement(
    study: &Study,
    (plan, groups): (&VerifiedPlan, Option<&Groups>),
    cost: &Cost,
    (index, results): (usize, &Results),
    dataset: &Dataset,
) -> Result<String> {
    let statement = plan.statement_among(&cost.among)?;
    let runs = results.finished.iter().filter(|run| run.plan == index);
    let day = runs.map(|run| run.results.day.as_str()).max().unwrap_or_default();
    let digest = hex(&dataset.train.sha256());
    let key = if study.insecure_seed() {
        "derived from a seed. THE CLAIM DOES NOT HOLD FOR THESE RUNS: anyone who knows the seed can subtract the noise"
    } else {
        "one for each model, drawn from the operating system, overwritten and deleted when its run was finished; file \
         systems may keep copies of deleted files"
    };
    let statement = statement
        .with_fact("models", study.released().covers(study, results))
        .with_fact("software", format!("antinoise {}", env!("CARGO_PKG_VERSION")))
        .with_fact("plan", format!("SHA-256 {}", hex(&plan.digest())))
        .with_fact("training data", format!("{}, SHA-256 {digest}", dataset.name))
        .with_fact("participation observed", PARTICIPATION)
        .with_fact("finished", format!("{day} (UTC)"))
        .with_fact("key", key);
    let norm = gradient_norm(&study.rules()[0], plan.clip_norm);
    let statement = match groups {
        Some(groups) => statement.with_fact("clipping", clipped_apart(groups, norm)),
        None => statement,
    };
    let statement = match gradients(&study.rules()[0], plan) {
        Some(gradients) => statement.with_fact("gradients", gradients),
        None => statement,
    };
    // The page breaks lines where it must.
    Ok(format!("{statement:#}"))
}

/// What was released in place of clipped gradients, where the optimizer asked for more.
fn gradients(rule: &Rule, plan: &VerifiedPlan) -> Option<String> {
    match rule.needs() {
        Needs::Gradients => None,
        Needs::Scaled => Some(
            "Adam, scale-then-privatize: before clipping, each gradient was multiplied entry by entry by numbers computed \
             from earlier releases only; the contribution of an example had at most the clip norm"
                .into(),
        ),
        Needs::Squares { .. } => Some(format!(
            "Adam, joint moment estimation: each gradient was clipped to {}, and the squares of its entries were \
             released with it; the contribution of an example, both together, had at most the clip norm",
            short_up(gradient_norm(rule, plan.clip_norm), 5)
        )),
    }
}
