//! `antinoise evaluate`: how good a model is on labelled rows.

use std::fmt;
use std::path::PathBuf;

use antinoise_federated::Population;
use antinoise_federated::lstm::SavedLstm;
use antinoise_input::short;
use antinoise_train::data::Labels;
use antinoise_train::saved_model::{SavedModel, Scores};
use clap::Args;
use serde::Serialize;

use super::model_rows::RowOptions;
use crate::failure::Result;
use crate::output;

/// Measure accuracy, confusion and calibration of a model from `antinoise train` on labelled rows, or
/// accuracy and cross entropy of a model of characters on texts.
///
/// The figures are computed from the rows without noise. No privacy statement covers them, even if the model
/// was trained on these rows: do not publish the figures if the rows are private.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  antinoise train --model logistic --mechanism blt:2 --epochs 2 --out quick
  antinoise evaluate quick/model --data digits
  antinoise evaluate quick/model --data digits --json")]
pub struct Arguments {
    /// Folder of the model, such as antinoise-run/model.
    #[arg(value_name = "MODEL_DIR")]
    model: PathBuf,
    #[command(flatten)]
    rows: RowOptions,
}

/// The scores of a model of classes, or of characters.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Evaluation {
    Classes(OfClasses),
    Characters(OfCharacters),
}

/// The scores of a model of characters.
#[derive(Debug, Serialize)]
pub struct OfCharacters {
    users: usize,
    characters: usize,
    accuracy: f64,
    /// Mean of -ln p over the characters, in nats.
    loss: f64,
    /// Share of the most frequent character.
    largest_class_share: f64,
}

/// The scores of a model of classes.
#[derive(Debug, Serialize)]
pub struct OfClasses {
    #[serde(flatten)]
    scores: Scores,
    /// The names of the rows and columns of `confusion`.
    classes: Vec<String>,
}

/// Measures the model.
pub fn run(arguments: &Arguments) -> Result<Evaluation> {
    if SavedLstm::is_in(&arguments.model) {
        let model = SavedLstm::load(&arguments.model)?;
        let texts = arguments.rows.texts(&model)?;
        let found = texts.evaluate(model.parameters());
        return Ok(Evaluation::Characters(OfCharacters {
            users: texts.users(),
            characters: found.symbols,
            accuracy: found.accuracy,
            loss: found.loss,
            largest_class_share: texts.largest_share(),
        }));
    }
    let model = SavedModel::load(&arguments.model)?;
    let examples = arguments.rows.examples(&model, Labels::Required)?;
    let (scores, classes) = (model.evaluate(&examples)?, model.classes().to_vec());
    Ok(Evaluation::Classes(OfClasses { scores, classes }))
}

/// Maximum number of classes for which the confusion matrix is printed; for more it is only in the JSON.
const PRINTED: usize = 12;

fn percent(share: f64) -> String {
    format!("{:.2}%", 100.0 * share)
}

fn figure(name: &str, value: String) -> Vec<String> {
    vec![name.to_string(), value]
}

impl fmt::Display for Evaluation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Classes(scores) => scores.fmt(f),
            Self::Characters(scores) => scores.fmt(f),
        }
    }
}

impl fmt::Display for OfCharacters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = [
            figure("users", self.users.to_string()),
            figure("characters", self.characters.to_string()),
            figure("accuracy", percent(self.accuracy)),
            figure("most frequent character", percent(self.largest_class_share)),
            figure("mean cross entropy (nats)", short(self.loss, 4)),
        ];
        write!(f, "{}", output::table(&["figure", "value"], &rows))
    }
}

impl fmt::Display for OfClasses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scores, classes } = self;
        let rows = [
            figure("examples", scores.examples.to_string()),
            figure(
                "accuracy (one standard error)",
                format!("{} +- {:.2}", percent(scores.accuracy), 100.0 * scores.standard_error),
            ),
            figure("largest class", percent(scores.largest_class_share)),
            figure("mean cross entropy (nats)", short(scores.loss, 4)),
            figure("expected calibration error", percent(scores.expected_calibration_error)),
        ];
        writeln!(f, "{}", output::table(&["figure", "value"], &rows))?;
        if classes.len() > PRINTED {
            return writeln!(f, "The confusion of {} classes is printed with --json.", classes.len());
        }
        let header: Vec<&str> =
            ["true class, predicted:"].into_iter().chain(classes.iter().map(String::as_str)).collect();
        let rows: Vec<Vec<String>> = classes
            .iter()
            .zip(&scores.confusion)
            .map(|(class, counts)| {
                [class.clone()].into_iter().chain(counts.iter().map(u64::to_string)).collect()
            })
            .collect();
        write!(f, "{}", output::table(&header, &rows))
    }
}
