//! The parts of a card on a model of classes.

use std::fmt::Write;

use antinoise_train::data::{Column, Schema, Values};
use antinoise_train::saved_model::SavedModel;

use super::words::{listed, one_line, without_folders};

/// The model and its predictions, in words.
pub(super) fn what(saved: &SavedModel) -> String {
    let model = saved.model();
    format!(
        "{} model of {} parameters that predicts one of {} classes ({}) from {}",
        article(model.name()),
        model.parameters(),
        saved.classes().len(),
        listed(saved.classes().iter().map(String::as_str)),
        inputs(saved),
    )
}

fn article(name: &str) -> String {
    match name {
        "logistic" => "A logistic regression".into(),
        "mlp" => "A multilayer perceptron, a".into(),
        "cnn" => "A convolutional network, a".into(),
        other => format!("A model ({other}), a"),
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

/// How the model is used: on the command line, from Rust and from PyTorch.
pub(super) fn usage(saved: &SavedModel, data: &str) -> String {
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
