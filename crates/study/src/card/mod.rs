//! The model card: the information that a recipient of a model needs.

use std::fmt::Write;
use std::path::Path;

use antinoise_accounting::PrivacyStatement;
use antinoise_input::printable;
use antinoise_train::data::{Column, Dataset, Schema, Values};
use antinoise_train::saved_model::SavedModel;

use crate::result::{NOT_PRIVATE, percent};
use crate::results::{accuracy_error, largest_class_share};
use crate::study::Study;

/// The contents of a card.
pub struct Card<'a> {
    pub study: &'a Study,
    pub dataset: &'a Dataset,
    pub saved: &'a SavedModel,
    pub statement: &'a PrivacyStatement,
    pub mechanism: &'a str,
    /// Accuracy on the test examples.
    pub accuracy: f64,
    /// How this model was chosen among those that were trained.
    pub how: &'a str,
}

/// Maximum number of classes or columns that a card names; if there are more, it gives their number.
const NAMED: usize = 20;

/// The card in Markdown.
pub fn card(about: &Card) -> String {
    let Card { study, dataset, saved, statement, mechanism, accuracy, how } = about;
    let model = saved.model();
    let mut text = format!(
        "# {} on {}\n\n{} model of {} parameters that predicts one of {} classes ({}) from {}. It was trained with \
         differential privacy by antinoise {}, mechanism {mechanism}. Of the models of its study it is {how}.\n",
        model.name(),
        one_line(&dataset.name),
        article(model.name()),
        model.parameters(),
        saved.classes().len(),
        listed(saved.classes().iter().map(String::as_str)),
        inputs(saved),
        env!("CARGO_PKG_VERSION"),
    );
    let tests = dataset.test.len();
    let _ = write!(
        text,
        "\n## Accuracy\n\n| | |\n|---|---|\n| training {} | {} |\n| test examples | {tests} |\n| test accuracy \
         (one standard error) | {} |\n| always predicting the largest class | {} |\n\nThe last three figures follow \
         from the test examples, which the privacy statement does not protect: remove them from this page if those \
         examples are private.\n",
        if dataset.users.is_some() { "users" } else { "examples" },
        dataset.units(),
        percent(*accuracy, Some(accuracy_error(*accuracy, tests))),
        percent(largest_class_share(&dataset.test, dataset.classes), None),
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
    text += "- the test examples\n";
    text + &usage(saved, study.data())
}

fn article(name: &str) -> String {
    match name {
        "logistic" => "A logistic regression".into(),
        "mlp" => "A multilayer perceptron, a".into(),
        "cnn" => "A convolutional network, a".into(),
        other => format!("A model ({other}), a"),
    }
}

/// KIND:PATH without the folders of the path, which may name a person or a customer.
fn without_folders(data: &str) -> String {
    match data.split_once(':') {
        Some((kind, path)) => {
            let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
            format!("{kind}:{name}")
        }
        None => data.into(),
    }
}

/// The inputs of a model, in words.
fn inputs(saved: &SavedModel) -> String {
    match saved.schema() {
        None => {
            let shape = saved.model().shape();
            format!("images of {} x {} pixels with {} channels", shape.height, shape.width, shape.channels)
        }
        Some(schema) => format!("the columns {}", columns(schema)),
    }
}

fn columns(schema: &Schema) -> String {
    listed(schema.columns.iter().map(|column| column.name.as_str()))
}

/// The words, or the first of them and their number if there are many.
fn listed<'a>(words: impl ExactSizeIterator<Item = &'a str>) -> String {
    let count = words.len();
    let named: Vec<String> = words.take(NAMED).map(one_line).collect();
    let more = if count > NAMED { format!(" and {} more", count - NAMED) } else { String::new() };
    named.join(", ") + &more
}

/// `text` in one line of Markdown, in which none of its characters marks up: neither code, emphasis, tags and
/// cells nor, at a bracket, links.
fn one_line(text: &str) -> String {
    let text = printable(text).replace('\n', " ");
    let mut line = String::new();
    for (at, c) in text.char_indices() {
        let (before, after) = (text[..at].chars().next_back(), text[at + c.len_utf8()..].chars().next());
        let is_in_word = [before, after].iter().all(|c| c.is_some_and(char::is_alphanumeric));
        let marks_up = match c {
            '\\' | '`' | '*' | '<' | '>' | '|' | '&' | '#' => true,
            '_' => !is_in_word,
            ']' => matches!(after, Some('(' | '[' | ':')),
            _ => false,
        };
        if marks_up {
            line.push('\\');
        }
        line.push(c);
    }
    line
}

/// How the model is used: on the command line, from Rust and from PyTorch.
fn usage(saved: &SavedModel, data: &str) -> String {
    let kind = if saved.schema().is_some() { "csv:new.csv" } else { "images:new" };
    let rows = match saved.schema() {
        None => "images: examples x channels x height x width, from 0 (black) to 1 (white)".into(),
        Some(schema) => format!("rows: examples x {} features, encoded as below", schema.features()),
    };
    let mut text = format!(
        "\n## How to use it\n\nNew rows, without labels:\n\n```sh\nantinoise predict . --data {kind} --out predictions.jsonl\n\
         ```\n\nRows with labels, such as the data it was trained on ({}):\n\n```sh\nantinoise evaluate . --data KIND:PATH\n```\n\n\
         From Rust, `antinoise_train::saved_model::SavedModel::load`. In PyTorch (`pip install torch safetensors`), with x of \
         {rows}:\n\n```python\n\
         from collections import OrderedDict\nfrom safetensors.torch import load_file\nfrom torch import nn\n\n\
         model = {}\nmodel.load_state_dict(load_file(\"model.safetensors\"))\nprobabilities = model(x).softmax(-1)\n```\n",
        one_line(&without_folders(data)),
        saved.model().pytorch(),
    );
    if let Some(schema) = saved.schema() {
        text += "\n## Features\n\nIn the order of the columns in `model.toml`:\n\n| column | features |\n|---|---|\n";
        for columns in schema.columns.chunk_by(Column::is_before) {
            let name = match columns {
                [column] => column.name.clone(),
                columns => format!("{} to {}", columns[0].name, columns[columns.len() - 1].name),
            };
            let name = one_line(&name);
            let encoding = match &columns[0].values {
                Values::Range(low, high) => {
                    format!("2 (x - {low}) / {} - 1, x limited to {low} to {high}", high - low)
                }
                Values::Categories(words) => format!("one for each of {} words: 1 or 0", words.len()),
                Values::Text(features) => format!("{features}, hashed from words"),
            };
            let _ = writeln!(text, "| {name} | {encoding} |");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_mark_nothing_up_and_common_ones_stay_as_they_are() {
        let same = ["dep_delay", "both[1]", "0:24", "naïve", "a-b (c)"];
        assert_eq!(same.map(one_line), same);
        let escaped = ["[x](y)", "_x_", "a|b", "<b>", "*a*", "`a`", "a\nb", "\\"].map(one_line);
        let wanted = ["[x\\](y)", "\\_x\\_", "a\\|b", "\\<b\\>", "\\*a\\*", "\\`a\\`", "a b", "\\\\"];
        assert_eq!(escaped, wanted);
    }
}
