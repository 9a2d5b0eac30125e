//! What a report says of the privacy of a mechanism's models.

use antinoise_input::hex;
use antinoise_plan::VerifiedPlan;
use antinoise_train::clip::Contribution;
use antinoise_train::data::Dataset;
use antinoise_train::optimizer::{Needs, Rule};

use super::cost::Cost;
use super::results::Results;
use super::study::Study;
use crate::numbers::short_up;

/// What the trainer holds every batch to. Numbers are left out: where sampling amplifies, who took part is a secret.
const PARTICIPATION: &str = "as the schema has it: before the gradients of a batch were used, each of its examples was found to have had fewer turns than are \
                             accounted for, the last of them long enough ago; a run that had found another would have stopped";

/// The claim of the plan of this index for the models that are released, and the facts of the runs.
pub fn statement(
    study: &Study,
    plan: &VerifiedPlan,
    cost: &Cost,
    (index, results): (usize, &Results),
    dataset: &Dataset,
) -> String {
    let mut statement = plan.statement();
    (statement.epsilon, statement.epsilon_lower) = (cost.epsilon, cost.epsilon_lower);
    let runs = results.finished.iter().filter(|run| run.plan == index);
    let day = runs.map(|run| run.results.day.as_str()).max().unwrap_or_default();
    let digest = hex(&dataset.train.sha256());
    let key = if study.insecure_seed() {
        "made from a seed. THE CLAIM DOES NOT HOLD FOR THESE RUNS: whoever knows the seed can take the noise away"
    } else {
        "one for each model, fresh from the operating system, wiped and removed when its run was finished; file systems \
         may keep copies of what is removed"
    };
    let statement = statement
        .with_fact("models", study.released().covers(study, results))
        .with_fact("software", format!("antinoise {}", env!("CARGO_PKG_VERSION")))
        .with_fact("plan", format!("SHA-256 {}", hex(&plan.digest())))
        .with_fact("training data", format!("{}, SHA-256 {digest}", dataset.name))
        .with_fact("participation observed", PARTICIPATION)
        .with_fact("finished", format!("{day} (UTC)"))
        .with_fact("key", key);
    let statement = match gradients(&study.rules()[0], plan) {
        Some(gradients) => statement.with_fact("gradients", gradients),
        None => statement,
    };
    // The page breaks lines where it must.
    format!("{statement:#}")
}

/// What was released in place of clipped gradients, where the optimizer asked for more.
fn gradients(rule: &Rule, plan: &VerifiedPlan) -> Option<String> {
    match rule.needs() {
        Needs::Gradients => None,
        Needs::Scaled => Some(
            "Adam, scale-then-privatize: before it was clipped, each was multiplied entry by entry by numbers that follow from \
             earlier releases alone; what an example added was at most the clip norm long"
                .into(),
        ),
        Needs::Squares { ratio } => {
            let norm = Contribution::WithSquares { ratio }.gradient_norm(plan.clip_norm);
            Some(format!(
                "Adam, joint moment estimation: each was clipped to {}, and the squares of its entries were released beside it; \
                 what an example added, both together, was at most the clip norm long",
                short_up(norm, 5)
            ))
        }
    }
}
