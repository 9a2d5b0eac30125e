//! The model to give away: which one it is, and its folder.

use std::path::PathBuf;

use antinoise_input::hex;
use sha2::{Digest, Sha256};

use crate::card::{Card, card};
use crate::error::{Error, Result};
use crate::folder::Folder;
use crate::published::Published;
use crate::result::MechanismResult;
use crate::results::{Finished, Results};
use crate::study::Study;
use crate::task::Task;

/// A model in its folder.
pub struct Given {
    pub folder: PathBuf,
    /// A description of which model was chosen.
    pub is: String,
}

/// The run whose model is given away, and how it was chosen.
///
/// Its mechanism, learning rate and repeat are fixed before training: the choice depends on no result, so
/// that a statement that covers one model covers this one. If the statement covers all models, the most
/// accurate run is chosen.
fn chosen<'a>(study: &Study, results: &'a Results) -> Result<(&'a Finished, &'static str)> {
    let accuracy = |run: &&Finished| run.rate_and_accuracy().1;
    if study.published() == Published::All && results.finished.len() > 1 {
        let models = results.finished.iter().filter(|run| !run.diverged());
        let best = models.max_by(|x, y| accuracy(x).total_cmp(&accuracy(y)));
        let how = "the most accurate of all, a choice that its statement covers";
        return best.map(|run| (run, how)).ok_or(Error::Diverged);
    }
    let rate = study.rules()[study.rules().len() / 2].learning_rate();
    let is_fixed = |run: &&Finished| run.plan == study.chosen() && run.rule.learning_rate() == rate;
    let how = match results.finished.len() {
        1 => "the only one that was trained",
        _ => {
            "fixed before training: the mechanism that planning chose, the middle learning rate, the first repeat"
        }
    };
    let run = results.finished.iter().find(is_fixed).expect("the search runs every rate that is given");
    // Another model in its place would be a choice by results.
    if run.diverged() { Err(Error::Diverged) } else { Ok((run, how)) }
}

/// Writes the folder of the model to give away.
pub fn save(
    study: &Study,
    task: &Task,
    results: &Results,
    rows: &[MechanismResult],
    folder: &Folder,
) -> Result<Given> {
    let (run, how) = chosen(study, results)?;
    let (plan, row) = (&study.plans()[run.plan].plan, &rows[run.plan]);
    let private = row.private.as_ref().expect("the first rows are those of plans");
    let saved = task.saved(run.results.parameters.clone())?;
    let is = format!("{} at learning rate {}, {how}", row.mechanism, run.rule.learning_rate());
    let sha256 = hex(&Sha256::digest(saved.to_safetensors()?));
    let statement = private
        .statement
        .clone()
        .with_fact("this model", format!("{is}; SHA-256 of model.safetensors {sha256}"));
    let card = card(&Card {
        study,
        task,
        saved: &saved,
        statement: &statement,
        mechanism: &row.mechanism,
        accuracy: run.rate_and_accuracy().1,
        how,
    });
    let json =
        serde_json::to_string_pretty(&statement).expect("texts and numbers have a form in JSON") + "\n";
    let texts = [
        ("plan.toml", plan.to_toml()),
        ("statement.txt", format!("{statement}\n")),
        ("statement.json", json),
        ("README.md", card),
    ];
    let folder = folder.save_model_folder(&saved, &texts)?;
    Ok(Given { folder, is })
}
