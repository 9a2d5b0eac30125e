//! The model card: the information that a recipient of a model needs.

mod labels;
mod texts;
mod words;

use std::fmt::Write;

use antinoise_accounting::PrivacyStatement;

use self::words::one_line;
use crate::result::{NOT_PRIVATE, percent};
use crate::results::accuracy_error;
use crate::study::Study;
use crate::task::{Saved, Task};
use crate::tested::Tested;

/// The contents of a card.
pub struct Card<'a> {
    pub study: &'a Study,
    pub task: &'a Task,
    pub saved: &'a Saved,
    pub statement: &'a PrivacyStatement,
    pub mechanism: &'a str,
    /// Accuracy on the test examples.
    pub accuracy: f64,
    /// How this model was chosen among those that were trained.
    pub how: &'a str,
}

/// The card in Markdown.
pub fn card(about: &Card) -> String {
    let Card { study, task, saved, statement, mechanism, accuracy, how } = about;
    let (what, usage) = match saved {
        Saved::Labels(saved) => (labels::what(saved), labels::usage(saved, study.data())),
        Saved::Texts(saved) => (texts::what(saved), texts::usage(saved, study.data())),
    };
    let mut text = format!(
        "# {} on {}\n\n{what}. It was trained with differential privacy by antinoise {}, mechanism {mechanism}. Of the \
         models of its study it is {how}.\n",
        task.model_name(),
        one_line(task.name()),
        env!("CARGO_PKG_VERSION"),
    );
    let (tested, share) = (task.tested(), task.largest_class_share());
    let (tests, of) = (tested.count(), tested.name());
    let (accuracy, error) = match tested {
        Tested::Examples(_) => {
            (percent(*accuracy, Some(accuracy_error(*accuracy, tests))), " (one standard error)")
        }
        Tested::Characters(_) => (percent(*accuracy, None), ""),
    };
    let _ = write!(
        text,
        "\n## Accuracy\n\n| | |\n|---|---|\n| training {} | {} |\n| test {of} | {tests} |\n| test accuracy{error} | \
         {accuracy} |\n| always predicting {} | {} |\n\nThe last three figures follow from the test {of}, which the \
         privacy statement does not protect: remove them from this page if those {of} are private.\n",
        if task.has_users() { "users" } else { "examples" },
        task.units(),
        tested.most_frequent(),
        percent(share, None),
    );
    text += "\n## Privacy\n\n";
    if study.insecure_seed() {
        let _ = write!(text, "**{NOT_PRIVATE}**\n\n");
    }
    for sentence in statement.summary() {
        let _ = writeln!(text, "- {sentence}");
    }
    text += "\nThe whole statement is in `statement.txt`, and for programs in `statement.json`. \
             `antinoise verify plan.toml` recomputes ";
    text += match study.published().models(study) {
        1 => "its figures from the plan.\n",
        _ => {
            "the figures of one model from the plan; the epsilon above is larger, that of all models that the statement \
             covers.\n"
        }
    };
    text += "\n## What is not covered\n\n";
    for line in statement.not_covered.iter().chain(&study.uncovered()) {
        let _ = writeln!(text, "- {line}");
    }
    let _ = writeln!(text, "- the test {of}");
    text + &usage
}
