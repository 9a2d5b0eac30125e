//! The privacy statement of a mechanism's models in a report.

use antinoise_accounting::PrivacyStatement;
use antinoise_input::hex;
use antinoise_plan::{VerifiedPlan, by_examples_in_words};
use antinoise_train::clip::Groups;

use crate::clip_by::clipped_apart;
use crate::cost::Cost;
use crate::error::Result;
use crate::results::Results;
use crate::study::Study;
use crate::task::Task;

/// Text on the check of every batch by the trainer. It gives no numbers, because participation is secret
/// under amplification by sampling.
const PARTICIPATION: &str = "within the plan: before the gradients of a batch were used, each of its examples was checked \
                             against the maximum number of participations and the steps between them; a violation would \
                             have stopped the run";

/// Text on the check of every cohort by the ledger.
const CHARGED: &str = "within the plan: before the updates of a round were computed, each of its users was charged in the \
                       run's ledger, which allows at most the plan's number of participations and no fewer rounds \
                       between them; a violation would have stopped the run";

/// The privacy statement of plan number `index` for the published models, with facts of the runs.
pub fn statement(
    study: &Study,
    (plan, groups): (&VerifiedPlan, Option<&Groups>),
    cost: &Cost,
    (index, results): (usize, &Results),
    task: &Task,
) -> Result<PrivacyStatement> {
    let statement = plan.statement_among(&cost.among)?;
    let runs = results.finished.iter().filter(|run| run.plan == index);
    let day = runs.map(|run| run.results.day.as_str()).max().unwrap_or_default();
    let key = if study.insecure_seed() {
        "derived from a seed. THE CLAIM DOES NOT HOLD FOR THESE RUNS: anyone who knows the seed can subtract the noise"
    } else {
        "one for each model, drawn from the operating system, overwritten and deleted when its run was finished; file \
         systems may keep copies of deleted files"
    };
    let statement = statement
        .with_fact("models", study.published().covers(study, results))
        .with_fact("software", format!("antinoise {}", env!("CARGO_PKG_VERSION")))
        .with_fact("plan", format!("SHA-256 {}", hex(&plan.digest())))
        // Only the name, no digest: an observer who knows all other rows could test each possible value of
        // the remaining row against a digest.
        .with_fact("training data", task.name())
        .with_fact("participation observed", if study.local().is_some() { CHARGED } else { PARTICIPATION })
        .with_fact("finished", format!("{day} (UTC)"))
        .with_fact("key", key);
    let statement = statement.with_fact("persons", persons(study, plan)?);
    Ok(match groups {
        Some(groups) => statement.with_fact("clipping", clipped_apart(groups, plan.clip_norm)),
        None => statement,
    })
}

/// A sentence on the protection of a person with several rows. It gives no numbers of rows, which are
/// private.
fn persons(study: &Study, plan: &VerifiedPlan) -> Result<String> {
    if let (Some((examples, tested)), Some(local)) = (study.users_in_words(), study.local()) {
        return Ok(format!(
            "the unit is a user with all of their examples, the training {examples}. In a round, a user of its cohort \
             trains on their own examples ({}), and the update is clipped as one. {tested}",
            local.in_words()
        ));
    }
    Ok(match (study.users_in_words(), plan.max_examples_per_user) {
        (Some((examples, tested)), Some(most)) => format!(
            "the unit is a user with all of their examples, the training {examples}. A step clips the mean \
             gradient of a user's examples as one; if a user has more than {most}, it uses {most} of them, drawn by \
             the key. {tested}"
        ),
        _ => format!(
            "the unit is a single example. The epsilon of one model for a person with several examples, all of which \
             change together, is {} (group privacy)",
            by_examples_in_words(&plan.stated_epsilon_by_examples()?)
        ),
    })
}
