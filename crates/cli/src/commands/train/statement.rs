//! What a report says of the privacy of a mechanism's models.

use antinoise_input::hex;
use antinoise_plan::VerifiedPlan;
use antinoise_train::data::Dataset;

use super::cost::Cost;
use super::results::Finished;
use super::study::Study;

/// What the trainer holds every batch to. Numbers are left out: where sampling amplifies, who took part is a secret.
const PARTICIPATION: &str = "as the schema has it: before the gradients of a batch were used, each of its examples was found to have had fewer turns than are \
                             accounted for, the last of them long enough ago; a run that had found another would have stopped";

/// The plan's claim for the models that are released, and the facts of the runs.
pub fn statement(
    study: &Study,
    plan: &VerifiedPlan,
    cost: &Cost,
    runs: &[&Finished],
    dataset: &Dataset,
) -> String {
    let mut statement = plan.statement();
    (statement.epsilon, statement.epsilon_lower) = (cost.epsilon, cost.epsilon_lower);
    let day = runs.iter().map(|run| run.results.day.as_str()).max().unwrap_or_default();
    let digest = hex(&dataset.train.sha256());
    let key = if study.insecure_seed() {
        "made from a seed. THE CLAIM DOES NOT HOLD FOR THESE RUNS: whoever knows the seed can take the noise away"
    } else {
        "one for each model, fresh from the operating system, wiped and removed when its run was finished; file systems \
         may keep copies of what is removed"
    };
    let statement = statement
        .with_fact("models", study.released().covers(study))
        .with_fact("software", format!("antinoise {}", env!("CARGO_PKG_VERSION")))
        .with_fact("plan", format!("SHA-256 {}", hex(&plan.digest())))
        .with_fact("training data", format!("{}, SHA-256 {digest}", dataset.name))
        .with_fact("participation observed", PARTICIPATION)
        .with_fact("finished", format!("{day} (UTC)"))
        .with_fact("key", key);
    // The page breaks lines where it must.
    format!("{statement:#}")
}
